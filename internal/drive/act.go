package drive

import (
	"errors"
	"time"

	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

// carryOut reports the effects of a step, and starts the builds and sends among
// them.
func (r *Runner) carryOut(now time.Time, effects []bundlequeue.Effect) {
	for _, e := range effects {
		r.effects++
		r.tell(submit.Observation{Number: r.effects, At: now, Effect: e})
		r.act(e)
	}
}

// tell reports an effect to the observer, the log and the metrics.
func (r *Runner) tell(o submit.Observation) {
	count(&r.cfg.Metrics, submit.CountEffects, effectName(o.Effect))
	if r.cfg.Observe != nil {
		r.cfg.Observe(o)
	}
	switch e := o.Effect.(type) {
	case bundlequeue.Died:
		if e.Unsent {
			count(&r.cfg.Metrics, submit.CountUseless, e.Reason.String())
		}
		r.log.Info("package dead", "block", e.Number, "version", e.Version, "package", e.Package, "reason", e.Reason, "since", e.At, "sent", !e.Unsent)
	case bundlequeue.Failed:
		r.log.Warn("bundle failed", "block", e.Number, "reason", e.Reason)
	}
}

// act starts the build or the send that an effect requests. While the runner is
// held, paused or stopped, it does nothing, and the request stays open in the
// queue.
func (r *Runner) act(e bundlequeue.Effect) {
	if r.held || r.paused != nil || r.ctx.Err() != nil {
		return
	}
	switch e := e.(type) {
	case bundlequeue.Build:
		r.start(e.Ticket, func() { r.build(e) })
	case bundlequeue.Send:
		r.start(e.Ticket, func() { r.send(e) })
	}
}

// start runs the work for a ticket, unless that work is already running.
func (r *Runner) start(ticket uint64, work func()) {
	if _, twice := r.working[ticket]; twice {
		return
	}
	r.working[ticket] = struct{}{}
	r.work.Go(work)
}

// release ends the hold after a recovery.
func (r *Runner) release() {
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
func (r *Runner) pause(err error) {
	r.paused = err
	r.mu.Lock()
	r.health.Paused = err
	r.mu.Unlock()
	count(&r.cfg.Metrics, submit.CountPauses, submit.Fatal.String())
	r.log.Error("runner paused: it does not build or send until it is resumed", "err", err)
}

// unpause resumes building and sending.
func (r *Runner) unpause() {
	if r.paused == nil {
		return
	}
	r.paused = nil
	r.mu.Lock()
	r.health.Paused = nil
	r.mu.Unlock()
	r.log.Info("runner resumed")
	r.actOnOpen()
}

// actOnOpen starts every open request of the queue that is not running.
func (r *Runner) actOnOpen() {
	for _, e := range r.queue.Open() {
		r.act(e)
	}
}

// report passes the outcome of a build or a send to the loop. A fatal error
// pauses the runner before the queue can request more work.
func (r *Runner) report(ticket uint64, ev bundlequeue.Event, outcome error) {
	call := func() {
		delete(r.working, ticket)
		if outcome != nil && submit.ClassOf(outcome) == submit.Fatal {
			r.pause(outcome)
		}
		err := r.take(ev)
		if err != nil && !errors.Is(err, bundlequeue.ErrNotExpected) && !errors.Is(err, ErrStopped) {
			r.log.Error("outcome of build or send refused", "err", err)
		}
	}
	select {
	case r.calls <- call:
	case <-r.ctx.Done():
	}
}
