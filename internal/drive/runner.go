package drive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

var (
	// ErrStopped is wrapped by calls on a runner that was not started, or has
	// stopped.
	ErrStopped = errors.New("builder: it is not running")
	// ErrStarted is returned by a second call of [Runner.Start].
	ErrStarted = errors.New("builder: Run was called before")
	// ErrUseless is reported in Health.LastError if a built package was
	// discarded, because it was already dead when the build finished.
	ErrUseless = errors.New("builder: the package was dead when it was built")
)

// Runner drives one bundlequeue.Queue. Create it with [NewRunner] or
// [OpenRunner]. All methods except [Runner.Recovered] are safe for concurrent
// use. The runner calls the host without holding a lock.
type Runner struct {
	cfg       submit.Config
	builder   Builder
	submitter Submitter
	log       *slog.Logger

	calls chan func() // run by the loop, in order
	done  chan struct{}

	durable   *Durability // nil without a journal
	recovered bool

	// The loop's goroutine owns the following fields once it runs.
	queue   *bundlequeue.Queue
	ctx     context.Context
	timer   *time.Timer
	effects uint64 // effects since the queue began
	steps   int    // steps since the last snapshot
	// held is true after a recovery, while the runner must not build or send.
	held bool
	// paused is the fatal error after which the runner stopped building and
	// sending, or nil.
	paused error
	// working holds the tickets of running builds and sends.
	working map[uint64]struct{}
	// replayed holds the effects of the last recorded step, to be reported again.
	replayed []submit.Observation
	// repeating is true after a recovery, while the feed may repeat blocks.
	repeating bool
	// idle is closed when every bundle is final. It is nil if no caller waits
	// in Drain.
	idle chan struct{}

	mu      sync.Mutex
	started bool
	cancel  context.CancelFunc
	health  submit.Health
	work    sync.WaitGroup // running builds and sends
}

// NewRunner returns a runner that is not started. root is a final JAM block;
// the host imports the blocks after it. The runner keeps its queue in memory
// only: use [OpenRunner] to survive a restart.
//
// NewRunner returns ErrInvalidConfig if cfg is invalid or if builder or
// submitter is nil.
func NewRunner(cfg submit.Config, root jamq.Block, builder Builder, submitter Submitter) (*Runner, error) {
	r, err := newRunner(cfg, builder, submitter)
	if err != nil {
		return nil, err
	}
	r.queue, err = bundlequeue.New(r.cfg.Queue, root)
	return r, err
}

// newRunner returns a runner without a queue.
func newRunner(cfg submit.Config, builder Builder, submitter Submitter) (*Runner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if builder == nil || submitter == nil {
		return nil, fmt.Errorf("%w: Builder or Submitter is nil", submit.ErrInvalidConfig)
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Runner{
		cfg: cfg, builder: builder, submitter: submitter, log: log,
		calls: make(chan func()), done: make(chan struct{}), working: make(map[uint64]struct{}),
	}, nil
}

// Start runs the runner until ctx ends or [Runner.Stop] is called. It does not
// block. A runner can be started once: a second call returns ErrStarted.
func (r *Runner) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started {
		return ErrStarted
	}
	r.started = true
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.health.Running = true
	r.timer = time.NewTimer(0)
	go r.loop()
	return nil
}

// Stop stops the runner and waits until its goroutines have ended. It does not
// wait for bundles: see [Runner.Drain]. If the runner does not run, Stop does
// nothing.
func (r *Runner) Stop() {
	r.mu.Lock()
	cancel := r.cancel
	r.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	<-r.done
}

// loop is the only goroutine that uses the queue.
func (r *Runner) loop() {
	defer close(r.done)
	defer r.noteStopped()
	defer r.work.Wait()
	defer r.timer.Stop()
	hold := time.NewTimer(r.cfg.HoldTimeout)
	defer hold.Stop()
	r.tellAgain()
	for {
		select {
		case <-r.ctx.Done():
			return
		case call := <-r.calls:
			call()
		case <-hold.C:
			r.release()
		case <-r.timer.C:
			if err := r.step(bundlequeue.Tick{}); err != nil {
				r.log.Error("tick refused", "err", err)
			}
		}
	}
}

// tellAgain begins a runner after a recovery. It reports the effects of the last
// recorded step, which the host may not have seen. Then it replaces the journal with
// a snapshot, so that all steps after the snapshot have the same configuration.
func (r *Runner) tellAgain() {
	if !r.recovered {
		return
	}
	for _, o := range r.replayed {
		r.tell(o)
	}
	r.replayed = nil
	if err := r.snapshot(); err != nil {
		r.fail(err)
	}
}

// step feeds one event to the queue, checks the invariants, records the step,
// and carries out the effects. It runs on the loop's goroutine.
func (r *Runner) step(ev bundlequeue.Event) error {
	now := time.Now()
	if r.ctx.Err() != nil {
		return ErrStopped
	}
	effects, err := r.queue.Step(now, ev)
	if err != nil {
		return err
	}
	if err := r.check(); err != nil {
		r.fail(err)
		return err
	}
	if r.durable != nil {
		if err := r.write(now, ev); err != nil {
			r.fail(err)
			return err
		}
		if err := r.durable.follow(ev, effects); err != nil {
			r.fail(err)
			return err
		}
	}
	r.carryOut(now, effects)
	if wake, ok := r.queue.NextWake(now); ok {
		r.timer.Reset(time.Until(wake))
	} else {
		r.timer.Stop()
	}
	r.wakeIdle()
	r.noteWaiting()
	observe(&r.cfg.Metrics, submit.StepSeconds, time.Since(now))
	if r.durable != nil && r.durable.SnapshotEvery > 0 && r.steps >= r.durable.SnapshotEvery && r.ctx.Err() == nil {
		if err := r.snapshot(); err != nil {
			r.fail(err) // the step itself is recorded
		}
	}
	return nil
}

// check runs the configured checks of the queue and of the host's state.
func (r *Runner) check() error {
	if r.cfg.CheckInvariants {
		if err := r.queue.Check(); err != nil {
			return err
		}
	}
	if r.cfg.Invariants != nil {
		return r.cfg.Invariants()
	}
	return nil
}

// fail stops the runner, because its state is invalid or could not be recorded.
func (r *Runner) fail(err error) {
	r.log.Error("runner stops", "err", err)
	r.mu.Lock()
	r.health.Err = err
	r.mu.Unlock()
	r.cancel()
}
