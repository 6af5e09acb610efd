package txpool

import (
	"slices"

	"github.com/google/btree"
)

// restoreCaps makes the pool respect its caps again, and lets waiting transactions come in if there
// is room. Each change of the pool ends with it.
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

// letWaitingIn carries out the plan of planNextIn. It reports whether a transaction has come in.
func (c *core) letWaitingIn() bool {
	p, some := c.planNextIn()
	if some {
		c.applyPlan(p)
	}
	return some && !p.promotes.roomless
}

// evictOver evicts the worst transactions of a status, over all the given indexes, while the status
// exceeds its caps.
func (c *core) evictOver(s status, indexes ...*btree.BTreeG[ranked]) {
	for c.exceedsCaps(s) {
		worst := c.findWorst(indexes...)
		if worst == nil {
			return
		}
		c.evictChain(worst)
	}
}

// findWorst returns the worst entry of several indexes that may be evicted, or nil if there is
// none.
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

// A transaction can have no gap before it, pay enough, and yet have no room, because the base fee
// fell or a gap closed while the pool was full. It then waits. Only the first such transaction of a
// sender waits, because those behind it cannot run before it. So a sender with many transactions
// does not keep others from coming in.
//
// Waiting transactions are indexed by size, in classes of which each has twice the size of the one
// before. The best of each class is a candidate. So a large transaction without room does not keep
// smaller ones waiting, and the choice takes the same time however many wait.

// planNextIn returns the plan that lets the next waiting transaction come in, and whether there is
// one. It is the best transaction for which there is room. If there is room for none, it is the
// best one that may displace others by the rules for newcomers, because a transaction that has paid
// nothing for waiting must not displace others for nothing. planNextIn changes nothing.
//
// It considers only the best transaction of each size class. A transaction may therefore wait
// although it could come in, but only while a better one of at most twice its size waits too.
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
// the work of planNextIn.
const maxDisplacedByWaiting = 8

func planPromotion(e *entry, victims []leaving) plan {
	return plan{account: e.account, index: e.account.indexOf(e), promotes: e, leaves: victims}
}

// liftParked arranges the chain of the best parked transaction that pays enough now, so that it can
// run or waits for room. It reports whether there was such a transaction.
func (c *core) liftParked() bool {
	r, there := c.parked.Min()
	if !there || r.rank < c.fees.leastRank() {
		return false
	}
	c.arrangeAll(r.entry.account)
	return true
}

// shrinkQueue drops the last transaction behind a gap of the sender that has most of them. It
// reports whether there was one.
func (c *core) shrinkQueue() bool {
	sender, some := c.queue.index.Min()
	if some {
		c.applyPlan(planDrop(sender.lastGapped(0), ErrPoolFull))
	}
	return some
}
