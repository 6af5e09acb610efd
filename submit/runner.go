package submit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
)

var (
	// ErrStopped is wrapped by calls on a runner that was not started, or was stopped.
	ErrStopped = errors.New("submit: runner is not running")
	// ErrStarted is wrapped by a second Start.
	ErrStarted = errors.New("submit: runner was started before")
	// ErrUseless is reported in Health.LastError if a built package was discarded, because it was
	// already dead when the build finished.
	ErrUseless = errors.New("submit: package was dead when it was built")
)

// Runner drives one bundlequeue. All methods may be called from any goroutine. The runner calls the
// host under no lock.
type Runner[B any] struct {
	cfg       Config
	builder   Builder[B]
	submitter Submitter[B]
	log       *slog.Logger

	calls chan func() // run on the loop's goroutine, one after another
	done  chan struct{}

	durable   *Durability[B] // nil without a journal
	recovered bool

	// Owned by the loop's goroutine once it runs.
	queue   *bundlequeue.Queue[B]
	ctx     context.Context
	timer   *time.Timer
	effects uint64 // how many there were
	steps   int    // in the journal since the last snapshot
	// held: the runner has recovered, and builds and sends nothing yet.
	held bool
	// paused is a fatal error after which the runner builds and sends nothing, or nil.
	paused error
	// working are the tickets of builds and sends under way.
	working map[uint64]struct{}
	// replayed are the effects to report again.
	replayed []Observation
	// idle is closed when every bundle is final; nil if no caller waits for that.
	idle chan struct{}

	mu      sync.Mutex
	started bool
	cancel  context.CancelFunc
	health  Health
	work    sync.WaitGroup // builds and sends under way
}

// NewRunner returns a runner that is not started. root is a final JAM block; the host imports the
// blocks after it. The runner forgets everything when the process ends: see [OpenRunner].
func NewRunner[B any](cfg Config, root jamq.Block, builder Builder[B], submitter Submitter[B]) (*Runner[B], error) {
	r, err := newRunner(cfg, builder, submitter)
	if err != nil {
		return nil, err
	}
	r.queue, err = newQueue[B](r.queueConfig(), root)
	return r, err
}

// newRunner returns a runner without a queue.
func newRunner[B any](cfg Config, builder Builder[B], submitter Submitter[B]) (*Runner[B], error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if builder == nil || submitter == nil {
		return nil, fmt.Errorf("%w: Builder and Submitter must be given", ErrInvalidConfig)
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Runner[B]{
		cfg: cfg, builder: builder, submitter: submitter, log: log,
		calls: make(chan func()), done: make(chan struct{}), working: make(map[uint64]struct{}),
	}, nil
}

// Start begins to run until ctx ends or Stop is called. A runner starts once: again, the error
// wraps ErrStarted.
func (r *Runner[B]) Start(ctx context.Context) error {
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

// Stop ends the runner and waits until its goroutines have ended. It does not wait for bundles: see
// Drain. Stopping a runner that does not run does nothing.
func (r *Runner[B]) Stop() {
	r.mu.Lock()
	cancel := r.cancel
	r.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	<-r.done
}

// loop is the only goroutine that touches the queue.
func (r *Runner[B]) loop() {
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

// tellAgain reports what was replayed. Then a snapshot replaces the journal, so that all steps in
// it were taken under one configuration.
func (r *Runner[B]) tellAgain() {
	for _, o := range r.replayed {
		r.tell(o)
	}
	r.replayed = nil
	if r.recovered {
		if err := r.snapshot(); err != nil {
			r.fail(err)
		}
	}
}

// step feeds the queue one event, checks the outcome, writes the step down, and carries out the
// effects. It runs on the loop's goroutine.
func (r *Runner[B]) step(ev bundlequeue.Event) error {
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
	}
	r.carryOut(now, effects)
	if wake, ok := r.queue.NextWake(now); ok {
		r.timer.Reset(time.Until(wake))
	} else {
		r.timer.Stop()
	}
	r.wakeIdle()
	r.noteWaiting()
	r.cfg.Metrics.observe(StepSeconds, time.Since(now))
	if r.durable != nil && r.steps >= r.durable.SnapshotEvery && r.ctx.Err() == nil {
		if err := r.snapshot(); err != nil {
			r.fail(err) // the step itself is safe
		}
	}
	return nil
}

// check returns what is wrong with the queue or the host's state, if the configuration asks for it.
func (r *Runner[B]) check() error {
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

// fail stops the runner, because its state is not to be trusted or not written down.
func (r *Runner[B]) fail(err error) {
	r.log.Error("runner stops", "err", err)
	r.mu.Lock()
	r.health.Err = err
	r.mu.Unlock()
	r.cancel()
}
