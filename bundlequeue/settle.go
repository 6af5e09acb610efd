package bundlequeue

import (
	"slices"

	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// settle derives anew the state of every bundle that the event touched, in their order.
func (q *Queue[B]) settle() {
	if q.view != nil {
		q.view.Changes(func(t *chainview.Trace) {
			if v := q.versions[t.Package()]; v != nil {
				q.touch(v.item)
			}
		})
	}
	slices.SortFunc(q.touched, byPlace[B])
	for _, it := range q.touched {
		it.touched = false
		if q.at(it.place) == it && it.state != Finalized {
			q.review(it)
		}
	}
	clear(q.touched)
	q.touched = q.touched[:0]
}

// review brings one bundle in line with the evidence about its versions.
func (q *Queue[B]) review(it *item[B]) {
	for _, v := range it.versions {
		if dead := v.dead(); dead != v.wasDead {
			v.wasDead = dead
			if dead {
				q.total.Died++
				s := v.status()
				q.emit(Died{Number: it.number, Version: v.number, Package: v.pkg, Reason: s.Dead, At: s.DeadSince})
				q.learnLoss(v)
			}
		}
	}
	q.dropUnborn(it)
	w, live := it.winner(), it.live()
	if it.request != nil && live != nil && q.keeps(ruleAllDead) {
		q.closeRequest(it) // a reorg brought an earlier version back to life: no other may be built
		q.total.NonWinningVersionsCanceled++
	}
	if w != nil {
		q.cancelRivals(it, w)
		q.learn(w)
	}
	if w != nil || (live == nil && it.request == nil) {
		q.freeCore(it)
	}
	q.update(it)
	q.plan(it)
}

// dropUnborn forgets versions that died before they ever left; the next one waits a little, because what killed it, an old
// lookup anchor for example, may kill that one at once.
func (q *Queue[B]) dropUnborn(it *item[B]) {
	it.versions = slices.DeleteFunc(it.versions, func(v *version[B]) bool {
		unborn := v.dead() && (!v.sent || !q.keeps(ruleSentForEver) && v.accepted)
		if unborn {
			q.forget(v)
			it.notBefore = q.now + instant(q.cfg.BackoffBase)
		}
		return unborn
	})
}

// cancelRivals drops versions that never left once another one is reported (promise B5), and counts those reported besides it.
func (q *Queue[B]) cancelRivals(it *item[B], w *version[B]) {
	it.versions = slices.DeleteFunc(it.versions, func(v *version[B]) bool {
		if v == w {
			return false
		}
		if v.reported() && !v.dead() && !v.rivalSeen {
			v.rivalSeen = true
			q.total.DuplicateGuaranteeRejected++
			if v.accumulated() {
				q.total.DuplicateAccumulateRejected++
			}
		}
		if v.sent {
			return false
		}
		q.forget(v)
		q.total.NonWinningVersionsCanceled++
		return true
	})
}

// learn notes how many blocks passed between the first send of a version and its report.
func (q *Queue[B]) learn(v *version[B]) {
	if q.view == nil || v.sentHeight == 0 {
		return
	}
	if s := v.status(); s.Reported.Height > v.sentHeight {
		q.delays.Observe(int(s.Reported.Height - v.sentHeight))
		v.sentHeight = 0 // once
	}
}

// learnLoss notes that a version was never reported while it could have been.
func (q *Queue[B]) learnLoss(v *version[B]) {
	if v.trace != nil && v.trace.Dead() == anchor.AnchorExpired && v.sentHeight > 0 {
		last := anchor.LastReportable(&q.cfg.Spec, v.trace.Anchor().Height)
		q.delays.Lost(int(last - min(last, v.sentHeight)))
		v.sentHeight = 0
	}
}

// update tells the host if the state of a bundle is another one than before.
func (q *Queue[B]) update(it *item[B]) {
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

// enter moves a bundle to a state and counts it.
func (q *Queue[B]) enter(it *item[B], to State) {
	q.counts[it.state]--
	q.counts[to]++
	q.total.Transitions[it.state][to]++
	it.state = to
	if to < Guaranteed {
		q.frontier = min(q.frontier, it.place)
	}
}

// finish makes bundles final in their order, even on a chain that accumulates them in another.
func (q *Queue[B]) finish() {
	for it := q.at(q.active); it != nil; it = q.at(q.active) {
		w := it.winner()
		if w == nil || !q.isFinal(w) {
			return
		}
		c := Changed{Number: it.number, Commitment: it.commitment, From: it.state, To: Finalized, Version: w.number, Package: w.pkg, Core: it.core, At: w.status().Accumulated}
		q.freeCore(it)
		q.closeRequest(it)
		q.enter(it, Finalized)
		it.dropBundles()
		q.emit(c)
		q.active++
	}
}

// isFinal reports whether the accumulation of a version is.
func (q *Queue[B]) isFinal(v *version[B]) bool {
	if q.view == nil {
		return v.told.final
	}
	s := v.status()
	return !s.Accumulated.IsZero() && (s.Accumulated.Height <= q.view.Finalized().Height || !q.keeps(ruleFinalOnFinal))
}
