package drive

import (
	"context"
	"time"

	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

// send waits for the window, sends once and reports the outcome.
func (r *Runner) send(request bundlequeue.Send) {
	if !r.sleepUntil(r.window().NextOpen(time.Now())) || !r.stillActs(request.Ticket) {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.cfg.SubmitTimeout)
	defer cancel()
	began := r.noteSend()
	err := r.submitter.Submit(ctx, request)
	r.noteSent(began, err)
	if err != nil {
		r.log.Warn("submit failed", "block", request.Number, "version", request.Version, "attempt", request.Attempt, "class", submit.ClassOf(err), "err", err)
	}
	r.report(request.Ticket, bundlequeue.Sent{Ticket: request.Ticket, OK: err == nil, Refused: err != nil && submit.ClassOf(err) == submit.Rebuild}, err)
}

// sleepUntil waits until t. It returns false if the runner stops first.
func (r *Runner) sleepUntil(t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// stillActs reports whether the runner is not paused. If it is paused, the work
// for the ticket ends here, and the request stays open in the queue.
func (r *Runner) stillActs(ticket uint64) bool {
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
