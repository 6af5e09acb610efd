package builder

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

// requests tracks the goroutines that make and send packages. The queue requests this work
// with the effects Build and Send. Except for work, the fields are used only inside
// inTurn, or while Open recovers.
type requests struct {
	working map[uint64]struct{} // tickets of the requests whose goroutine runs
	held    bool                // no package is made or sent yet after a restart
	paused  error               // the fatal error because of which no package is made or sent
	work    sync.WaitGroup      // counts the goroutines that make or send packages
}

// act begins the work that a Build or Send effect requests.
func (e *engine) act(effect bundlequeue.Effect) {
	if e.requests.held || e.requests.paused != nil || e.ctx.Err() != nil {
		// Nothing is lost: the queue keeps the request open, and actOnOpen or the next start
		// begins the work.
		return
	}
	switch r := effect.(type) {
	case bundlequeue.Build:
		e.start(r.Ticket, func() { e.build(r) })
	case bundlequeue.Send:
		e.start(r.Ticket, func() { e.send(r) })
	}
}

// start runs work in a goroutine, unless one is working on the ticket already.
func (e *engine) start(ticket uint64, work func()) {
	if _, twice := e.requests.working[ticket]; twice {
		return
	}
	e.requests.working[ticket] = struct{}{}
	e.requests.work.Go(work)
}

// actOnOpen begins the work on all open requests that no goroutine works on.
func (e *engine) actOnOpen() {
	for _, effect := range e.queue.Open() {
		e.act(effect)
	}
}

// release ends the wait after a restart, unless the log may lack records.
func (e *engine) release() {
	if !e.requests.held || e.doubt.lost {
		return
	}
	e.requests.held = false
	e.note(func(h *Health) { h.Held = false })
	// The queue has requested packages in the meantime.
	e.actOnOpen()
}

// endHold ends the wait after a restart, because Config.HoldTimeout has passed.
func (e *engine) endHold() {
	// Config.HoldTimeout has passed without a recent JAM block. If records may be lost, the
	// builder cannot know how long it must wait, so it continues to wait and tells the
	// operator.
	if e.doubt.lost && !e.doubt.seen {
		e.log.Error("builder: it makes no package, because the log may have lost records, and no recent JAM block shows how long it has to wait; check the clock of this machine and the JAM node, or resume the builder if nothing was lost", "slots", -e.ahead(e.queue.Best().Slot))
	}
	e.release()
}

// pause stops all making and sending of packages until unpause is called.
func (e *engine) pause(err error) {
	e.requests.paused = err
	e.note(func(h *Health) { h.Paused = err })
	e.cfg.Metrics.Add(CountPauses, submit.Fatal.String(), 1)
	e.log.Error("builder: it is paused, and makes and sends no packages until it is resumed", "err", err)
}

// unpause ends the pause after a fatal error, and works on the open requests.
func (e *engine) unpause() {
	if e.requests.paused == nil {
		return
	}
	e.requests.paused = nil
	e.note(func(h *Health) { h.Paused = nil })
	e.log.Info("builder: it is resumed")
	e.actOnOpen()
}

// build makes the package that the queue has requested, and answers the queue.
func (e *engine) build(r bundlequeue.Build) {
	ctx, cancel := context.WithTimeout(e.ctx, e.cfg.BuildTimeout)
	defer cancel()
	began := e.noteBuild()
	built, err := e.pack(ctx, &r)
	e.noteBuilt(began)
	if err != nil {
		e.noteBuildOutcome(err)
		e.log.Warn("builder: no package was made", "block", r.Number, "version", r.Version, "err", err)
		e.answer(r.Ticket, err, func() error { return e.step(bundlequeue.BuildFailed{Ticket: r.Ticket}) })
		return
	}
	e.answer(r.Ticket, nil, func() error { return e.stepBuilt(&built) })
}

// stepBuilt gives a new package to the queue. The queue may refuse the package, or drop it
// because it is of no use; stepBuilt counts these builds as failed.
func (e *engine) stepBuilt(built *bundlequeue.Built) error {
	err := e.step(*built)
	switch {
	case errors.Is(err, bundlequeue.ErrInadmissible):
		e.log.Error("builder: Network.Pack made a package that the queue did not ask for", "package", built.Package, "err", err)
		e.noteBuildOutcome(err)
		return e.step(bundlequeue.BuildFailed{Ticket: built.Ticket})
	// The queue has accepted the answer but not kept the package. This happens if the package
	// was already dead when it was ready, for example because its anchor had expired.
	case err == nil && !e.queue.Holds(built.Package):
		e.noteBuildOutcome(fmt.Errorf("%w: %s, anchored at %s", ErrUseless, built.Package, built.Context.Anchor))
	default:
		e.noteBuildOutcome(nil)
	}
	return err
}

