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
)

// Builder makes packages. Its methods are called from several goroutines at once.
type Builder[B any] interface {
	// Build makes a package as the request says. The ticket is the runner's business. An error is retried after a
	// back-off. ctx ends with Config.BuildTimeout or the runner.
	Build(ctx context.Context, request bundlequeue.Build[B]) (Package[B], error)
}

// Package is what a [Builder] made.
type Package[B any] struct {
	// Hash is the hash of the package's bytes.
	Hash jamq.PackageHash
	// Context is the refine context in them.
	Context jamq.RefineContext
	// Bundle is what the Submitter will get; it holds the bytes.
	Bundle B
}

// Submitter sends packages. Its methods are called from several goroutines at once.
type Submitter[B any] interface {
	// Submit gives a package to a guarantor of request.Core; another one for each request.Attempt. An error is retried
	// after a back-off; [WithClass] says what else it calls for. ctx ends with Config.SubmitTimeout or the runner.
	Submit(ctx context.Context, request bundlequeue.Send[B]) error
}

// Config holds what a runner needs besides the host's interfaces. Begin with [DefaultConfig].
type Config struct {
	// Queue configures the queue.
	Queue bundlequeue.Config
	// Window says when packages are sent.
	Window Window
	// BuildTimeout and SubmitTimeout bound one call each; 10 s and one slot by default, positive.
	BuildTimeout, SubmitTimeout time.Duration
	// Observe is told every effect, in order, after the queue has taken the event. It runs on the runner's goroutine: it
	// should be quick and must not call the runner and wait. A failed bundle counts as taken back when Observe returns, so a host
	// that must lose nothing keeps its transactions here. Nil by default: then failed bundles are only logged.
	Observe func(bundlequeue.Effect)
	// Logger gets what an operator should know. Nil is silent.
	Logger *slog.Logger
}

// DefaultConfig returns the defaults for a chain.
func DefaultConfig(spec jamq.ChainSpec) Config {
	return Config{
		Queue:         bundlequeue.DefaultConfig(spec),
		Window:        DefaultWindow(spec),
		BuildTimeout:  10 * time.Second,
		SubmitTimeout: spec.SlotDuration,
	}
}

// Validate names the first field that is out of range. The error wraps [ErrInvalidConfig] or the queue's.
func (c *Config) Validate() error {
	if err := c.Queue.Validate(); err != nil {
		return fmt.Errorf("%w: Queue: %w", ErrInvalidConfig, err)
	}
	if err := c.Window.Validate(); err != nil {
		return err
	}
	if c.BuildTimeout <= 0 || c.SubmitTimeout <= 0 {
		return fmt.Errorf("%w: BuildTimeout %v, SubmitTimeout %v: want positive", ErrInvalidConfig, c.BuildTimeout, c.SubmitTimeout)
	}
	return nil
}

// Runner drives one bundlequeue. All methods may be called from any goroutine; none is called back under a lock.
type Runner[B any] struct {
	cfg       Config
	builder   Builder[B]
	submitter Submitter[B]
	log       *slog.Logger

	calls chan func() // run on the loop's goroutine, one after another
	done  chan struct{}

	// Owned by the loop's goroutine once it runs.
	queue *bundlequeue.Queue[B]
	ctx   context.Context
	timer *time.Timer
	// idle are closed when no bundle is under way.
	idle []chan struct{}

	mu      sync.Mutex
	started bool
	cancel  context.CancelFunc
	work    sync.WaitGroup // builds and sends under way
}

// NewRunner returns a runner that is not started. root is a final JAM block from which on blocks will be imported.
func NewRunner[B any](cfg Config, root jamq.Block, builder Builder[B], submitter Submitter[B]) (*Runner[B], error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if builder == nil || submitter == nil {
		return nil, fmt.Errorf("%w: Builder and Submitter must be given", ErrInvalidConfig)
	}
	queue, err := bundlequeue.New[B](cfg.Queue, root)
	if err != nil {
		return nil, err
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Runner[B]{
		cfg: cfg, builder: builder, submitter: submitter, log: log, queue: queue,
		calls: make(chan func()), done: make(chan struct{}),
	}, nil
}

// Start begins to run until ctx ends or Stop is called. A runner starts once: again, the error wraps ErrStarted.
func (r *Runner[B]) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started {
		return ErrStarted
	}
	r.started = true
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.timer = time.NewTimer(0)
	go r.loop()
	return nil
}

// Stop ends the runner and waits until its goroutines have ended. It does not wait for bundles: see Drain.
// Stopping a runner that does not run does nothing.
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
	defer r.work.Wait()
	defer r.timer.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case call := <-r.calls:
			call()
		case <-r.timer.C:
			if err := r.step(bundlequeue.Tick{}); err != nil {
				r.log.Error("tick refused", "err", err)
			}
		}
	}
}

// step feeds the queue one event and carries out the effects. It runs on the loop's goroutine.
func (r *Runner[B]) step(ev bundlequeue.Event) error {
	now := time.Now()
	effects, err := r.queue.Step(now, ev)
	if err != nil {
		return err
	}
	for _, e := range effects {
		if failed, ok := e.(bundlequeue.Failed[B]); ok {
			defer r.takenBack(failed) // once all effects of this step are carried out
		}
		if r.cfg.Observe != nil {
			r.cfg.Observe(e)
		}
		switch e := e.(type) {
		case bundlequeue.Build[B]:
			r.work.Go(func() { r.build(e) })
		case bundlequeue.Send[B]:
			r.work.Go(func() { r.send(e) })
		case bundlequeue.Died:
			r.log.Info("package dead", "block", e.Number, "version", e.Version, "package", e.Package, "reason", e.Reason, "since", e.At)
		case bundlequeue.Failed[B]:
			r.log.Warn("bundle failed", "block", e.Number, "reason", e.Reason)
		}
	}
	if wake, ok := r.queue.NextWake(now); ok {
		r.timer.Reset(time.Until(wake))
	} else {
		r.timer.Stop()
	}
	r.wakeIdle()
	return nil
}

