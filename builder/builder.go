package builder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
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
	// has in the log, because the rollup is not deterministic, or because Undo does not
	// restore the state before the block. The builder stops, because it cannot know which
	// of the two roots is right.
	ErrDiverged = errors.New("builder: the rollup has another root")
	// ErrOtherRollup is wrapped by the error of a log whose genesis is not that of the
	// rollup.
	ErrOtherRollup = errors.New("builder: the log of another rollup")
	// ErrInvalidConfig is wrapped by the error of a configuration that cannot be used.
	ErrInvalidConfig = errors.New("builder: invalid configuration")
	// ErrStopped is wrapped by the error of an operation or a record after Run has returned.
	ErrStopped = errors.New("builder: it has stopped")
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
	// Told must be nil, because a builder learns the states of packages from JAM blocks only.
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
	switch err := c.Runner.Validate(); {
	case err != nil:
		return fmt.Errorf("%w: Runner: %w", ErrInvalidConfig, err)
	case c.Runner.Told != nil:
		return fmt.Errorf("%w: Runner.Told is set, want nil: a builder learns from JAM blocks only", ErrInvalidConfig)
	case c.CheckpointEvery <= 0:
		return fmt.Errorf("%w: CheckpointEvery is %d, want positive", ErrInvalidConfig, c.CheckpointEvery)
	case c.Runner.Queue.FirstNumber == 0:
		return fmt.Errorf("%w: Runner.Queue.FirstNumber is 0, want at least 1", ErrInvalidConfig)
	case c.Retry <= 0:
		return fmt.Errorf("%w: Retry is %v, want positive", ErrInvalidConfig, c.Retry)
	}
	return nil
}

// Builder runs a rollup's builder. Create one with [Open]. All methods are safe for
// concurrent use.
type Builder[B any] struct {
	cfg     Config[B]
	rollup  Rollup[B]
	network Network
	log     *slog.Logger
	calls   *calls
	records records
	stored  stored[B]
	chain   chain[B]
	runner  *submit.Runner[bundle[B]]
	found   submit.Recovery

	// admitting has a weight of one for each operation that is on its way from the log
	// to the rollup. A checkpoint takes the whole, so that it cannot fall in between.
	admitting *semaphore.Weighted
	woken     chan struct{} // holds a token if there may be work
	postponed int           // records by which the next checkpoint is late; of the worker

	stopped chan struct{} // closed when Run has returned cause
	cause   error

	mu          sync.Mutex
	interrupt   context.CancelFunc // of a running Propose
	interrupted bool               // its pre-state is gone

	// The worker owns these: when it repeats a call of Propose and of Final, and whether it
	// has made the call of the first task, so that only the root is unknown.
	proposeAt, finalAt time.Time
	carried            bool

	// The runner's goroutine owns trust once Run is called. doubted gets its error.
	trust   trust
	running bool
	doubted chan error
}

