package txpool

import (
	"slices"

	"github.com/google/btree"
)

// restoreCaps restores the caps and lets waiting transactions come in. Every change
// of the pool ends with it.
func (c *core) restoreCaps() {
	c.arrangeTouched()
	c.evictOver(ready, c.ready)
	for !c.patient && (c.liftParked() || c.letWaitingIn()) { // keep room for returning transactions
		continue
	}
	c.evictOver(parked, c.parked)
	c.evictOver(parked, c.roomless[:]...) // after the others
	// Gaps before returning transactions close.
	for !c.patient && c.exceedsCaps(queued) && c.shrinkQueue() {
		continue
	}
	c.fees.updateOccupancy(c.uses[ready])
}

// letWaitingIn applies the plan of planNextIn. It reports whether a transaction came in.
func (c *core) letWaitingIn() bool {
	p, some := c.planNextIn()
	if some {
		c.applyPlan(p)
	}
	return some && !p.promotes.roomless
}

// evictOver evicts the worst transactions of a status, in any of the indexes,
// while it exceeds its caps.
func (c *core) evictOver(s status, indexes ...*btree.BTreeG[ranked]) {
	for c.exceedsCaps(s) {
		worst := c.findWorst(indexes...)
		if worst == nil {
			return
		}
		c.evictChain(worst)
	}
}

// findWorst returns the last entry of several indexes that a cap may evict, or nil.
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

// A transaction can be in line, pay enough, and yet have no room: the base fee
// fell, or a gap closed, while the pool was full. It then waits. Only the first
// such transaction of a sender waits; those after it cannot run before it. So
// a sender hides no other, however many transactions it has.
//
// Waiting transactions are indexed by size, in classes that double. The best of
// each class is a candidate, so a large transaction without room does not keep
// smaller ones waiting, and the choice takes the same time whatever waits.

// planNextIn returns the plan that lets the next waiting transaction come in: the
// best one for which there is room. If there is room for none, it is the best
// one that may displace others by the rules for newcomers, because a
// transaction that has paid nothing to wait must not displace others for
// nothing. It reports false if none may come in. It changes nothing.
//
// Of each size class, only the best transaction is considered. One may
// therefore wait although it could come in, but only while a better one of at
// most twice its size waits too.
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

// maxDisplacedByWaiting is the maximum number of transactions that one waiting
// transaction displaces. It bounds the work of planNextIn.
const maxDisplacedByWaiting = 8

func planPromotion(e *entry, victims []leaving) plan {
	return plan{account: e.account, index: e.account.indexOf(e), promotes: e, leaves: victims}
}

// liftParked arranges the chain of the best parked transaction that pays enough now,
// so that it can run or waits for room. It reports whether there was one.
func (c *core) liftParked() bool {
	r, there := c.parked.Min()
	if !there || r.rank < c.fees.leastRank() {
		return false
	}
	c.arrangeAll(r.entry.account)
	return true
}

// shrinkQueue drops the last queued transaction of the sender that has most of
// them.
func (c *core) shrinkQueue() bool {
	sender, some := c.queue.index.Min()
	if some {
		c.applyPlan(planDrop(sender.lastGapped(0), ErrPoolFull))
	}
	return some
}
