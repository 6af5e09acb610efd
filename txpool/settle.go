package txpool

import (
	"slices"

	"github.com/google/btree"
)

// restoreCaps brings the pool back within its caps by evicting transactions, and then
// admits waiting transactions if they have room. Each change to the pool ends with this
// call.
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

// letWaitingIn gives room to the waiting transaction that planNextIn chooses. It reports whether
// that transaction can run now.
func (c *core) letWaitingIn() bool {
	p, some := c.planNextIn()
	if some {
		c.applyPlan(p)
	}
	return some && !p.promotes.roomless
}

// evictOver evicts transactions of a status, the worst first, until the rest are within
// their caps. It looks for them in the given indexes.
func (c *core) evictOver(s status, indexes ...*btree.BTreeG[ranked]) {
	for c.exceedsCaps(s) {
		worst := c.findWorst(indexes...)
		if worst == nil {
			return
		}
		c.evictChain(worst)
	}
}

// findWorst returns the worst transaction in several indexes that may be evicted, or nil.
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

// A transaction can have no gap before it, pay enough, and still have no room,
// because the base fee fell or a gap closed while the pool was full. It then waits
// for room. Only the first such transaction of a sender waits, because the later
// ones cannot run before it. A sender with many transactions therefore does not
// keep others from coming in.
//
// Waiting transactions are indexed by size, in classes that double in size from one
// to the next. The best of each class is a candidate for free room. A large
// transaction therefore does not keep smaller ones waiting, and the choice takes
// the same time however many wait.

// planNextIn returns the plan that gives room to the next waiting transaction, and
// whether there is such a transaction. It chooses the best one for which there is room.
// If there is room for none, it chooses the best one that may displace others by the
// rules for newcomers. planNextIn changes nothing.
//
// It considers only the best transaction of each size class. A transaction may therefore
// wait although there is room for it, but only while a better transaction of at most
// twice its size is waiting too.
func (c *core) planNextIn() (plan, bool) {
	var waiting []ranked // the best of each class
	least := c.fees.leastRank()
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
	for _, r := range waiting {
		a := r.entry.account
		victims, err := c.makeRoom(a, a.indexOf(r.entry), nil, r.entry, seat{status: ready, lead: r.place}, maxDisplacedByWaiting)
		if err == nil {
			return planPromotion(r.entry, victims), true
		}
	}
	return plan{}, false
}

// maxDisplacedByWaiting is how many transactions one waiting transaction may displace. It limits
// the work of planNextIn, which runs after each change of the pool.
const maxDisplacedByWaiting = 8

func planPromotion(e *entry, victims []leaving) plan {
	return plan{account: e.account, index: e.account.indexOf(e), promotes: e, leaves: victims}
}

// liftParked takes the best parked transaction out of the parked ones if it pays enough
// now, so that it can run or waits for room. It reports whether there was such a
// transaction.
func (c *core) liftParked() bool {
	r, there := c.parked.Min()
	if !there || r.rank < c.fees.leastRank() {
		return false
	}
	c.arrangeAll(r.entry.account)
	return true
}

// shrinkQueue drops one transaction behind a nonce gap: the last transaction of the
// sender with the most transactions behind gaps. It reports whether there was one.
func (c *core) shrinkQueue() bool {
	sender, some := c.queue.index.Min()
	if some {
		c.applyPlan(planDrop(sender.lastGapped(0), ErrPoolFull))
	}
	return some
}
