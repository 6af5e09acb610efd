package submit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
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

// carryOut reports effects, and acts on those that ask for it. A failed bundle is answered once all
// effects of the step are reported.
func (r *Runner[B]) carryOut(now time.Time, effects []bundlequeue.Effect) {
	var failed []bundlequeue.Failed[B]
	for _, e := range effects {
		r.effects++
		r.tell(Observation{Number: r.effects, At: now, Effect: e})
		if f, ok := e.(bundlequeue.Failed[B]); ok {
			failed = append(failed, f)
		}
		r.act(e)
	}
	for _, f := range failed {
		r.takenBack(f)
	}
}

// tell reports an effect to the observer, the log and the metrics.
func (r *Runner[B]) tell(o Observation) {
	r.cfg.Metrics.count(CountEffects, effectName[B](o.Effect))
	if r.cfg.Observe != nil {
		r.cfg.Observe(o)
	}
	switch e := o.Effect.(type) {
	case bundlequeue.Died:
		if e.Unsent {
			r.cfg.Metrics.count(CountUseless, e.Reason.String())
		}
		r.log.Info("package dead", "block", e.Number, "version", e.Version, "package", e.Package, "reason", e.Reason, "since", e.At, "sent", !e.Unsent)
	case bundlequeue.Failed[B]:
		r.log.Warn("bundle failed", "block", e.Number, "reason", e.Reason)
	}
}

// act begins the build or the send that an effect asks for. While the runner is held or paused the
// request stays open in the queue.
func (r *Runner[B]) act(e bundlequeue.Effect) {
	if r.held || r.paused != nil {
		return
	}
	switch e := e.(type) {
	case bundlequeue.Build[B]:
		r.start(e.Ticket, func() { r.build(e) })
	case bundlequeue.Send[B]:
		r.start(e.Ticket, func() { r.send(e) })
	}
}

// start runs the work for a ticket, unless it is under way already.
func (r *Runner[B]) start(ticket uint64, work func()) {
	if _, twice := r.working[ticket]; twice {
		return
	}
	r.working[ticket] = struct{}{}
	r.work.Go(work)
}

// release ends the hold after a recovery.
func (r *Runner[B]) release() {
	if !r.held {
		return
	}
	r.held = false
	r.mu.Lock()
	r.health.Held = false
	r.mu.Unlock()
	r.actOnOpen()
}

// pause stops building and sending after a fatal error.
func (r *Runner[B]) pause(err error) {
	r.paused = err
	r.mu.Lock()
	r.health.Paused = err
	r.mu.Unlock()
	r.cfg.Metrics.count(CountPauses, Fatal.String())
	r.log.Error("runner pauses: it builds and sends nothing until it is resumed", "err", err)
}

// unpause begins to build and send again.
func (r *Runner[B]) unpause() {
	if r.paused == nil {
		return
	}
	r.paused = nil
	r.mu.Lock()
	r.health.Paused = nil
	r.mu.Unlock()
	r.log.Info("runner goes on")
	r.actOnOpen()
}

// actOnOpen begins what the queue waits for and is not under way.
func (r *Runner[B]) actOnOpen() {
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
		r.report(request.Ticket, bundlequeue.BuildFailed{Ticket: request.Ticket}, err)
		return
	}
	r.report(request.Ticket, bundlequeue.Built[B]{Ticket: request.Ticket, Package: pkg.Hash, Context: pkg.Context, Bundle: pkg.Bundle}, nil)
}

