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
	// ErrUnused is what [Health] says of a package that was built and is of no use: when it was ready it was dead, or a reorg had overtaken it.
	ErrUnused = errors.New("submit: package of no use")
)

// Runner drives one bundlequeue. All methods may be called from any goroutine; none is called back under a lock.
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
	// held: nothing is built or sent yet. replayed are what has to be told again.
	held     bool
	replayed []Observation
	// idle is closed when no bundle is under way; nil while nobody waits for that.
	idle chan struct{}

	mu      sync.Mutex
	started bool
	cancel  context.CancelFunc
	health  Health
	work    sync.WaitGroup // builds and sends under way
}

// NewRunner returns a runner that is not started. root is a final JAM block from which on blocks will be imported.
// It forgets everything when the process ends: see [OpenRunner].
func NewRunner[B any](cfg Config, root jamq.Block, builder Builder[B], submitter Submitter[B]) (*Runner[B], error) {
	r, err := newRunner(cfg, builder, submitter)
	if err != nil {
		return nil, err
	}
	r.queue, err = bundlequeue.New[B](cfg.Queue, root)
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
	r.health.Running = true
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
			r.resume()
		case <-r.timer.C:
			if err := r.step(bundlequeue.Tick{}); err != nil {
				r.log.Error("tick refused", "err", err)
			}
		}
	}
}

// tellAgain tells what was replayed. Then a snapshot takes the place of that, so that all steps in a journal were taken under one configuration.
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

// step feeds the queue one event, writes that down, and carries out the effects. It runs on the loop's goroutine.
func (r *Runner[B]) step(ev bundlequeue.Event) error {
	now := time.Now()
	if r.ctx.Err() != nil {
		return ErrStopped
	}
	effects, err := r.queue.Step(now, ev)
	if err != nil {
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
	r.cfg.Metrics.observe(StepSeconds, time.Since(now))
	if r.durable != nil && r.steps >= r.durable.SnapshotEvery && r.ctx.Err() == nil {
		if err := r.snapshot(); err != nil {
			r.fail(err) // the step itself is safe
		}
	}
	return nil
}

// fail stops the runner: what it knows is more than what it has written down.
func (r *Runner[B]) fail(err error) {
	r.log.Error("runner stops", "err", err)
	r.mu.Lock()
	r.health.Err = err
	r.mu.Unlock()
	r.cancel()
}

// carryOut tells effects, and acts on those that ask for it. A failed bundle is answered once all effects of the step are told.
func (r *Runner[B]) carryOut(now time.Time, effects []bundlequeue.Effect) {
	var failed []bundlequeue.Failed[B]
	for _, e := range effects {
		r.effects++
		r.tell(Observation{Number: r.effects, At: now, Effect: e})
		if f, ok := e.(bundlequeue.Failed[B]); ok {
			failed = append(failed, f)
		}
		if !r.held {
			r.act(e)
		}
	}
	for _, f := range failed {
		r.takenBack(f)
	}
}

// tell tells the observer and the log of an effect.
func (r *Runner[B]) tell(o Observation) {
	r.cfg.Metrics.count(CountEffects, effectName[B](o.Effect))
	if r.cfg.Observe != nil {
		r.cfg.Observe(o)
	}
	switch e := o.Effect.(type) {
	case bundlequeue.Died:
		r.log.Info("package dead", "block", e.Number, "version", e.Version, "package", e.Package, "reason", e.Reason, "since", e.At)
	case bundlequeue.Failed[B]:
		r.log.Warn("bundle failed", "block", e.Number, "reason", e.Reason)
	}
}

// act begins what an effect asks for.
func (r *Runner[B]) act(e bundlequeue.Effect) {
	switch e := e.(type) {
	case bundlequeue.Build[B]:
		r.work.Go(func() { r.build(e) })
	case bundlequeue.Send[B]:
		r.work.Go(func() { r.send(e) })
	}
}

// resume does what was not answered before a restart.
func (r *Runner[B]) resume() {
	if !r.held {
		return
	}
	r.held = false
	r.mu.Lock()
	r.health.Held = false
	r.mu.Unlock()
	for _, e := range r.queue.Open() {
		if f, ok := e.(bundlequeue.Failed[B]); ok {
			r.tell(Observation{At: time.Now(), Effect: e, Replayed: true})
			r.takenBack(f)
			continue
		}
		r.act(e)
	}
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
	began := r.noteBuild()
	pkg, err := r.builder.Build(ctx, request)
	r.noteBuilt(began)
	if err != nil {
		r.noteBuildOutcome(err)
		r.log.Warn("build failed", "block", request.Number, "version", request.Version, "err", err)
		r.report(bundlequeue.BuildFailed{Ticket: request.Ticket})
		return
	}
	r.report(bundlequeue.Built[B]{Ticket: request.Ticket, Package: pkg.Hash, Context: pkg.Context, Bundle: pkg.Bundle})
}

// send waits for the window, sends once and reports the outcome.
func (r *Runner[B]) send(request bundlequeue.Send[B]) {
	if !r.sleepUntil(r.window().NextOpen(time.Now())) {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.cfg.SubmitTimeout)
	defer cancel()
	began := r.noteSend()
	err := r.submitter.Submit(ctx, request)
	r.noteSent(began, err)
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
		err := r.take(ev)
		if err != nil && !errors.Is(err, bundlequeue.ErrNotExpected) && !errors.Is(err, ErrStopped) {
			r.log.Error("outcome refused", "err", err)
		}
	}
	select {
	case r.calls <- call:
	case <-r.ctx.Done():
	}
}

