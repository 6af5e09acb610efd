package txpool

import "math/bits"

// A transaction can be in line, pay enough, and yet have no room: the base fee
// fell, or a gap closed, while the pool was full. It then waits. Only the first
// such transaction of a sender waits; those after it cannot run before it. So
// a sender hides no other, however many transactions it has.
//
// Waiting transactions are indexed by size, in classes that double. The best of
// each class is a candidate, so a large transaction without room does not keep
// smaller ones waiting, and the choice takes the same time whatever waits.

// classes is the number of size classes. The last one has everything from 512
// kB.
const classes = 11

// class returns the size class of an entry.
func (e *entry) class() int {
	const smallest = 10 // bits: the first class has everything below 1 kB
	return min(max(bits.Len32(e.memory)-smallest, 0), classes-1)
}

// nextIn returns the plan that lets the next waiting transaction come in: the
// best one for which there is room. If there is room for none, it is the best
// one that may displace others by the rules for newcomers, because a
// transaction that has paid nothing to wait must not displace others for
// nothing. It reports false if none may come in. It changes nothing.
//
// Of each size class, only the best transaction is considered. One may
// therefore wait although there is room for it, but only while a better one of
// at most twice its size waits too.
func (c *core) nextIn() (plan, bool) {
	var best, displacing *entry
	least := c.fees.leastRank()
	for _, class := range c.roomless {
		r, there := class.Min()
		if !there || r.rank < least {
			continue
		}
		if c.fits(r.entry) {
			if best == nil || before(r, ranked{best.lead, best}) {
				best = r.entry
			}
		} else if displacing == nil || before(r, ranked{displacing.lead, displacing}) {
			displacing = r.entry
		}
	}
	if best != nil {
		return c.promotion(best, nil), true
	}
	if displacing == nil {
		return plan{}, false
	}
	a := displacing.account
	i, _ := a.find(displacing.nonce)
	victims, err := c.makeRoom(a, i, nil, displacing, seat{status: ready, lead: displacing.lead}, maxDisplacedByWaiting)
	if err != nil {
		return plan{}, false
	}
	return c.promotion(displacing, victims), true
}

// maxDisplacedByWaiting is the maximum number of transactions that one waiting
// transaction displaces. It bounds the work of nextIn.
const maxDisplacedByWaiting = 8

func (c *core) promotion(e *entry, victims []leaving) plan {
	i, _ := e.account.find(e.nonce)
	return plan{account: e.account, index: i, promotes: e, leaves: victims}
}

// lift arranges the chain of the best parked transaction that pays enough now,
// so that it can run or waits for room. It reports whether there was one.
func (c *core) lift() bool {
	r, there := c.parked.Min()
	if !there || r.rank < c.fees.leastRank() {
		return false
	}
	a := r.entry.account
	c.arrange(a, 0, len(a.txs))
	c.close(a)
	return true
}
