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
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

// engine is a builder whose blocks have opaque bodies. Its exported methods are those of
// Builder.
type engine struct {
	cfg     Config
	host    host
	network Network
	log     *slog.Logger
	calls   *calls
	records records
	chain   chain
	found   submit.Recovery // for Network.Follow

	// turn holds a token while a goroutine uses the queue and the fields after it: see
	// inTurn. It is a channel so that a caller can give up waiting.
	turn      chan struct{}
	queue     *bundlequeue.Queue
	requests  requests
	trust     trust
	repeating bool        // after a restart, while Follow may repeat blocks
	alarm     *time.Timer // when the queue must be woken

	// proposed is the last block that the worker has given to the queue.
	proposed atomic.Pointer[block]
	// admitting has a weight of one for each operation that is on its way from the log
	// to the rollup. A checkpoint takes the whole, so that it cannot fall in between.
	admitting *semaphore.Weighted
	woken     chan struct{} // holds a token if there may be work
	doubted   chan error    // gets the error of trust

	running chan struct{}   // closed when Run has begun and ctx is set
	ctx     context.Context // of Run
	stop    context.CancelFunc
	stopped chan struct{} // closed when Run has ended with cause
	cause   error

	mu          sync.Mutex
	interrupt   context.CancelFunc // of a running Propose
	interrupted bool               // its pre-state is gone
	health      Health             // without what Builder.Health adds

	// The worker owns these: when it repeats a call of Propose and of Final, the records by
	// which the next checkpoint is late, and whether it has made the call of the first task,
	// so that only the root is unknown.
	proposeAt, finalAt time.Time
	postponed          int
	carried            bool
}

