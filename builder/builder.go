package builder

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrLog is wrapped by an error if a write to the log has failed. The builder has then
	// stopped. It is unknown whether the log has the record, so the host must open the log
	// again.
	ErrLog = errors.New("builder: the log has failed")
	// ErrTooLarge is wrapped by an error if an operation is too large for a work
	// package, or if a block, a package or a checkpoint is too large for the log. The
	// call has then written nothing.
	ErrTooLarge = errors.New("builder: too large")
	// ErrCodec is wrapped by an error if the codec of the rollup cannot decode the body of a
	// block that it has encoded, or decodes it to a different body. The builder discards the
	// block, because a restart could not read it.
	ErrCodec = errors.New("builder: the codec changes a body")
	// ErrDiverged is wrapped by an error if the root of the rollup's state differs from
	// the root in the log. The possible reasons are:
	//
	//   - The rollup is not deterministic.
	//   - Undo does not restore the state before the block.
	//   - Restore does not lead to the state that Checkpoint had.
	//
	// The builder stops, because it cannot know which of the two roots is right.
	ErrDiverged = errors.New("builder: the rollup has another root")
	// ErrOtherRollup is wrapped by the error of Open if the log begins with a different genesis
	// than the rollup, so that it must be the log of a different rollup.
	ErrOtherRollup = errors.New("builder: the log of another rollup")
	// ErrInvalidConfig is wrapped by an error if a configuration cannot be used.
	ErrInvalidConfig = errors.New("builder: invalid configuration")
	// ErrStopped is wrapped by the error of a call that needs a running builder, if Run
	// has not been called yet or has returned. Submit can be called before Run.
	ErrStopped = errors.New("builder: it is not running")
	// ErrFollows is wrapped by the error of a call that only the leader of a [SharedLog]
	// can process, if another process is the leader now. It wraps ErrStopped.
	ErrFollows = fmt.Errorf("%w: another process leads its log", ErrStopped)
	// ErrBusy is wrapped by the errors of Submit and Busy while a write to the log takes long,
	// for example because the database has no room. The operation has no effect, and the user
	// should submit it again later.
	ErrBusy = errors.New("builder: the log does not answer")
	// ErrFollow is returned by Run if Network.Follow returns without an error although the
	// builder still runs.
	ErrFollow = errors.New("builder: Follow has ended")
	// ErrHangs is wrapped by an error if a call of Payload or Pack has not returned within its
	// time. The builder no longer waits for that call.
	ErrHangs = errors.New("builder: a call of the host does not return")
	// ErrUseless is wrapped by Health.LastError if a package was discarded because it was already
	// dead when it was built, for example because its anchor had expired.
	ErrUseless = errors.New("builder: the package was dead when it was built")
	// ErrPanic is wrapped by an error if a call of the host panicked.
	ErrPanic = errors.New("builder: the host panicked")
)

// Builder executes the operations of a rollup in blocks, sends the blocks to JAM, and follows them
// until they are final. Create one with [Open]. All methods are safe for concurrent use.
type Builder[B any] struct{ *engine }

// Open returns a builder that continues at the end of its log. If the log is empty,
// the builder begins with the genesis of the rollup. The rollup must be in its
// genesis state, because Open repeats all calls of the rollup that the log records,
// in their order. Nothing else may use the log at the same time, and the host may
// close it only after Run has returned.
//
// If the log is a [SharedLog] that another process leads, Open only reads it, and
// Run follows the other process until this process leads. If the shared log is
// empty, Open waits until another process has begun it, or until this process
// leads.
//
// Errors wrap ErrInvalidConfig, ErrVersion, ErrCorrupt, ErrOtherRollup,
// ErrServiceInUse, ErrDiverged or ErrLog, or they are those of the rollup and of
// the network.
func Open[B any](ctx context.Context, cfg Config, log Log, rollup Rollup[B], network Network) (*Builder[B], error) {
	if rollup == nil {
		return nil, fmt.Errorf("%w: rollup is nil", ErrInvalidConfig)
	}
	e, err := openEngine(ctx, cfg, log, newDoor(rollup), network)
	if err != nil {
		return nil, err
	}
	return &Builder[B]{e}, nil
}

// Block returns the block with a number, and its progress through JAM. The second
// result is false if there is no such block. A block can be read from the time when
// it is in the log until Final has returned for it.
func (b *Builder[B]) Block(number uint64) (Block[B], bool) {
	found, ok := b.block(number)
	return typed[B](found), ok
}