// takenBack answers a failed bundle once the observer has it.
func (r *Runner[B]) takenBack(failed bundlequeue.Failed[B]) {
	if err := r.step(bundlequeue.TakenBack{Ticket: failed.Ticket}); err != nil {
		r.log.Error("failed bundle not taken back", "block", failed.Number, "err", err)
	}
}

// build runs one build and reports its outcome.
func (r *Runner[B]) build(request bundlequeue.Build[B]) {
	ctx, cancel := context.WithTimeout(r.ctx, r.cfg.BuildTimeout)
	defer cancel()
	pkg, err := r.builder.Build(ctx, request)
	if err != nil {
		r.log.Warn("build failed", "block", request.Number, "version", request.Version, "err", err)
		r.report(bundlequeue.BuildFailed{Ticket: request.Ticket})
		return
	}
	r.report(bundlequeue.Built[B]{Ticket: request.Ticket, Package: pkg.Hash, Context: pkg.Context, Bundle: pkg.Bundle})
}

// send waits for the window, sends once and reports the outcome.
func (r *Runner[B]) send(request bundlequeue.Send[B]) {
	if !r.sleepUntil(r.cfg.Window.NextOpen(time.Now())) {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.cfg.SubmitTimeout)
	defer cancel()
	err := r.submitter.Submit(ctx, request)
	if err != nil {
		r.log.Warn("submit failed", "block", request.Number, "version", request.Version, "attempt", request.Attempt, "class", ClassOf(err), "err", err)
	}
	r.report(bundlequeue.Sent{Ticket: request.Ticket, OK: err == nil})
}

// sleepUntil waits until t and reports whether the runner still runs.
func (r *Runner[B]) sleepUntil(t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// report hands the outcome of a build or a send to the loop.
func (r *Runner[B]) report(ev bundlequeue.Event) {
	call := func() {
		err := r.step(ev)
		built, isBuilt := ev.(bundlequeue.Built[B])
		if isBuilt && errors.Is(err, bundlequeue.ErrInadmissible) {
			r.log.Error("builder made an inadmissible package", "package", built.Package, "err", err)
			err = r.step(bundlequeue.BuildFailed{Ticket: built.Ticket})
		}
		if err != nil && !errors.Is(err, bundlequeue.ErrNotExpected) {
			r.log.Error("outcome refused", "err", err)
		}
	}
	select {
	case r.calls <- call:
	case <-r.ctx.Done():
	}
}

// do runs f on the loop's goroutine and waits for it.
func (r *Runner[B]) do(ctx context.Context, f func() error) error {
	r.mu.Lock()
	started := r.started
	r.mu.Unlock()
	if !started {
		return ErrStopped
	}
	result := make(chan error, 1)
	select {
	case r.calls <- func() { result <- f() }:
	case <-r.done:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	// The loop took it, so it will run it: an accepted call is never left without an answer.
	return <-result
}

// Enqueue adds a bundle. Errors are those of the queue, ErrStopped, or ctx's if the runner did not take it in time.
func (r *Runner[B]) Enqueue(ctx context.Context, bundle bundlequeue.Enqueue[B]) error {
	return r.do(ctx, func() error { return r.step(bundle) })
}

// Import feeds one imported JAM block and the head of the best chain after it. See bundlequeue.Imported.
func (r *Runner[B]) Import(ctx context.Context, block jamq.Block, best jamq.HeaderHash) error {
	return r.do(ctx, func() error { return r.step(bundlequeue.Imported{Block: block, Best: best}) })
}

// Finalize feeds a finalized JAM block. See bundlequeue.FinalizedBlock.
func (r *Runner[B]) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	return r.do(ctx, func() error { return r.step(bundlequeue.FinalizedBlock{Hash: hash}) })
}

// CanEnqueue reports whether the queue would take another bundle now.
func (r *Runner[B]) CanEnqueue(ctx context.Context) (can bool, err error) {
	err = r.do(ctx, func() error {
		can = r.queue.CanEnqueue()
		return nil
	})
	return can, err
}

// Info describes one bundle: see bundlequeue.Queue.Info.
func (r *Runner[B]) Info(ctx context.Context, number uint64) (info bundlequeue.Info, found bool, err error) {
	err = r.do(ctx, func() error {
		info, found = r.queue.Info(number)
		return nil
	})
	return info, found, err
}

// Stats summarizes the queue.
func (r *Runner[B]) Stats(ctx context.Context) (stats bundlequeue.Stats, err error) {
	err = r.do(ctx, func() error {
		stats = r.queue.Stats()
		return nil
	})
	return stats, err
}

// Drain waits until every bundle is final, or ctx ends. The host goes on feeding blocks meanwhile.
func (r *Runner[B]) Drain(ctx context.Context) error {
	idle := make(chan struct{})
	err := r.do(ctx, func() error {
		r.idle = append(r.idle, idle)
		r.wakeIdle()
		return nil
	})
	if err != nil {
		return err
	}
	select {
	case <-idle:
		return nil
	case <-r.done:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wakeIdle tells those that drain once nothing is under way.
func (r *Runner[B]) wakeIdle() {
	if len(r.idle) == 0 || r.queue.Pending() > 0 {
		return
	}
	for _, c := range r.idle {
		close(c)
	}
	r.idle = nil
}