// openEngine returns an engine that continues at the end of its log: see Open.
func openEngine(ctx context.Context, cfg Config, log Log, h host, network Network) (*engine, error) {
	if log == nil || network == nil {
		return nil, fmt.Errorf("%w: log or network is nil", ErrInvalidConfig)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if _, ok := h.optional().(Checkpointer); cfg.NewChain && !ok {
		return nil, fmt.Errorf("%w: NewChain is set, and the rollup is no Checkpointer", ErrInvalidConfig)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	calls := &calls{methods: make(map[string]*method)}
	e := &engine{
		cfg: cfg, host: h, network: network, log: cfg.Logger, calls: calls, records: newRecords(log, calls),
		turn: make(chan struct{}, 1), requests: requests{working: make(map[uint64]struct{})},
		trust: trust{died: make(map[uint64]anchor.Reason)}, doubted: make(chan error, 1),
		admitting: semaphore.NewWeighted(everyone), woken: make(chan struct{}, 1),
		running: make(chan struct{}), stopped: make(chan struct{}), interrupt: func() {},
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

// errStarted is returned by a second call of Run.
var errStarted = errors.New("builder: Run was called before")

// Run runs the builder until ctx ends, and returns its error. It returns another
// error if the log, the rollup or the network cannot go on, for example one that wraps
// ErrLog, ErrDiverged or ErrEvidence. Run may be called once.
func (e *engine) Run(ctx context.Context) error {
	if !e.begin(ctx) {
		return errStarted
	}
	err := e.runUntilDone()
	e.end(ctx, err)
	return e.cause
}

// begin sets the context of Run, and reports whether this is the first call.
func (e *engine) begin(ctx context.Context) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx != nil {
		return false
	}
	e.ctx, e.stop = context.WithCancel(ctx)
	e.alarm = time.NewTimer(0)
	e.health.Running = true
	close(e.running)
	return true
}

// end waits until the calls of the host have returned, except Check and Admit. The host may close
// the log then. err is that of the part of Run that has ended first.
func (e *engine) end(ctx context.Context, err error) {
	e.stop()
	e.turn <- struct{}{} // a step that has begun is carried out
	e.cause = e.whyEnded(ctx, err)
	<-e.turn
	close(e.stopped)
	e.requests.work.Wait()
	e.alarm.Stop()
	e.records.stop()
	e.note(func(h *Health) { h.Running = false })
}

// whyEnded returns the error of Run.
func (e *engine) whyEnded(ctx context.Context, err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch failure := e.records.failure(); {
	case failure != nil: // whatever met it first
		err = failure
	case e.health.Err != nil:
		err = e.health.Err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	e.health.Err = err
	return err
}

func (e *engine) runUntilDone() error {
	group, running := errgroup.WithContext(e.ctx)
	group.Go(func() error {
		err := guard(func() error { return e.network.Follow(running, e.found, e) })
		if err == nil && running.Err() == nil {
			return ErrFollow
		}
		return err
	})
	group.Go(func() error { return e.work(running) })
	group.Go(func() error { return e.tick(running) })
	group.Go(func() error { return e.awaitDoubt(running) })
	return group.Wait()
}

// tick wakes the queue when it is time, and ends the wait after a restart.
func (e *engine) tick(ctx context.Context) error {
	hold := time.NewTimer(e.cfg.HoldTimeout)
	defer hold.Stop()
	for {
		var act func() error
		select {
		case <-e.alarm.C:
			act = func() error { return e.step(bundlequeue.Tick{}) }
		case <-hold.C:
			act = func() error { e.release(); return nil }
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := e.inTurn(ctx, act); err != nil {
			return err
		}
	}
}

// inTurn calls f while no other goroutine uses the queue. The error is that of f or ctx, or
// wraps ErrStopped; in these cases f was not called.
func (e *engine) inTurn(ctx context.Context, f func() error) error {
	select {
	case <-e.running:
	default:
		return ErrStopped
	}
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-e.ctx.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	if e.ctx.Err() != nil {
		return e.whyStopped()
	}
	return f()
}

// whyStopped returns ErrStopped, with the cause if the builder has stopped by itself.
func (e *engine) whyStopped() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.health.Err; err != nil {
		return fmt.Errorf("%w: %w", ErrStopped, err)
	}
	return ErrStopped
}

// Import passes on a JAM block: see submit.ChainSink. The step is in the log before
// anything follows from it. A feed may repeat blocks after a restart, each as the best one.
// The best block therefore stays until Import gets a block that the log does not have.
func (e *engine) Import(ctx context.Context, block jamq.Block, best jamq.HeaderHash) error {
	defer e.wake() // a slot has begun
	return e.inTurn(ctx, func() error {
		if e.repeating = e.repeating && e.queue.Knows(block.Hash); e.repeating {
			best = e.queue.Best().Hash
		}
		err := e.step(bundlequeue.Imported{Block: block, Best: best})
		switch {
		case errors.Is(err, chainview.ErrMissingParent):
			return e.fail(fmt.Errorf("builder: the network is on another chain than the log, or it left out a block after the log's last final one: %w", err))
		case err != nil:
			return err
		}
		e.noteImport(block.Slot)
		if e.isRecent(e.queue.Best().Slot) {
			e.release()
		}
		return nil
	})
}

// isRecent reports whether a slot is at most three slots old.
func (e *engine) isRecent(slot jamq.Slot) bool {
	const slots = 3
	return slot+slots >= e.cfg.Window.Clock.SlotAt(time.Now())
}

// Finalize passes on a final JAM block: see submit.ChainSink. It ignores a block that is an
// ancestor of the finalized one.
func (e *engine) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	err := e.inTurn(ctx, func() error { return e.step(bundlequeue.FinalizedBlock{Hash: hash}) })
	if errors.Is(err, chainview.ErrOld) {
		return nil
	}
	return err
}

// step gives one event to the queue, and is the only place that does. The order of its
// lines is the promise of this package: the step is in the log before anything follows
// from it. If the queue refuses the event, nothing has happened.
func (e *engine) step(ev bundlequeue.Event) error {
	now := time.Now()
	effects, err := e.queue.Step(now, ev)
	if err != nil {
		return err
	}
	if err := e.check(); err != nil {
		return e.fail(err)
	}
	if err := e.appendStep(now, ev); err != nil {
		return e.fail(err)
	}
	if err := e.follow(now, ev, effects); err != nil {
		return e.fail(err)
	}
	for _, effect := range effects {
		e.report(effect)
		e.act(effect)
	}
	if at, ok := e.queue.NextWake(now); ok {
		e.alarm.Reset(time.Until(at))
	} else {
		e.alarm.Stop()
	}
	e.noteWaiting()
	e.cfg.Metrics.observe(StepSeconds, time.Since(now))
	return nil
}

// check makes the configured checks of the queue and of the host's state.
func (e *engine) check() error {
	if e.cfg.CheckInvariants {
		if err := e.queue.Check(); err != nil {
			return err
		}
	}
	if e.cfg.Invariants != nil {
		return guard(e.cfg.Invariants)
	}
	return nil
}

// appendStep writes a step to the log.
func (e *engine) appendStep(now time.Time, ev bundlequeue.Event) error {
	record, err := bundlequeue.AppendRecord([]byte{recordStep}, now, ev)
	if err != nil {
		return err
	}
	return e.records.append(record)
}

// fail ends Run: the queue has taken a step that the log does not have, or the JAM blocks are of
// no use any more.
func (e *engine) fail(err error) error {
	e.log.Error("builder: it stops", "err", err)
	e.note(func(h *Health) { h.Err = err })
	e.stop()
	return err
}

// follow moves the chain by a step of the queue that is in the log. It is called in the same
// way when the log is read again. The error is that of a block in the log that cannot be read.
func (e *engine) follow(now time.Time, ev bundlequeue.Event, effects []bundlequeue.Effect) error {
	var enqueued *block
	if ev, ok := ev.(bundlequeue.Enqueue); ok {
		var err error
		if enqueued, err = e.enqueued(&ev); err != nil {
			return err
		}
	}
	if undone := e.chain.follow(now, enqueued, effects); undone {
		e.mu.Lock()
		e.interrupted = true // the proposal has no pre-state any more
		e.interrupt()
		e.mu.Unlock()
	}
	switch err := e.trust.follow(effects); {
	case err == nil || e.ctx == nil:
	case !errors.Is(err, errAllLost): // no service can refute it
		_ = e.fail(err)
	default:
		select {
		case e.doubted <- err:
		default: // the service is asked already
		}
	}
	e.wake()
	return nil
}

// enqueued returns the block that a step has enqueued: the proposal, or a block of the
// log. No code of the host runs for the proposal, because the queue waits meanwhile.
func (e *engine) enqueued(ev *bundlequeue.Enqueue) (*block, error) {
	if b := e.proposed.Load(); b != nil && b.commitment == ev.Commitment {
		return b, nil
	}
	b, err := readBlock(ev.Bundle)
	if err == nil {
		err = e.decode(&b)
	}
	return &b, err
}

// report logs and counts an effect.
func (e *engine) report(effect bundlequeue.Effect) {
	e.cfg.Metrics.count(CountEffects, effectName(effect))
	switch effect := effect.(type) {
	case bundlequeue.Died:
		if effect.Unsent {
			e.cfg.Metrics.count(CountUseless, effect.Reason.String())
		}
		e.log.Info("builder: a package is dead", "block", effect.Number, "version", effect.Version,
			"package", effect.Package, "reason", effect.Reason, "since", effect.At, "sent", !effect.Unsent)
	case bundlequeue.Failed:
		e.log.Warn("builder: a block has failed", "block", effect.Number, "reason", effect.Reason)
	}
}

// wake makes the worker look for work.
func (e *engine) wake() {
	select {
	case e.woken <- struct{}{}:
	default:
	}
}
