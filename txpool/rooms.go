package txpool

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/google/btree"
)

// limit returns the caps of a status.
func (c *core) limit(s status) usage {
	switch s {
	case ready:
		return usage{c.cfg.MaxPending, c.cfg.MaxPendingBytes}
	case parked:
		return usage{c.cfg.MaxParked, c.cfg.MaxParkedBytes}
	default:
		return usage{c.cfg.MaxQueued, c.cfg.MaxQueuedBytes}
	}
}

// over reports whether a status exceeds its caps. Exempt transactions do not
// count.
func (c *core) over(s status) bool {
	u, limit := c.capped(s), c.limit(s)
	return u.count > limit.count || u.bytes > limit.bytes
}

// settleRooms evicts the worst transactions until each status is within its
// caps, and promotes transactions that wait for room. It stops after most steps
// and returns whether more may remain.
func (c *core) settleRooms(most int) (more bool) {
	c.arrangeTouched()
	most = c.evictOver(ready, c.ready, most)
	for !c.patient && most > 0 && c.promote() { // keep room for returning transactions
		most--
	}
	most = c.evictOver(parked, c.parked, most)
	for !c.patient && c.over(queued) && most > 0 && c.shrinkWaiting() {
		most--
	}
	c.fees.occupy(c.uses[ready])
	c.moreToSettle = most == 0
	return c.moreToSettle
}

// evictOver evicts the worst transactions of an index while their status exceeds
// its caps, at most the given number of them. It returns the rest of that number.
func (c *core) evictOver(s status, index *btree.BTreeG[ranked], most int) int {
	for c.over(s) && most > 0 {
		worst := c.worst(index)
		if worst == nil {
			break
		}
		c.evict(worst)
		most--
	}
	return most
}

// fits reports whether there is room for one more pending transaction.
func (c *core) fits(e *entry) bool {
	u, limit := c.capped(ready), c.limit(ready)
	return e.exempt || u.count < limit.count && u.bytes+uint64(e.memory) <= limit.bytes
}

// promote makes the best parked transaction pending that could run and waits
// for room. It uses free room, or displaces others by the rules for newcomers,
// because a transaction that has paid nothing to wait must not displace others
// for nothing. It reports whether it promoted one.
func (c *core) promote() bool {
	if c.parked.Len() == 0 {
		return false
	}
	const enough = 16 // candidates to try
	var candidates [enough]*entry
	n := 0
	least := c.fees.leastRank()
	c.parked.Ascend(func(r ranked) bool {
		if r.rank < least || n == enough {
			return false
		}
		candidates[n] = r.entry
		n++
		return true
	})
	for _, e := range candidates[:n] {
		a := e.account
		i, _ := a.find(e.nonce)
		if i > 0 && a.txs[i-1].status == parked {
			continue // its predecessor comes first
		}
		if !c.fits(e) {
			victims, err := c.makeRoom(a, i, nil, e, e.lead, ready)
			if err != nil {
				continue
			}
			for _, victim := range victims {
				c.evict(victim)
			}
		}
		c.arrange(a, i, i)
		c.close(a)
		return true
	}
	return false
}

// evict drops the last pending transaction of a sender together with the
// transactions in line behind it, which could not run without it. It also drops
// a queued transaction.
func (c *core) evict(e *entry) {
	a := e.account
	first, _ := a.find(e.nonce)
	for i := max(int(a.line)-1, first); i >= first; i-- {
		if a.txs[i].lease == nil && !a.txs[i].exempt { // leased and exempt ones stay
			c.drop(a, i, Dropped, ErrPoolFull, common.Hash{})
		}
	}
	c.close(a)
}
