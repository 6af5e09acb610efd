package builder

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrLog is wrapped if the log has failed. The builder has then stopped. It is
	// unknown whether the record is in the log: open the log again.
	ErrLog = errors.New("builder: the log has failed")
	// ErrTooLarge is wrapped if an operation is too large for a work package, or if a block,
	// a package or a checkpoint is too large for the log. Nothing was written.
	ErrTooLarge = errors.New("builder: too large")
	// ErrCodec is wrapped if a codec does not decode a body as it was. The block is not made.
	ErrCodec = errors.New("builder: the codec changes a body")
	// ErrDiverged is wrapped if the root of a rollup differs from the root that a block
	// has in the log, because the rollup is not deterministic, because Undo does not restore
	// the state before the block, or because Restore does not lead to the state of
	// Checkpoint. The builder stops, because it cannot know which of the two roots is right.
	ErrDiverged = errors.New("builder: the rollup has another root")
	// ErrOtherRollup is wrapped by the error of a log whose genesis is not that of the
	// rollup.
	ErrOtherRollup = errors.New("builder: the log of another rollup")
	// ErrInvalidConfig is wrapped by the error of a configuration that cannot be used.
	ErrInvalidConfig = errors.New("builder: invalid configuration")
	// ErrStopped is wrapped by the error of a call for which Run must run, before Run was
	// called and after it has returned. An operation is accepted also before Run.
	ErrStopped = errors.New("builder: it is not running")
	// ErrFollows wraps ErrStopped. It is wrapped by the error of a call that only the builder
	// which leads a [SharedLog] can carry out, while another process leads.
	ErrFollows = fmt.Errorf("%w: another process leads its log", ErrStopped)
	// ErrBusy is wrapped by the error of Submit and Busy while a write to the log takes long, for
	// example because the database has no room. The operation has no effect; submit it again later.
	ErrBusy = errors.New("builder: the log does not answer")
	// ErrFollow is wrapped if Network.Follow ends without an error.
	ErrFollow = errors.New("builder: Follow has ended")
	// ErrHangs is wrapped by the error of a call of Payload or Pack that has not returned
	// before the end of its context.
	ErrHangs = errors.New("builder: a call of the host does not return")
	// ErrUseless is wrapped by Health.LastError if a package was discarded, because it was
	// dead when it was made.
	ErrUseless = errors.New("builder: the package was dead when it was built")
	// ErrPanic is wrapped by the error of a call of the host that panicked.
	ErrPanic = errors.New("builder: the host panicked")
)

// Builder runs a rollup's builder. Create one with [Open]. All methods are safe for
// concurrent use.
type Builder[B any] struct{ *engine }

// Open returns a builder that continues at the end of its log; an empty log begins a
// rollup. The rollup must be at its genesis. Open calls it with all that happened
// since, in the order of the log. Nothing else may use the log meanwhile. The host
// closes the log after Run has returned.
//
// If the log is a [SharedLog] that another process leads, Open only reads it, and Run follows the
// other process until this one leads. If the shared log is empty, Open waits until another process
// has begun it or this one leads.
//
// Errors wrap ErrInvalidConfig, ErrVersion, ErrCorrupt, ErrOtherRollup, ErrServiceInUse,
// ErrDiverged, ErrLog, or are those of the rollup and of the network.
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

// Block returns a block of which Final was not called yet, with its progress, and
// whether there is one of this number.
func (b *Builder[B]) Block(number uint64) (Block[B], bool) {
	found, ok := b.block(number)
	return typed[B](found), ok
}