// send waits for the window, sends once and reports the outcome.
func (r *Runner[B]) send(request bundlequeue.Send[B]) {
	if !r.sleepUntil(r.window().NextOpen(time.Now())) || !r.stillActs(request.Ticket) {
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
	r.report(request.Ticket, bundlequeue.Sent{Ticket: request.Ticket, OK: err == nil, Refused: err != nil && ClassOf(err) == Rebuild}, err)
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

// stillActs reports whether the runner has not been paused since it began the work for a ticket. If
// it has, the work ends here, and the request stays open in the queue.
func (r *Runner[B]) stillActs(ticket uint64) bool {
	acts := make(chan bool, 1)
	call := func() {
		if r.paused != nil {
			delete(r.working, ticket)
		}
		acts <- r.paused == nil
	}
	select {
	case r.calls <- call:
		return <-acts
	case <-r.ctx.Done():
		return false
	}
}

// report hands the outcome of a build or a send to the loop. A fatal error pauses the runner before
// the queue can ask for more.
func (r *Runner[B]) report(ticket uint64, ev bundlequeue.Event, outcome error) {
	call := func() {
		delete(r.working, ticket)
		if outcome != nil && ClassOf(outcome) == Fatal {
			r.pause(outcome)
		}
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

// take feeds the queue an outcome, and notes whether a package was of use.
func (r *Runner[B]) take(ev bundlequeue.Event) error {
	built, isBuilt := ev.(bundlequeue.Built[B])
	if !isBuilt {
		return r.step(ev)
	}
	err := r.step(ev)
	switch {
	case errors.Is(err, bundlequeue.ErrInadmissible):
		r.log.Error("builder made an inadmissible package", "package", built.Package, "err", err)
		r.noteBuildOutcome(err)
		return r.step(bundlequeue.BuildFailed{Ticket: built.Ticket})
	case err == nil && !r.queue.Holds(built.Package):
		r.noteBuildOutcome(fmt.Errorf("%w: %s, anchored at %s", ErrUseless, built.Package, built.Context.Anchor))
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

// Step feeds the queue any event, such as bundlequeue.Reserve, Release, Rekey, GiveUp, Resize,
// Cores, Retry, Told or Continue. The effects go to Config.Observe. Errors are those of the queue,
// ErrStopped, or ctx's if the runner did not take the event in time; then it had no effect.
//
// If Step returns ErrJournal, the runner has stopped and it is unknown whether the step was
// recorded.
func (r *Runner[B]) Step(ctx context.Context, ev bundlequeue.Event) error {
	return r.do(ctx, func() error { return r.feed(ev) })
}

// feed takes an event from the host.
func (r *Runner[B]) feed(ev bundlequeue.Event) error {
	if err := r.step(ev); err != nil {
		return err
	}
	switch ev := ev.(type) {
	case bundlequeue.Imported:
		r.noteImport(ev.Block.Slot)
		if r.recent(r.queue.Best().Slot) {
			r.release()
		}
	case bundlequeue.Cores: // a fatal error may have been about the cores
		r.unpause()
	}
	return nil
}

// Enqueue adds a bundle: see bundlequeue.Enqueue. If it returns ErrJournal, the runner has stopped
// and it is unknown whether the bundle was recorded. Do not reuse its transactions until
// [Runner.Recovered] of the next runner shows whether its commitment is in the queue.
func (r *Runner[B]) Enqueue(ctx context.Context, bundle bundlequeue.Enqueue[B]) error {
	return r.Step(ctx, bundle)
}

// EnqueueNext adds a bundle with the next number, and returns the number. Errors are those of
// Enqueue.
func (r *Runner[B]) EnqueueNext(ctx context.Context, commitment common.Hash, bundle B) (number uint64, err error) {
	err = r.do(ctx, func() error {
		number = r.queue.Next()
		return r.feed(bundlequeue.Enqueue[B]{Number: number, Commitment: commitment, Bundle: bundle})
	})
	return number, err
}

// Next returns the number that the next bundle must have.
func (r *Runner[B]) Next(ctx context.Context) (number uint64, err error) {
	err = r.do(ctx, func() error {
		number = r.queue.Next()
		return nil
	})
	return number, err
}

// Import feeds one imported JAM block and the head of the best chain after it: see
// bundlequeue.Imported. A block that finality has overtaken is ignored.
func (r *Runner[B]) Import(ctx context.Context, block jamq.Block, best jamq.HeaderHash) error {
	return ignoreOld(r.Step(ctx, bundlequeue.Imported{Block: block, Best: best}))
}

// Finalize feeds a finalized JAM block: see bundlequeue.FinalizedBlock. An ancestor of a block that
// was finalized before is ignored.
func (r *Runner[B]) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	return ignoreOld(r.Step(ctx, bundlequeue.FinalizedBlock{Hash: hash}))
}

func ignoreOld(err error) error {
	if errors.Is(err, chainview.ErrOld) {
		return nil
	}
	return err
}

// Resume makes a runner act that has recovered and waits for newer blocks (see [OpenRunner]), or
// that a fatal error has paused (see [Fatal]). Otherwise it does nothing.
func (r *Runner[B]) Resume(ctx context.Context) error {
	return r.do(ctx, func() error {
		r.release()
		r.unpause()
		return nil
	})
}

// recent reports whether a block of that slot shows the chain as it is now.
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
		idle = r.idle // shared by all callers, so that one that gives up leaves nothing behind
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

// wakeIdle wakes the callers of Drain once every bundle is final.
func (r *Runner[B]) wakeIdle() {
	if r.idle == nil || r.queue.Pending() > 0 {
		return
	}
	close(r.idle)
	r.idle = nil
}
