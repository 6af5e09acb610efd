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

// requests are the packages that the queue requests. The fields are used in turn, except
// work.
type requests struct {
	working map[uint64]struct{} // tickets of those that are being made or sent
	held    bool                // after a restart: nothing is made or sent yet
	paused  error               // the fatal error after which nothing is made or sent
	work    sync.WaitGroup
}

// act begins the work that an effect requests. While the builder is held, paused or stopped, the
// request stays open in the queue.
func (e *engine) act(effect bundlequeue.Effect) {
	if e.requests.held || e.requests.paused != nil || e.ctx.Err() != nil {
		return
	}
	switch r := effect.(type) {
	case bundlequeue.Build:
		e.start(r.Ticket, func() { e.build(r) })
	case bundlequeue.Send:
		e.start(r.Ticket, func() { e.send(r) })
	}
}

// start begins the work for a ticket, unless it runs already.
func (e *engine) start(ticket uint64, work func()) {
	if _, twice := e.requests.working[ticket]; twice {
		return
	}
	e.requests.working[ticket] = struct{}{}
	e.requests.work.Go(work)
}

// actOnOpen begins the open requests of the queue that do not run yet.
func (e *engine) actOnOpen() {
	for _, effect := range e.queue.Open() {
		e.act(effect)
	}
}

// release ends the wait after a restart.
func (e *engine) release() {
	if !e.requests.held {
		return
	}
	e.requests.held = false
	e.note(func(h *Health) { h.Held = false })
	e.actOnOpen()
}

// pause stops making and sending packages after a fatal error.
func (e *engine) pause(err error) {
	e.requests.paused = err
	e.note(func(h *Health) { h.Paused = err })
	e.cfg.Metrics.count(CountPauses, submit.Fatal.String())
	e.log.Error("builder: it is paused, and makes and sends no packages until it is resumed", "err", err)
}

// unpause ends the pause after a fatal error.
func (e *engine) unpause() {
	if e.requests.paused == nil {
		return
	}
	e.requests.paused = nil
	e.note(func(h *Health) { h.Paused = nil })
	e.log.Info("builder: it is resumed")
	e.actOnOpen()
}

// build makes a package and gives it to the queue.
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

// stepBuilt gives a package to the queue, and notes whether it was of use.
func (e *engine) stepBuilt(built *bundlequeue.Built) error {
	err := e.step(*built)
	switch {
	case errors.Is(err, bundlequeue.ErrInadmissible):
		e.log.Error("builder: Network.Pack made a package that the queue did not ask for", "package", built.Package, "err", err)
		e.noteBuildOutcome(err)
		return e.step(bundlequeue.BuildFailed{Ticket: built.Ticket})
	case err == nil && !e.queue.Holds(built.Package):
		e.noteBuildOutcome(fmt.Errorf("%w: %s, anchored at %s", ErrUseless, built.Package, built.Context.Anchor))
	default:
		e.noteBuildOutcome(nil)
	}
	return err
}

// pack makes a package. No package leaves with a root that a second execution does not
// have, so that it waits until the rollup has applied the block.
func (e *engine) pack(ctx context.Context, r *bundlequeue.Build) (built bundlequeue.Built, err error) {
	header, err := readBlock(r.Bundle)
	if err != nil {
		return built, err
	}
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

// awaitApplied waits until the rollup has applied a block. It returns the block with its
// body.
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

// send waits for the window, sends a package once, and tells the queue the outcome.
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

// answer tells the queue the outcome of a request. A fatal error pauses the builder before
// the queue can ask for more.
func (e *engine) answer(ticket uint64, outcome error, step func() error) {
	err := e.inTurn(e.ctx, func() error {
		delete(e.requests.working, ticket)
		if outcome != nil && submit.ClassOf(outcome) == submit.Fatal {
			e.pause(outcome)
		}
		return step()
	})
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

// stillActs reports whether the builder is not paused. If it is, the work for the ticket
// ends here, and the request stays open in the queue.
func (e *engine) stillActs(ticket uint64) (acts bool) {
	err := e.inTurn(e.ctx, func() error {
		if acts = e.requests.paused == nil; !acts {
			delete(e.requests.working, ticket)
		}
		return nil
	})
	return acts && err == nil
}
