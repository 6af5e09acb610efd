package bundlequeue

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq/anchor"
)

// isLoss reports whether a package's death is a loss of its bundle. After too many
// losses the bundle fails.
func (q *Queue) isLoss(v *version) bool {
	// If no guarantor has answered for the package, it may never have reached one, so
	// its death is not the bundle's fault.
	return (v.accepted || v.refused) && isLossBy(v.trace.Dead(), q.needs(v))
}

// need is the status of one prerequisite of a package. If a package dies because its
// prerequisite was late or died, the package itself is not to blame.
type need struct {
	dead    bool
	arrived bool // it is reported or accumulated
}

// needs returns the status of each prerequisite that the view of the chain follows.
func (q *Queue) needs(v *version) (all []need) {
	for _, pkg := range v.trace.Prerequisites() {
		if p, ok := q.view.Trace(pkg); ok {
			all = append(all, need{p.Dead() != anchor.Alive, p.IsReported() || p.IsAccumulated()})
		}
	}
	return all
}

// isLossBy reports whether a package died for a reason within its bundle.
func isLossBy(reason anchor.Reason, needs []need) bool {
	switch reason {
	// The chain reported the package, but its data never became available (D5).
	case anchor.Unavailable:
		return true
	// The package was not reported in time (D2). It is not to blame if a prerequisite
	// was not reported, because a package cannot be reported before its prerequisites.
	case anchor.AnchorExpired:
		return !slices.ContainsFunc(needs, func(n need) bool { return n.dead || !n.arrived })
	// The package was reported but never accumulated, because it left the ready queue after an
	// epoch (D6). That counts as a loss, unless it had to wait for a prerequisite that died.
	case anchor.NeverReady:
		return !slices.ContainsFunc(needs, func(n need) bool { return n.dead })
	}
	// The reason lies outside the bundle: a reorg removed the anchor (D1), finality
	// stalled until the lookup anchor was too old (D3), or a prerequisite died (D4).
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

// ended reports whether the queue builds no more packages for a bundle.
func (q *Queue) ended(it *item) bool {
	return it.troubles().givenUp != "" || it.losses() > q.cfg.MaxVersionRetries
}

// advance returns the first bundle that JAM has not guaranteed yet, or nil.
func (q *Queue) advance() *item {
	q.frontier = max(q.frontier, q.active)
	for it := q.at(q.frontier); it != nil; it = q.at(q.frontier) {
		if it.state < Guaranteed {
			return it
		}
		// The next call begins at this place, so that no bundle is visited twice.
		q.frontier++
	}
	return nil
}

// fail ends the first open bundle if the queue will build no more packages for it, and
// gives it and all later bundles back to the host.
func (q *Queue) fail() {
	first := q.advance()
	if first == nil || first.state == Reserved || !q.ended(first) || first.live() != nil {
		return
	}
	for place := first.place; place < q.end(); place++ {
		for _, v := range q.at(place).versions {
			// The host executes these transactions again in other packages. That is safe only
			// if no chain can still accumulate an old package, so each one must be dead on the
			// finalized chain.
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

// failFrom emits a Failed effect for a bundle and for each later bundle, and removes them.
// lost is the number of packages that the first bundle has lost, or 0 if it fails for
// another reason.
func (q *Queue) failFrom(first *item, lost int, reason string) {
	failed := q.items[first.place-q.firstPlace:]
	cause := first.number
	// The later bundles fail too, because they were executed on a state that will never
	// exist.
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

// giveUp processes a GiveUp event: the queue builds no more packages for the bundle.
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
		// Packages that were sent cannot be taken back, and may still be accumulated.
		if !v.sent {
			q.forget(v)
		}
		return !v.sent
	})
	q.touch(it)
	return nil
}
