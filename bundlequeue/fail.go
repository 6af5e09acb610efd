package bundlequeue

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq/anchor"
)

// advance moves the frontier to the first bundle that is not guaranteed, and returns it, or nil.
func (q *Queue[B]) advance() *item[B] {
	q.frontier = max(q.frontier, q.active)
	for it := q.at(q.frontier); it != nil; it = q.at(q.frontier) {
		if it.state < Guaranteed {
			return it
		}
		q.frontier++
	}
	return nil
}

// fail gives up the first bundle that is not guaranteed if it has used its tries, and all after it, once no chain can carry
// any of them: what is dead on the finalized chain is dead on every chain to come, so the same transactions may be packed again
// with any anchor.
func (q *Queue[B]) fail() {
	first := q.advance()
	if first == nil || !q.exhausted(first) {
		return
	}
	for place := first.place; place < q.end(); place++ {
		for _, v := range q.at(place).versions {
			if !q.gone(v) {
				return
			}
		}
	}
	q.failFrom(first, fmt.Sprintf("block %d: %d versions dead, %d builds failed in a row", first.number, len(first.versions), first.buildFailures))
}

// exhausted reports whether a bundle has no version left that could make it and may not have another.
func (q *Queue[B]) exhausted(it *item[B]) bool {
	if it.state == Reserved || it.request != nil || it.live() != nil {
		return false
	}
	return len(it.versions) > q.cfg.MaxVersionRetries || it.buildFailures > q.cfg.MaxVersionRetries
}

// gone reports whether a version can never be accumulated, whatever the chain does: it never left, or it is dead on the
// finalized chain. Without blocks nobody can know; then a long time must do.
func (q *Queue[B]) gone(v *version[B]) bool {
	switch s := v.status(); {
	case !v.sent || !q.keeps(ruleFailOnFinal):
		return true
	case q.view == nil:
		return s.Dead != anchor.Alive && q.now >= v.lastSend+instant(q.cfg.FailureHold)
	default:
		return s.Dead != anchor.Alive && s.DeadSince.Height <= q.view.Finalized().Height
	}
}

// failFrom hands back a bundle and all after it, whose pre-state is gone with it.
func (q *Queue[B]) failFrom(first *item[B], reason string) {
	lost := q.items[first.place-q.firstPlace:]
	cause := first.number
	for _, it := range lost {
		for _, v := range it.versions {
			q.forget(v)
			q.bury(v)
		}
		q.closeRequest(it)
		q.freeCore(it)
		from := it.state
		q.enter(it, FailedState)
		q.plan(it)
		q.counts[FailedState]--
		q.emit(Changed{Number: it.number, Commitment: it.commitment, From: from, To: FailedState, Core: it.core})
		if from != Reserved {
			q.ticket++
			f := Failed[B]{Ticket: q.ticket, Number: it.number, Bundle: it.bundle, Cause: cause, Reason: reason}
			q.returned = append(q.returned, f)
			q.emit(f)
		}
	}
	q.next = cause
	clear(lost)
	q.items = q.items[:first.place-q.firstPlace]
}

// takenBack forgets a failed bundle that the host has.
func (q *Queue[B]) takenBack(ev TakenBack) error {
	for i := range q.returned {
		if q.returned[i].Ticket == ev.Ticket {
			q.returned = slices.Delete(q.returned, i, i+1)
			return nil
		}
	}
	return fmt.Errorf("%w: no failed bundle has ticket %d", ErrNotExpected, ev.Ticket)
}

// bury remembers a package of a failed bundle where only the clock says that it is dead.
func (q *Queue[B]) bury(v *version[B]) {
	if q.view != nil || !v.sent {
		return
	}
	q.buried = append(q.buried, v.pkg)
	if most := (q.cfg.RetentionWindow + 1) * (q.cfg.MaxVersionRetries + 1); len(q.buried) > most {
		q.buried = slices.Delete(q.buried, 0, len(q.buried)-most)
	}
}
