package bundlequeue

import (
	"slices"

	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// settle reviews the bundles that may have changed in this step, in block order.
func (q *Queue) settle() {
	// The event may have changed what the JAM chain says about some packages. The bundles of
	// these packages are reviewed too.
	q.view.Changes(func(t *chainview.Trace) {
		if v := q.versions[t.Package()]; v != nil {
			q.touch(v.item)
		}
	})
	slices.SortFunc(q.touched, byPlace)
	for _, it := range q.touched {
		it.touched = false
		if q.at(it.place) == it && it.state != Finalized {
			q.review(it)
		}
	}
	clear(q.touched)
	q.touched = q.touched[:0]
	q.noteReorgs()
}

// review brings one bundle up to date with the JAM chain.
func (q *Queue) review(it *item) {
	for _, v := range it.versions {
		q.noteDeath(v)
	}
	q.dropUnsent(it)
	w, live := it.winner(), it.live()
	if it.request != nil && live != nil {
		// A reorg has revived an earlier version, so no build is needed.
		q.closeRequest(it)
		q.total.NonWinningVersionsCanceled++
	}
	if w != nil {
		q.cancelRivals(it, w)
		q.learnDelay(w)
	}
	// A bundle gives its core back when its package is reported, or when it has no package to
	// send.
	if w != nil || (live == nil && it.request == nil) {
		q.cores.release(it)
	}
	q.update(it)
	q.plan(it)
}

// noteDeath emits a Died effect if a package has died since the last review.
func (q *Queue) noteDeath(v *version) {
	dead := v.dead()
	if dead == v.wasDead {
		return
	}
	v.wasDead = dead
	// If a reorg has revived the package, its death no longer counts as a loss.
	v.lost = dead && q.isLoss(v)
	if dead {
		q.total.Died++
		s := v.trace.Status()
		q.emit(Died{Number: v.item.number, Version: v.number, Package: v.pkg, Reason: s.Dead, At: s.DeadSince, Unsent: !v.sent})
		q.learnLoss(v)
		if v.sent {
			v.item.queuedAt = q.now
		}
	}
}

// dropUnsent forgets packages that died before they were sent.
func (q *Queue) dropUnsent(it *item) {
	it.versions = slices.DeleteFunc(it.versions, func(v *version) bool {
		if v.sent || !v.dead() {
			return false
		}
		q.noteUseless(it, v.trace.Dead())
		q.forget(v)
		// A package that is built immediately would probably die for the same reason, for
		// example because the lookup anchor is still too old.
		it.notBefore = q.now + instant(q.cfg.BackoffBase)
		return true
	})
}

// cancelRivals drops the packages that were not sent, because the chain has reported w.
func (q *Queue) cancelRivals(it *item, w *version) {
	it.versions = slices.DeleteFunc(it.versions, func(v *version) bool {
		if v == w {
			return false
		}
		// Two packages of the same bundle were reported. Only the first one should be (promise
		// B5), so Totals counts this case for operators.
		if v.reported() && !v.dead() && !v.rivalSeen {
			v.rivalSeen = true
			q.total.DuplicateGuaranteeRejected++
			if v.accumulated() {
				q.total.DuplicateAccumulateRejected++
			}
		}
		// A package that was sent cannot be taken back.
		if v.sent {
			return false
		}
		q.forget(v)
		q.total.NonWinningVersionsCanceled++
		return true
	})
}

// learnDelay records how many blocks passed between a package's first send and its
// report.
func (q *Queue) learnDelay(v *version) {
	if v.sentHeight == 0 {
		return
	}
	if at := v.trace.Status().Reported.Height; at > v.sentHeight {
		// The queue learns how long the network takes to report a package, and chooses the age
		// of later anchors accordingly.
		q.delays.Observe(int(at - v.sentHeight))
		v.sentHeight = 0 // count it once
	}
}

// learnLoss records that a package was sent in time and never reported.
func (q *Queue) learnLoss(v *version) {
	if v.sentHeight > 0 && v.trace.Dead() == anchor.AnchorExpired {
		last := anchor.LastReportable(&q.cfg.Spec, v.trace.Anchor().Height)
		// The package was not reported although its anchor stayed valid for this many blocks
		// after the first send. The queue learns from it, and chooses newer anchors for later
		// packages.
		q.delays.Lost(int(last - min(last, v.sentHeight)))
		v.sentHeight = 0
	}
}

// update derives a bundle's state again and reports a change.
func (q *Queue) update(it *item) {
	to, v, at := it.derive()
	if to == it.state {
		return
	}
	c := Changed{Number: it.number, Commitment: it.commitment, From: it.state, To: to, Core: it.core, At: at}
	if v != nil {
		c.Version, c.Package = v.number, v.pkg
	}
	q.enter(it, to)
	q.emit(c)
}

// enter moves a bundle to a state and updates the counts.
func (q *Queue) enter(it *item, to State) {
	q.counts[it.state]--
	q.counts[to]++
	q.total.entered[to]++
	it.state = to
	if to < Guaranteed {
		q.frontier = min(q.frontier, it.place)
	}
}

// finish makes bundles final when the finalized chain has accumulated their packages.
func (q *Queue) finish() {
	// Bundles become final in the order of their rollup blocks, even if the chain
	// accumulated them in another order, because a host makes its state final block by
	// block.
	for it := q.at(q.active); it != nil; it = q.at(q.active) {
		w := it.winner()
		if w == nil || !q.finallyAccumulated(w) {
			return
		}
		q.makeFinal(it, Changed{Version: w.number, Package: w.pkg, At: w.trace.Status().Accumulated})
	}
}

// makeFinal marks the oldest bundle that is not final yet as final.
func (q *Queue) makeFinal(it *item, c Changed) {
	// The caller has set the version, the package and the JAM block.
	c.Number, c.Commitment, c.Core, c.From, c.To = it.number, it.commitment, it.core, it.state, Finalized
	q.cores.release(it)
	q.closeRequest(it)
	q.enter(it, Finalized)
	it.dropBundles()
	q.emit(c)
	q.active++
	q.forgetSpent()
}