// Open returns a builder that continues at the end of its log; an empty log begins a
// rollup. The rollup must be at its genesis. Open calls it with all that happened
// since, in the order of the log. Nothing else may use the log meanwhile. The host
// closes the log after Run has returned.
//
// Errors wrap ErrInvalidConfig, ErrVersion, ErrCorrupt, ErrOtherRollup, ErrServiceInUse,
// ErrDiverged, ErrLog, or are those of the rollup and of the network.
func Open[B any](ctx context.Context, cfg Config[B], log Log, rollup Rollup[B], network Network) (*Builder[B], error) {
	if log == nil || rollup == nil || network == nil {
		return nil, fmt.Errorf("%w: log, rollup or network is nil", ErrInvalidConfig)
	}
	if cfg.Codec == nil {
		cfg.Codec = JSON[B]{}
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if _, ok := rollup.(Checkpointer); cfg.NewChain && !ok {
		return nil, fmt.Errorf("%w: NewChain is set, and the rollup is no Checkpointer", ErrInvalidConfig)
	}
	host := &calls{methods: make(map[string]*method)}
	b := &Builder[B]{
		cfg: cfg, rollup: rollup, network: network, log: cfg.Logger, calls: host, records: newRecords(log, host),
		stored: stored[B]{cfg.Codec, new(atomic.Bool)}, woken: make(chan struct{}, 1), admitting: semaphore.NewWeighted(everyone), interrupt: func() {}, stopped: make(chan struct{}),
		trust: trust{died: make(map[uint64]anchor.Reason)}, doubted: make(chan error, 1),
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if b.cfg.Runner.Logger == nil {
		b.cfg.Runner.Logger = b.log
	}
	b.chain.log = b.log
	if err := b.recover(ctx); err != nil {
		return nil, err
	}
	b.stored.opened.Store(true)
	return b, nil
}

// Run runs the builder until ctx ends, and returns its error. It returns another
// error if the log, the rollup or the network cannot go on, for example one that wraps
// ErrLog, ErrDiverged or ErrEvidence. Run may be called once.
func (b *Builder[B]) Run(ctx context.Context) error {
	if err := b.runner.Start(ctx); err != nil {
		return err
	}
	defer b.records.stop() // the host may close the log when Run has returned
	defer b.runner.Stop()
	defer close(b.stopped)
	b.cause = b.runUntil(ctx)
	return b.cause
}

func (b *Builder[B]) runUntil(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := guard(func() error { return b.network.Follow(running, b.found, b) })
		if err == nil && running.Err() == nil {
			return ErrFollow
		}
		return err
	})
	group.Go(func() error { return b.work(running) })
	group.Go(func() error { return b.awaitDoubt(running) })
	err := group.Wait()
	switch failure := b.records.failure(); {
	case failure != nil: // whatever met it first
		return failure
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

// Heads returns the heads of the rollup. Pending is the newest block that the rollup has
// applied: when a failed block is no longer in the heads, Undo has returned. Hash and
// Commitment are those of the builder, which are unique for each execution of a block.
func (b *Builder[B]) Heads() canonical.Heads {
	b.chain.mu.Lock()
	defer b.chain.mu.Unlock()
	return b.chain.heads()
}

// Await waits until the heads are as wanted. It returns the error of ctx, or that of
// Run if the builder stops before.
func (b *Builder[B]) Await(ctx context.Context, wanted func(canonical.Heads) bool) error {
	for {
		b.chain.mu.Lock()
		heads, moved := b.chain.heads(), b.chain.moved
		b.chain.mu.Unlock()
		if wanted(heads) {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-b.stopped:
			return b.cause
		}
	}
}

// Drain waits until every block is final and no operation waits, for example before a
// program stops. waiting reports whether the rollup has operations that can run; Drain calls
// it when the heads have moved and when Propose has returned ErrIdle. The errors are those of
// Await.
func (b *Builder[B]) Drain(ctx context.Context, waiting func() bool) error {
	return b.Await(ctx, func(canonical.Heads) bool {
		// An operation that waits no longer is in a block, and the other way round.
		return b.chain.settled() && !waiting() && b.chain.settled()
	})
}

// Block returns a block of which Final was not called yet, with its progress, and
// whether there is one of this number.
func (b *Builder[B]) Block(number uint64) (Block[B], bool) {
	b.chain.mu.Lock()
	defer b.chain.mu.Unlock()
	for _, blocks := range [][]Block[B]{b.chain.finals, b.chain.blocks} {
		for _, block := range blocks {
			if block.Number == number {
				return block, true
			}
		}
	}
	return Block[B]{}, false
}

// Stats returns a summary of the queue. The error wraps submit.ErrStopped.
func (b *Builder[B]) Stats(ctx context.Context) (bundlequeue.Stats, error) {
	return b.runner.Stats(ctx)
}

// Info describes the bundle of a block, if it is in the queue. The error wraps
// submit.ErrStopped.
func (b *Builder[B]) Info(ctx context.Context, number uint64) (info bundlequeue.Info, found bool, err error) {
	return b.runner.Info(ctx, number)
}

// GiveUp orders that no more packages are built for a block that is not final. If none
// of its packages is accumulated, it is undone with all later blocks, and their
// operations wait again. The error wraps bundlequeue.ErrWrongNumber or submit.ErrStopped.
func (b *Builder[B]) GiveUp(ctx context.Context, number uint64, reason string) error {
	return b.runner.Step(ctx, bundlequeue.GiveUp{Number: number, Reason: reason})
}

// Resume lets the builder build and send again after a fatal error: see submit.Fatal.
// The error wraps submit.ErrStopped.
func (b *Builder[B]) Resume(ctx context.Context) error { return b.runner.Resume(ctx) }

// wake makes the worker look for work.
func (b *Builder[B]) wake() {
	select {
	case b.woken <- struct{}{}:
	default:
	}
}
