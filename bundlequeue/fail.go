package bundlequeue

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq/anchor"
)

// isLoss reports whether the death of a package counts as a loss of its bundle. It
// does if a guarantor has accepted or refused the package, and the package then
// died for a reason that lies within the bundle. After too many losses the bundle
// fails.
func (q *Queue) isLoss(v *version) bool {
	return (v.accepted || v.refused) && isLossBy(v.trace.Dead(), q.needs(v))
}

// need is the status of one prerequisite of a package. A package cannot be reported or
// accumulated before its prerequisites, so isLossBy uses their status to decide whether
// the death of the package was its bundle's own fault.
type need struct {
	dead    bool
	arrived bool // it is reported or accumulated
}

// needs returns the status of each prerequisite of a package. It leaves out
// prerequisites that the view of the chain does not follow, such as packages of
// other services.
func (q *Queue) needs(v *version) (all []need) {
	for _, pkg := range v.trace.Prerequisites() {
		if p, ok := q.view.Trace(pkg); ok {
			all = append(all, need{p.Dead() != anchor.Alive, p.IsReported() || p.IsAccumulated()})
		}
	}
	return all
}

// isLossBy reports whether a package died for a reason within its bundle, given
// that a guarantor had accepted or refused it. Such a death counts as a loss:
//
//   - The chain did not report the package in time (D2).
//   - The chain did not make the package available (D5).
//   - The package expired in the ready queue (D6).
//
// Other reasons lie outside the bundle and do not count:
//
//   - A reorg removed the anchor (D1).
//   - Finality stalled, so the lookup anchor became too old (D3).
//   - A prerequisite died (D4, D6), or the package could not be reported because a
//     prerequisite was not reported (D2).
func isLossBy(reason anchor.Reason, needs []need) bool {
	switch reason {
	case anchor.Unavailable:
		return true
	case anchor.AnchorExpired:
		return !slices.ContainsFunc(needs, func(n need) bool { return n.dead || !n.arrived })
	case anchor.NeverReady:
		return !slices.ContainsFunc(needs, func(n need) bool { return n.dead })
	}
	return false
}

// losses returns how many deaths of packages count against the bundle.
func (it *item) losses() int {
	n := 0
	for _, v := range it.versions {
		if v.lost {
			n++
		}
	}
	return n
}

// ended reports whether the queue builds no more packages for a bundle, either
// because too many of its packages were lost or because the host has given it up.
func (q *Queue) ended(it *item) bool {
	return it.troubles().givenUp != "" || it.losses() > q.cfg.MaxVersionRetries
}

// advance returns the first bundle that JAM has not guaranteed yet, or nil if there is
// none. It stores the position of that bundle in q.frontier, so that the next call begins
// there.
func (q *Queue) advance() *item {
	q.frontier = max(q.frontier, q.active)
	for it := q.at(q.frontier); it != nil; it = q.at(q.frontier) {
		if it.state < Guaranteed {
			return it
		}
		q.frontier++
	}
	return nil
}

// fail gives bundles back to the host: the first bundle that is not guaranteed, and
// all bundles after it. It does so when the queue builds no more packages for the
// first of them, and no chain can accumulate a package of any of them. fail waits
// for finality, because only a package that is dead on the finalized chain is dead
// on every future chain. Only then may the host put the same transactions into
// other packages.
func (q *Queue) fail() {
	first := q.advance()
	if first == nil || first.state == Reserved || !q.ended(first) || first.live() != nil {
		return
	}
	for place := first.place; place < q.end(); place++ {
		for _, v := range q.at(place).versions {
			if !q.finallyDead(v) {
				return
			}
		}
	}
	lost, reason := 0, first.troubles().givenUp
	if reason == "" {
		lost = first.losses()
		reason = fmt.Sprintf("%d packages lost", lost)
	}
	q.failFrom(first, lost, fmt.Sprintf("block %d: %s", first.number, reason))
}

// failFrom gives a bundle and all later ones back to the host. The later ones must fail
// too, because they were executed on a state that will never exist. lost is the number of
// packages that the first bundle has lost, or 0 if it fails for another reason than
// losses.
func (q *Queue) failFrom(first *item, lost int, reason string) {
	failed := q.items[first.place-q.firstPlace:]
	cause := first.number
	for _, it := range failed {
		for _, v := range it.versions {
			q.forget(v)
		}
		q.closeRequest(it)
		q.cores.release(it)
		q.spend(it)
		from := it.state
		q.enter(it, FailedState)
		q.plan(it)
		q.counts[FailedState]--
		q.emit(Changed{Number: it.number, Commitment: it.commitment, From: from, To: FailedState, Core: it.core})
		if from != Reserved {
			q.emit(Failed{Number: it.number, Commitment: it.commitment, Bundle: it.bundle, Cause: cause, Lost: lost, Reason: reason})
		}
	}
	q.next = cause
	clear(failed)
	q.items = q.items[:first.place-q.firstPlace]
}

// maxReason limits the reason of a GiveUp event, in bytes.
const maxReason = 1024

// giveUp processes a GiveUp event. It cancels the open build request and drops the
// packages that were not sent. Packages that were sent cannot be taken back.
func (q *Queue) giveUp(ev GiveUp) error {
	it := q.find(ev.Number)
	if it == nil || it.state == Reserved || it.state == Finalized {
		return fmt.Errorf("%w: no bundle %d that can be given up", ErrWrongNumber, ev.Number)
	}
	if len(ev.Reason) > maxReason {
		return fmt.Errorf("%w: a reason of %d bytes, want at most %d", ErrUnknownEvent, len(ev.Reason), maxReason)
	}
	reason := "given up by the host"
	if ev.Reason != "" {
		reason += ": " + ev.Reason
	}
	it.inTrouble().givenUp = reason
	q.closeRequest(it)
	it.versions = slices.DeleteFunc(it.versions, func(v *version) bool {
		if !v.sent {
			q.forget(v)
		}
		return !v.sent
	})
	q.touch(it)
	return nil
}
