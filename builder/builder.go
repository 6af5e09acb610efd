package builder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/drive"
	"github.com/jamq/jamq/submit"
)

var (
	// ErrLog is wrapped if the log has failed. The builder has then stopped. It is
	// unknown whether the record is in the log: open the log again.
	ErrLog = errors.New("builder: the log has failed")
	// ErrTooLarge is wrapped if a record is too large for the log, or an operation for a
	// work package. Nothing was written.
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
	ErrStopped = drive.ErrStopped
	// ErrFollow is wrapped if Network.Follow ends without an error.
	ErrFollow = errors.New("builder: Follow has ended")
	// ErrHangs is wrapped by the error of a call of Payload or Pack that has not returned
	// before the end of its context.
	ErrHangs = errors.New("builder: a call of the host does not return")
	// ErrPanic is wrapped by the error of a call of the host that panicked.
	ErrPanic = errors.New("builder: the host panicked")
)

// Config is the configuration of a builder. Start from [DefaultConfig].
type Config[B any] struct {
	// Runner configures the queue, the window of submission and the time limits. Its
	// Observe sees all effects of the queue, with a Block[B] in place of the bundle. It must
	// return quickly, must not call the builder except for Heads and Block, and may be nil.
	// Queue.FirstNumber is the number of the first block of an empty log, at least 1: a
	// rollup whose log was lost or has an old format goes on after its last block.
	Runner submit.Config
	// Codec encodes the bodies of blocks. Nil means [JSON].
	Codec Codec[B]
	// CheckpointEvery is the number of records after which a checkpoint replaces
	// them, if the rollup is a [Checkpointer]. A record counts once more for each 16 KiB
	// that it has. The number limits the size of the log and the duration of a restart. It
	// must be positive. The default is 4096, which is about 64 MiB of large records.
	CheckpointEvery int
	// Retry is the time that the builder waits before it repeats a call of the rollup
	// that has failed, and the longest time that a checkpoint waits for running calls of
	// Admit. It must be positive. The default is a second.
	Retry time.Duration
	// NewChain means that the JAM chain of the log has ended, so that no package that was
	// sent to it is ever accumulated. Open then undoes all blocks that are not final, and
	// begins the log again; their operations are executed again. It is for simulated chains
	// that end with their process: on a chain that goes on, operations are executed twice.
	// The rollup must be a [Checkpointer].
	NewChain bool
	// Logger receives messages for operators, also those of the runner unless Runner.Logger
	// is set. Nil means none.
	Logger *slog.Logger
}

// DefaultConfig returns the default configuration for a JAM chain.
func DefaultConfig[B any](spec jamq.ChainSpec) Config[B] {
	const every = 4096
	return Config[B]{Runner: submit.DefaultConfig(spec), Codec: JSON[B]{}, CheckpointEvery: every, Retry: time.Second}
}

// Validate returns an error that names the first field out of range. It wraps
// [ErrInvalidConfig].
func (c *Config[B]) Validate() error {
	s := c.settings()
	return s.validate()
}

// settings returns the part of the configuration without a type parameter.
func (c *Config[B]) settings() settings {
	return settings{Runner: c.Runner, CheckpointEvery: c.CheckpointEvery, Retry: c.Retry, NewChain: c.NewChain, Logger: c.Logger}
}

// Builder runs a rollup's builder. Create one with [Open]. All methods are safe for
// concurrent use.
type Builder[B any] struct{ *engine }

// Open returns a builder that continues at the end of its log; an empty log begins a
// rollup. The rollup must be at its genesis. Open calls it with all that happened
// since, in the order of the log. Nothing else may use the log meanwhile. The host
// closes the log after Run has returned.
//
// Errors wrap ErrInvalidConfig, ErrVersion, ErrCorrupt, ErrOtherRollup, ErrServiceInUse,
// ErrDiverged, ErrLog, or are those of the rollup and of the network.
func Open[B any](ctx context.Context, cfg Config[B], log Log, rollup Rollup[B], network Network) (*Builder[B], error) {
	if rollup == nil {
		return nil, fmt.Errorf("%w: rollup is nil", ErrInvalidConfig)
	}
	d := door[B]{rollup, cfg.Codec}
	if d.codec == nil {
		d.codec = JSON[B]{}
	}
	e, err := openEngine(ctx, cfg.settings(), log, d, network)
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
