package bundlequeue

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// plan puts a bundle into the heap in which schedule will find it. It must be called whenever the
// state of the bundle, its core or the time of its next send may have changed.
func (q *Queue) plan(it *item) {
	if it.waiting {
		q.waiting.Remove(&it.turn)
	} else {
		q.due.Remove(&it.turn)
	}
	it.waiting = it.state < Guaranteed && !it.holdsCore
	if it.waiting {
		q.waiting.Set(&it.turn, int64(it.place))
	} else if v := it.live(); it.holdsCore && v != nil && q.maySend(v) {
		q.due.Set(&it.turn, int64(v.nextSend))
	}
}

// schedule sends the packages whose time has come, and then gives free cores to bundles
// that wait for one.
func (q *Queue) schedule() {
	q.sendDue()
	var passed []*item
	q.blocked = nil
	for e := q.waiting.Min(); e != nil && q.cores.free > 0; e = q.waiting.Min() {
		it := e.Value
		v := it.live()
		if v != nil {
			q.send(it, v)
		} else if it.request == nil {
			q.build(it)
		}
		if it.holdsCore {
			continue
		}
		// This bundle cannot be built or sent yet. Each package names the package of the bundle
		// before it, so no later bundle can be built either.
		if v == nil || !v.sent {
			q.blocked = it
			break
		}
		// The package was sent before, but a reorganization has removed its report, and it
		// needs a core again. Later bundles can still name it, so they need not wait.
		q.waiting.Remove(e)
		passed = append(passed, it)
	}
	for _, it := range passed {
		q.plan(it)
	}
	// A package may be due now because the package before it was just sent.
	q.sendDue()
}

// sendDue sends the packages that are due, in the order of their rollup blocks.
func (q *Queue) sendDue() {
	now := q.dueNow[:0]
	for e := q.due.Min(); e != nil && e.Key() <= int64(q.now); e = q.due.Min() {
		q.due.Remove(e)
		now = append(now, e.Value)
	}
	slices.SortFunc(now, byPlace)
	for _, it := range now {
		q.send(it, it.live())
		// If the package could not be sent, because the one before it was not sent yet, plan
		// keeps it among those that are due.
		q.plan(it)
	}
	clear(now)
	q.dueNow = now
}

func byPlace(a, b *item) int { return cmp.Compare(a.place, b.place) }

// maySend reports whether a package may be sent, or sent again, when its time has come.
func (q *Queue) maySend(v *version) bool {
	// A ticket means that an earlier send is still unanswered.
	return v.ticket == 0 && !v.refused && v.attempts <= q.cfg.MaxSubmitRetries && v.item.troubles().givenUp == ""
}

// send emits a Send effect for a package if it is due and has a core.
func (q *Queue) send(it *item, v *version) {
	if !q.maySend(v) || q.now < v.nextSend {
		return
	}
	// Packages are sent in the order of their rollup blocks (promise B3).
	if p := q.predecessor(it); p != nil && !p.left() {
		return
	}
	if !q.cores.acquire(it, q.view.CoreFree) {
		return
	}
	q.ticket++
	v.ticket = q.ticket
	q.sends[v.ticket] = v
	if !v.sent {
		v.sent, v.firstSend = true, q.now
		v.sentHeight = q.view.Best().Height
		it.trouble = nil
	}
	v.lastSend = q.now
	v.attempts++
	q.total.Sends++
	q.plan(it)
	q.update(it)
	q.emit(q.sendEffect(v))
}

func (q *Queue) sendEffect(v *version) Send {
	return Send{
		Ticket: v.ticket, Number: v.item.number, Version: v.number, Package: v.pkg, Bundle: v.bundle,
		Core: v.item.core, Attempt: v.attempts,
	}
}

// sent records the outcome of a Send effect.
func (q *Queue) sent(now instant, ev Sent) error {
	v := q.sends[ev.Ticket]
	if v == nil {
		return fmt.Errorf("%w: no send has ticket %d", ErrNotExpected, ev.Ticket)
	}
	delete(q.sends, ev.Ticket)
	q.touch(v.item)
	v.ticket = 0
	v.lastSend = now
	if ev.OK {
		v.accepted, v.failures = true, 0
		v.nextSend = now + instant(q.cfg.SubmitRetryInterval)
		return nil
	}
	v.refused = v.refused || ev.Refused
	v.failures++
	v.nextSend = now + q.cfg.backoff(v.failures, v.item.number)
	q.total.SendsFailed++
	return nil
}

// retry processes a Retry event, which makes the package of a bundle due now.
func (q *Queue) retry(now instant, ev Retry) error {
	it := q.find(ev.Number)
	if it == nil || it.state == Reserved || it.state >= Guaranteed {
		return fmt.Errorf("%w: no bundle %d that waits for a guarantee", ErrWrongNumber, ev.Number)
	}
	if v := it.live(); v != nil {
		v.nextSend = min(v.nextSend, now)
		q.plan(it)
	}
	return nil
}

// NextWake returns the earliest time after now when a Tick event could change anything. A
// driver sets its timer to this time. NextWake returns false if there is no such time.
func (q *Queue) NextWake(now time.Time) (time.Time, bool) {
	after := max(instantOf(now), q.now)
	wake := instant(0)
	consider := func(t instant) {
		if t > after && (wake == 0 || t < wake) {
			wake = t
		}
	}
	// The first bundle that is due may still have to wait for the bundle before it, so the
	// times of all bundles with a core count.
	for i := range q.cores.list {
		if it := q.cores.list[i].holder; it != nil && it.turn.Queued() {
			consider(instant(it.turn.Key()))
		}
	}
	if e := q.waiting.Min(); e != nil {
		q.considerWaiting(e.Value, consider)
	}
	if q.blocked != nil { // later bundles wait for it
		q.considerWaiting(q.blocked, consider)
	}
	if wake == 0 {
		return time.Time{}, false
	}
	return wake.time(), true
}

// considerWaiting passes a waiting bundle's next build and send times to consider.
func (q *Queue) considerWaiting(it *item, consider func(instant)) {
	consider(it.notBefore)
	if v := it.live(); v != nil && q.maySend(v) {
		consider(v.nextSend)
	}
}
