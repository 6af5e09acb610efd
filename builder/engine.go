package builder

import (
	"context"
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
	"github.com/jamq/jamq/internal/drive"
	"github.com/jamq/jamq/submit"
)

// settings is a Config without its codec.
type settings struct {
	Runner          submit.Config
	CheckpointEvery int
	Retry           time.Duration
	NewChain        bool
	Logger          *slog.Logger
}

func (s *settings) validate() error {
	switch err := s.Runner.Validate(); {
	case err != nil:
		return fmt.Errorf("%w: Runner: %w", ErrInvalidConfig, err)
	case s.CheckpointEvery <= 0:
		return fmt.Errorf("%w: CheckpointEvery is %d, want positive", ErrInvalidConfig, s.CheckpointEvery)
	case s.Runner.Queue.FirstNumber == 0:
		return fmt.Errorf("%w: Runner.Queue.FirstNumber is 0, want at least 1", ErrInvalidConfig)
	case s.Retry <= 0:
		return fmt.Errorf("%w: Retry is %v, want positive", ErrInvalidConfig, s.Retry)
	}
	return nil
}

// engine is a builder whose blocks have opaque bodies. Its exported methods are those of
// Builder.
type engine struct {
	cfg     settings
	host    host
	network Network
	log     *slog.Logger
	calls   *calls
	records records
	chain   chain
	runner  *drive.Runner
	found   submit.Recovery
	// proposed is the last block that the worker has given to the queue.
	proposed atomic.Pointer[block]

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

// openEngine returns an engine that continues at the end of its log: see Open.
func openEngine(ctx context.Context, cfg settings, log Log, h host, network Network) (*engine, error) {
	if log == nil || network == nil {
		return nil, fmt.Errorf("%w: log or network is nil", ErrInvalidConfig)
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if _, ok := h.optional().(Checkpointer); cfg.NewChain && !ok {
		return nil, fmt.Errorf("%w: NewChain is set, and the rollup is no Checkpointer", ErrInvalidConfig)
	}
	calls := &calls{methods: make(map[string]*method)}
	e := &engine{
		cfg: cfg, host: h, network: network, log: cfg.Logger, calls: calls, records: newRecords(log, calls),
		woken: make(chan struct{}, 1), admitting: semaphore.NewWeighted(everyone), interrupt: func() {}, stopped: make(chan struct{}),
		trust: trust{died: make(map[uint64]anchor.Reason)}, doubted: make(chan error, 1),
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.cfg.Runner.Logger == nil {
		e.cfg.Runner.Logger = e.log
	}
	e.chain.log = e.log
	if err := e.checkSpec(); err != nil {
		return nil, err
	}
	if err := e.recover(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// Run runs the builder until ctx ends, and returns its error. It returns another
// error if the log, the rollup or the network cannot go on, for example one that wraps
// ErrLog, ErrDiverged or ErrEvidence. Run may be called once.
func (e *engine) Run(ctx context.Context) error {
	if err := e.runner.Start(ctx); err != nil {
		return err
	}
	defer e.records.stop() // the host may close the log when Run has returned
	defer e.runner.Stop()
	defer close(e.stopped)
	e.cause = e.runUntil(ctx)
	return e.cause
}

func (e *engine) runUntil(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := guard(func() error { return e.network.Follow(running, e.found, e) })
		if err == nil && running.Err() == nil {
			return ErrFollow
		}
		return err
	})
	group.Go(func() error { return e.work(running) })
	group.Go(func() error { return e.awaitDoubt(running) })
	err := group.Wait()
	switch failure := e.records.failure(); {
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
func (e *engine) Heads() canonical.Heads {
	e.chain.mu.Lock()
	defer e.chain.mu.Unlock()
	return e.chain.heads()
}

// Await waits until the heads are as wanted. It returns the error of ctx, or that of
// Run if the builder stops before.
func (e *engine) Await(ctx context.Context, wanted func(canonical.Heads) bool) error {
	for {
		e.chain.mu.Lock()
		heads, moved := e.chain.heads(), e.chain.moved
		e.chain.mu.Unlock()
		if wanted(heads) {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-e.stopped:
			return e.cause
		}
	}
}

// Drain waits until every block is final and no operation waits, for example before a
// program stops. waiting reports whether the rollup has operations that can run; Drain calls
// it when the heads have moved and when Propose has returned ErrIdle. The errors are those of
// Await.
func (e *engine) Drain(ctx context.Context, waiting func() bool) error {
	return e.Await(ctx, func(canonical.Heads) bool {
		// An operation that waits no longer is in a block, and the other way round.
		return e.chain.settled() && !waiting() && e.chain.settled()
	})
}

// block is Builder.Block.
func (e *engine) block(number uint64) (block, bool) {
	e.chain.mu.Lock()
	defer e.chain.mu.Unlock()
	for _, blocks := range [][]block{e.chain.finals, e.chain.blocks} {
		for _, block := range blocks {
			if block.Number == number {
				return block, true
			}
		}
	}
	return block{}, false
}

// Stats returns a summary of the queue. The error wraps ErrStopped.
func (e *engine) Stats(ctx context.Context) (bundlequeue.Stats, error) {
	return e.runner.Stats(ctx)
}

// Info describes the bundle of a block, if it is in the queue. The error wraps
// ErrStopped.
func (e *engine) Info(ctx context.Context, number uint64) (info bundlequeue.Info, found bool, err error) {
	return e.runner.Info(ctx, number)
}

// GiveUp orders that no more packages are built for a block that is not final. If none
// of its packages is accumulated, it is undone with all later blocks, and their
// operations wait again. The error wraps bundlequeue.ErrWrongNumber or ErrStopped.
func (e *engine) GiveUp(ctx context.Context, number uint64, reason string) error {
	return e.runner.Step(ctx, bundlequeue.GiveUp{Number: number, Reason: reason})
}

// SetCores changes the JAM cores that packages are sent to. Packages that are on their way stay on
// their cores. The list must have at least one core of the chain, and none twice. A restart keeps
// the change. The error wraps bundlequeue.ErrUnknownEvent or ErrStopped.
func (e *engine) SetCores(ctx context.Context, cores []jamq.CoreIndex) error {
	return e.runner.Step(ctx, bundlequeue.Cores{Cores: cores})
}

// Resume lets the builder build and send again after a fatal error: see submit.Fatal.
// The error wraps ErrStopped.
func (e *engine) Resume(ctx context.Context) error { return e.runner.Resume(ctx) }

// wake makes the worker look for work.
func (e *engine) wake() {
	select {
	case e.woken <- struct{}{}:
	default:
	}
}
