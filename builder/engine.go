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

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

// engine is the part of a builder that does not depend on the type of the block bodies.
// Its exported methods are those of Builder.
type engine struct {
	cfg     Config
	host    host
	network Network
	log     *slog.Logger
	calls   *calls
	records records
	chain   chain

	// turn is a lock for the fields from queue to repeating: a goroutine that has put a token
	// into the channel may use them (see inTurn). Unlike with a mutex, a caller can stop
	// waiting when its context ends.
	turn      chan struct{}
	queue     *bundlequeue.Queue
	requests  requests
	trust     trust
	doubt     doubt
	repeating bool        // after a restart, until Import gets a block that the log does not have
	alarm     *time.Timer // fires when the queue needs a Tick

	shared SharedLog     // the log, if several processes have it, otherwise nil
	tail   *replay       // reads the log; nil when this process leads
	leads  chan struct{} // closed when this process may write to the log

	// proposed is the newest block that the worker has executed, with its decoded body. The
	// step that enqueues the block takes the body from here, because the host's decoder must
	// not run, and perhaps hang, during a step.
	proposed atomic.Pointer[block]
	woken    chan struct{} // holds a token if the worker may have something to do
	doubted  chan error    // an error that wraps errAllLost, from follow to awaitDoubt
	certain  chan struct{} // holds a token if endDoubt may end the doubt

	running chan struct{}   // closed by Run when the queue gets events
	ctx     context.Context // of Run
	stop    context.CancelFunc
	stopped chan struct{} // closed by end, after cause has been set
	cause   error         // the error that Run returns

	mu          sync.Mutex
	interrupt   context.CancelFunc // cancels the context of the last call of Propose
	interrupted bool               // the state on which this call executes will never exist
	health      Health             // without Delayed and Calls, which Builder.Health adds

	// Only the worker uses the fields below, and Open before the worker runs.

	// After a failure of Propose or Final, proposeAt and finalAt are the times before which
	// the worker does not call the method again.
	proposeAt, finalAt time.Time
	// postponed raises the number of records at which the next checkpoint is due, above
	// Config.CheckpointEvery. It grows each time a checkpoint fails, so that the builder does
	// not try again after every record.
	postponed int
	// carried is true if Apply or Undo of the first task has succeeded, but the root of the
	// rollup's state was not checked yet. A repetition then only checks the root.
	carried bool
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
	shared, _ := log.(SharedLog)
	if cfg.NewChain && shared != nil {
		return nil, fmt.Errorf("%w: NewChain is set, and the log is a SharedLog", ErrInvalidConfig)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	calls := &calls{methods: make(map[string]*method)}
	e := &engine{
		cfg: cfg, host: h, network: network, log: cfg.Logger, calls: calls, records: newRecords(log, h, calls),
		turn: make(chan struct{}, 1), requests: requests{working: make(map[uint64]struct{})},
		trust: trust{died: make(map[uint64]anchor.Reason)}, doubted: make(chan error, 1),
		woken: make(chan struct{}, 1), certain: make(chan struct{}, 1),
		running: make(chan struct{}), stopped: make(chan struct{}), interrupt: func() {},
		shared: shared, leads: make(chan struct{}),
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

// Run runs the builder until ctx ends, and then returns the error of ctx. While
// another process leads a [SharedLog], Run follows that process. Run ends earlier
// if the log, the rollup or the network cannot continue; it then returns the
// reason, for example an error that wraps ErrLog, ErrDiverged, ErrEvidence or
// ErrFollow.
//
// Run may be called only once; a second call returns an error and does nothing. To
// run again, the host opens a new builder on the same log.
func (e *engine) Run(ctx context.Context) error {
	if !e.begin(ctx) {
		return errStarted
	}
	err := e.followLeader()
	if err == nil {
		found := e.recovered()
		close(e.running)
		e.note(func(h *Health) { h.Running = true })
		err = e.runUntilDone(found)
	}
	e.end(ctx, err)
	return e.cause
}

// begin prepares Run: it derives the context that the calls of the host get. It returns
// false if Run was called before.
func (e *engine) begin(ctx context.Context) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx != nil {
		return false
	}
	e.ctx, e.stop = context.WithCancel(ctx)
	e.alarm = time.NewTimer(0)
	return true
}

// end stops the builder and waits until the calls of the host have returned.
func (e *engine) end(ctx context.Context, err error) {
	e.stop()
	e.turn <- struct{}{} // a step that has begun is completed first
	e.cause = e.whyEnded(ctx, err)
	<-e.turn
	close(e.stopped)
	// After Run, the host may close the log. Calls of the host that hang may return even
	// later, but nothing that they do reaches the log any more.
	e.requests.work.Wait()
	e.alarm.Stop()
	e.records.stop()
	e.note(func(h *Health) { h.Running = false })
}

// whyEnded returns the error for Run to return, and stores it in Health.Err.
func (e *engine) whyEnded(ctx context.Context, err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch failure := e.records.failure(); {
	case failure != nil: // also if another part of Run ended first because of it
		err = failure
	case e.health.Err != nil:
		err = e.health.Err
	case ctx.Err() != nil:
		// The host stopped the builder, which is no failure.
		return ctx.Err()
	}
	e.health.Err = err
	return err
}

func (e *engine) runUntilDone(found submit.Recovery) error {
	group, running := errgroup.WithContext(e.ctx)
	group.Go(func() error {
		err := guard(func() error { return e.network.Follow(running, found, e) })
		if err == nil && running.Err() == nil {
			return ErrFollow
		}
		return err
	})
	group.Go(func() error { return e.work(running) })
	group.Go(func() error { return e.tick(running) })
	group.Go(func() error { return e.awaitDoubt(running) })
	group.Go(func() error { return e.endDoubt(running) })
	return group.Wait()
}

// tick passes a Tick event to the queue whenever the queue needs one.
func (e *engine) tick(ctx context.Context) error {
	hold := time.NewTimer(e.cfg.HoldTimeout)
	defer hold.Stop()
	for {
		var act func() error
		select {
		case <-e.alarm.C:
			act = func() error { return e.step(bundlequeue.Tick{}) }
		// Config.HoldTimeout has passed, so the wait after a restart ends.
		case <-hold.C:
			act = func() error { e.endHold(); return nil }
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := e.inTurn(ctx, act); err != nil {
			return err
		}
	}
}

// inTurn calls f while no other goroutine uses the queue. If the builder does not run
// or follows, the error wraps ErrStopped.
func (e *engine) inTurn(ctx context.Context, f func() error) error {
	if err := e.whyFollows(); err != nil {
		return err
	}
	if !isClosed(e.running) {
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

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// whyStopped returns the error for a call to a stopped builder, with the cause if there
// is one.
func (e *engine) whyStopped() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.health.Err; err != nil {
		return fmt.Errorf("%w: %w", ErrStopped, err)
	}
	return ErrStopped
}

// Import passes a JAM block and the head of the best chain to the builder: see
// submit.ChainSink, which also describes the errors. The builder writes the step to
// the log before it acts on the block. If the parent of the block is unknown, Run
// ends, because the network is on a different chain or has left out a block. The
// error wraps ErrStopped if Run has not begun or has stopped.
//
// After a restart, a feed may deliver blocks again that the log already has, each
// as the best block. Import therefore ignores best until the first block that the
// log does not have, and keeps the best block of the log. Otherwise the builder
// would go back to an old head.
func (e *engine) Import(ctx context.Context, block jamq.Block, best jamq.HeaderHash) error {
	defer e.wake() // a slot has begun, in which the rollup may have a block to propose
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
		e.noteBest(e.queue.Best())
		return nil
	})
}

// recentSlots is the age up to which a block counts as recent, in slots by the host's
// clock. If the best block is recent, the builder has caught up with the chain after a
// restart.
const recentSlots = 3

// ahead returns how many slots a slot lies in the future, by the host's clock.
func (e *engine) ahead(slot jamq.Slot) int64 {
	return int64(slot) - int64(e.cfg.Window.Clock.SlotAt(time.Now()))
}

// Finalize informs the builder that a JAM block is final: see submit.ChainSink. It ignores a block
// that is an ancestor of the finalized one, and a block that cannot descend from the finalized one.
// The error wraps ErrStopped if Run has not begun or has stopped.
func (e *engine) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	err := e.inTurn(ctx, func() error { return e.step(bundlequeue.FinalizedBlock{Hash: hash}) })
	if errors.Is(err, chainview.ErrOld) {
		return nil
	}
	return err
}

// step passes one event to the queue and carries out the effects.
func (e *engine) step(ev bundlequeue.Event) error {
	now := time.Now()
	effects, err := e.queue.Step(now, ev)
	if err != nil {
		// The queue has refused the event without changing anything, so the builder continues.
		// An error in any later line ends Run.
		return err
	}
	// The following order makes the builder safe: each step is written to the log before it
	// has any effect outside, for example before a package is sent.
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
	e.cfg.Metrics.Record(StepSeconds, time.Since(now).Seconds())
	return nil
}

// check makes the checks that Config.CheckInvariants and Config.Invariants request.
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

// fail ends Run with err, and returns err.
func (e *engine) fail(err error) error {
	// The builder cannot go on, for example because the queue has made a step and it is
	// unknown whether the log has it.
	e.log.Error("builder: it stops", "err", err)
	e.note(func(h *Health) { h.Err = err })
	e.stop()
	return err
}

// follow updates the chain after a step that is in the log.
func (e *engine) follow(now time.Time, ev bundlequeue.Event, effects []bundlequeue.Effect) error {
	var enqueued *block
	if ev, ok := ev.(bundlequeue.Enqueue); ok {
		var err error
		if enqueued, err = e.enqueued(&ev); err != nil {
			return err
		}
	}
	// Open repeats the steps of the log through this same code, so that a restart leads to the
	// same chain.
	if undone := e.chain.follow(now, enqueued, effects); undone {
		e.mu.Lock()
		e.interrupted = true // a running Propose executes on a state that will never exist
		e.interrupt()
		e.mu.Unlock()
	}
	switch err := e.trust.follow(effects); {
	case err == nil || !isClosed(e.running): // an old step of the log is repeated
	case !errors.Is(err, errAllLost): // the service cannot refute this evidence
		_ = e.fail(err)
	default:
		select {
		case e.doubted <- err:
		default: // awaitDoubt has an earlier error to examine
		}
	}
	e.wake()
	return nil
}

// enqueued returns the block that a step has enqueued.
func (e *engine) enqueued(ev *bundlequeue.Enqueue) (*block, error) {
	if b := e.proposed.Load(); b != nil && b.commitment == ev.Commitment {
		// The worker has just executed this block, so its body is at hand and the host's
		// decoder need not run during a step.
		return b, nil
	}
	b, err := readBlock(ev.Bundle)
	if err == nil {
		err = e.decode(&b)
	}
	return &b, err
}

// report counts an effect for the metrics, and logs it if operators should know.
func (e *engine) report(effect bundlequeue.Effect) {
	e.cfg.Metrics.Add(CountEffects, effectName(effect), 1)
	switch effect := effect.(type) {
	case bundlequeue.Died:
		if effect.Unsent {
			e.cfg.Metrics.Add(CountUseless, effect.Reason.String(), 1)
		}
		e.log.Info("builder: a package is dead", "block", effect.Number, "version", effect.Version,
			"package", effect.Package, "reason", effect.Reason, "since", effect.At, "sent", !effect.Unsent)
	case bundlequeue.Failed:
		e.log.Warn("builder: a block has failed", "block", effect.Number, "reason", effect.Reason)
	}
}

// wake makes the worker check whether there is something to do. It does not block.
func (e *engine) wake() {
	select {
	case e.woken <- struct{}{}:
	default:
	}
}