// take feeds the queue an outcome. What the queue has of a package is noted, since a package that it does not take is no success.
func (r *Runner[B]) take(ev bundlequeue.Event) error {
	built, isBuilt := ev.(bundlequeue.Built[B])
	if !isBuilt {
		return r.step(ev)
	}
	before := r.queue.Stats().Totals.Built
	err := r.step(ev)
	switch {
	case errors.Is(err, bundlequeue.ErrInadmissible):
		r.log.Error("builder made an inadmissible package", "package", built.Package, "err", err)
		r.noteBuildOutcome(err)
		return r.step(bundlequeue.BuildFailed{Ticket: built.Ticket})
	case err == nil && r.queue.Stats().Totals.Built == before:
		r.log.Warn("package of no use", "package", built.Package, "anchor", built.Context.Anchor)
		r.noteBuildOutcome(fmt.Errorf("%w: %s, anchored at %s", ErrUnused, built.Package, built.Context.Anchor))
	default:
		r.noteBuildOutcome(nil)
	}
	return err
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
		return r.stopped()
	case <-ctx.Done():
		return ctx.Err()
	}
	// The loop took it, so it will run it: an accepted call is never left without an answer.
	return <-result
}

// Enqueue adds a bundle. Errors are those of the queue, ErrStopped, or ctx's if the runner did not take it in time: then it is not in the queue. With
// ErrJournal, which stops the runner, it may be: the next one's [Runner.Recovered] says so by its commitment, and until then nobody should use its
// transactions again.
func (r *Runner[B]) Enqueue(ctx context.Context, bundle bundlequeue.Enqueue[B]) error {
	return r.do(ctx, func() error { return r.step(bundle) })
}

// Import feeds one imported JAM block and the head of the best chain after it. See bundlequeue.Imported.
func (r *Runner[B]) Import(ctx context.Context, block jamq.Block, best jamq.HeaderHash) error {
	return r.do(ctx, func() error {
		if err := r.step(bundlequeue.Imported{Block: block, Best: best}); err != nil {
			return err
		}
		r.noteImport(block.Slot)
		if r.recent(r.queue.Best().Slot) {
			r.resume()
		}
		return nil
	})
}

// Finalize feeds a finalized JAM block. See bundlequeue.FinalizedBlock.
func (r *Runner[B]) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	return r.do(ctx, func() error { return r.step(bundlequeue.FinalizedBlock{Hash: hash}) })
}

// Resume lets a runner that has recovered act, whatever it was told since: see [OpenRunner]. Otherwise it does nothing.
func (r *Runner[B]) Resume(ctx context.Context) error {
	return r.do(ctx, func() error {
		r.resume()
		return nil
	})
}

// recent reports whether a block of that slot says how the chain is now.
func (r *Runner[B]) recent(slot jamq.Slot) bool {
	const slots = 3
	return slot+slots >= r.cfg.Window.Clock.SlotAt(time.Now())
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

// Infos describes all bundles that the queue holds, by number.
func (r *Runner[B]) Infos(ctx context.Context) (infos []bundlequeue.Info, err error) {
	err = r.do(ctx, func() error {
		infos = r.queue.Infos()
		return nil
	})
	return infos, err
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
	var idle chan struct{}
	err := r.do(ctx, func() error {
		if r.idle == nil {
			r.idle = make(chan struct{})
		}
		idle = r.idle // of all that wait, so that those who give up leave nothing behind
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
		return r.stopped()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wakeIdle tells those that drain once nothing is under way.
func (r *Runner[B]) wakeIdle() {
	if r.idle == nil || r.queue.Pending() > 0 {
		return
	}
	close(r.idle)
	r.idle = nil
}