// pack makes a package.
func (e *engine) pack(ctx context.Context, r *bundlequeue.Build) (built bundlequeue.Built, err error) {
	header, err := readBlock(r.Bundle)
	if err != nil {
		return built, err
	}
	// Before this package is sent, the rollup must execute the block a second time, in Apply,
	// and reach the same root. A rollup that is not deterministic is detected here, before JAM
	// sees its block.
	b, err := e.awaitApplied(ctx, &header)
	if err != nil {
		return built, err
	}
	payload, err := await(ctx, e.calls, "Rollup.Payload", func() ([]byte, error) { return e.host.payload(ctx, b) })
	if err != nil {
		return built, err
	}
	pkg, err := await(ctx, e.calls, "Network.Pack", func() (Package, error) { return e.network.Pack(ctx, anchorOf(r), payload) })
	if err != nil {
		return built, err
	}
	err = checkSize("the package of block", r.Number, len(pkg.Data))
	return bundlequeue.Built{Ticket: r.Ticket, Package: pkg.Hash, Context: pkg.Context, Bundle: appendPackage(nil, &pkg)}, err
}

// awaitApplied waits until the rollup has executed a block in Apply, and returns the block
// with its decoded body.
func (e *engine) awaitApplied(ctx context.Context, header *block) (block, error) {
	for {
		b, there, applied, moved := e.chain.find(header.commitment)
		switch {
		case !there:
			return block{}, fmt.Errorf("builder: block %d was undone", header.Number)
		case applied:
			return b, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return block{}, ctx.Err()
		}
	}
}

// send waits for the sending window, sends a package once, and answers the queue.
func (e *engine) send(r bundlequeue.Send) {
	if !e.sleepUntil(e.window().NextOpen(time.Now())) || !e.stillActs(r.Ticket) {
		return
	}
	ctx, cancel := context.WithTimeout(e.ctx, e.cfg.SendTimeout)
	defer cancel()
	began := e.noteSend()
	pkg, err := readPackage(r.Bundle)
	if err == nil {
		err = e.calls.make(ctx, "Network.Send", func() error { return e.network.Send(ctx, pkg, r.Core, r.Attempt) })
	}
	class := submit.ClassOf(err)
	e.noteSent(began, err)
	if err != nil {
		e.log.Warn("builder: a package was not sent", "block", r.Number, "version", r.Version, "attempt", r.Attempt, "class", class, "err", err)
	}
	sent := bundlequeue.Sent{Ticket: r.Ticket, OK: err == nil, Refused: err != nil && class == submit.Rebuild}
	e.answer(r.Ticket, err, func() error { return e.step(sent) })
}

// answer reports the outcome of a request to the queue by calling step.
func (e *engine) answer(ticket uint64, outcome error, step func() error) {
	err := e.inTurn(e.ctx, func() error {
		delete(e.requests.working, ticket)
		if outcome != nil && submit.ClassOf(outcome) == submit.Fatal {
			// Pause first, so that the effects of step begin no new work.
			e.pause(outcome)
		}
		return step()
	})
	// ErrNotExpected means that the queue has canceled the request in the meantime.
	if err != nil && !errors.Is(err, bundlequeue.ErrNotExpected) && e.ctx.Err() == nil {
		e.log.Error("builder: the queue refuses the outcome of a request", "err", err)
	}
}

// sleepUntil waits until t. It returns false if the builder stops first.
func (e *engine) sleepUntil(t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.ctx.Done():
		return false
	}
}

// stillActs reports whether the builder may continue the work on a request.
func (e *engine) stillActs(ticket uint64) (acts bool) {
	err := e.inTurn(e.ctx, func() error {
		if acts = e.requests.paused == nil; !acts {
			// The builder is paused. Without this entry, unpause can begin the work
			// again.
			delete(e.requests.working, ticket)
		}
		return nil
	})
	return acts && err == nil
}
