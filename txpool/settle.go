package txpool

import (
	"slices"

	"github.com/google/btree"
)

// restoreCaps restores the caps and admits waiting transactions, at the end of every
// change.
func (c *core) restoreCaps() {
	c.arrangeTouched()
	c.evictOver(ready, c.ready)
	for !c.patient && (c.liftParked() || c.letWaitingIn()) { // keep room for returning transactions
		continue
	}
	c.evictOver(parked, c.parked)
	c.evictOver(parked, c.roomless[:]...) // after the others
	// During a Reset, transactions that come back may still close gaps.
	for !c.patient && c.exceedsCaps(queued) && c.shrinkQueue() {
		continue
	}
	c.fees.updateOccupancy(c.uses[ready])
}

// letWaitingIn gives room to the best waiting transaction, and reports whether it runs
// now.
func (c *core) letWaitingIn() bool {
	p, some := c.planNextIn()
	if some {
		c.applyPlan(p)
	}
	return some && !p.promotes.roomless
}

// evictOver evicts transactions of a status, the worst first, until its caps hold.
func (c *core) evictOver(s status, indexes ...*btree.BTreeG[ranked]) {
	for c.exceedsCaps(s) {
		worst := c.findWorst(indexes...)
		if worst == nil {
			return
		}
		c.evictChain(worst)
	}
}

// findWorst returns the worst transaction in several indexes that may be evicted, or
// nil.
func (c *core) findWorst(indexes ...*btree.BTreeG[ranked]) *entry {
	var worst ranked
	for _, index := range indexes {
		index.Descend(func(r ranked) bool {
			if r.entry.keeps() {
				return true
			}
			if worst.entry == nil || before(worst, r) {
				worst = r
			}
			return false
		})
	}
	return worst.entry
}

// A transaction can have no gap before it, pay enough, and still have no room, because
// the base fee fell or a gap closed while the pool was full. It then waits for room.
// Only the first such transaction of a sender waits, because the later ones cannot run
// before it. A sender with many transactions therefore does not keep others from coming
// in.
//
// Waiting transactions are indexed by size, in classes that double in size from one to
// the next. The best of each class is a candidate for free room. A large transaction
// therefore does not keep smaller ones waiting, and the choice takes the same time
// however many wait.

// planNextIn returns the plan that gives room to the next waiting transaction, if any.
func (c *core) planNextIn() (plan, bool) {
	var waiting []ranked // the best of each class
	least := c.fees.leastRank()
	// Only the best transaction of each size class is considered, which keeps the cost low.
	// Another one may therefore wait although it would fit, but only while a better one of at
	// most twice its size waits too.
	for _, class := range c.roomless {
		r, there := class.Min()
		if there && r.rank >= least {
			waiting = append(waiting, r)
		}
	}
	slices.SortFunc(waiting, compare)
	for _, r := range waiting {
		if c.fits(r.entry) {
			return planPromotion(r.entry, nil), true
		}
	}
	// No waiting transaction fits into the free room. The best one may push out others under
	// the same rules as a newcomer.
	for _, r := range waiting {
		a := r.entry.account
		victims, err := c.makeRoom(a, a.indexOf(r.entry), nil, r.entry, seat{status: ready, lead: r.place}, maxDisplacedByWaiting)
		if err == nil {
			return planPromotion(r.entry, victims), true
		}
	}
	return plan{}, false
}

// maxDisplacedByWaiting is how many transactions one waiting transaction may displace.
// It limits the work of planNextIn, which runs after each change of the pool.
const maxDisplacedByWaiting = 8

func planPromotion(e *entry, victims []leaving) plan {
	return plan{account: e.account, index: e.account.indexOf(e), promotes: e, leaves: victims}
}

// liftParked lets the best parked transaction run, or wait, if it pays enough now.
func (c *core) liftParked() bool {
	r, there := c.parked.Min()
	if !there || r.rank < c.fees.leastRank() {
		return false
	}
	c.arrangeAll(r.entry.account)
	return true
}

// shrinkQueue drops one transaction behind a nonce gap, and reports whether there was
// one.
func (c *core) shrinkQueue() bool {
	sender, some := c.queue.index.Min()
	if some {
		// Drop the last transaction of the sender that has the most transactions behind nonce
		// gaps.
		c.applyPlan(planDrop(sender.lastGapped(0), ErrPoolFull))
	}
	return some
}
