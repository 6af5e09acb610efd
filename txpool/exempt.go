package txpool

import (
	"fmt"
	"math"

	"github.com/google/btree"
	"github.com/holiman/uint256"
)

// A transaction that comes back was acknowledged: its lease was released, its
// block failed, or the process restarted. It is exempt from the caps of count
// and bytes. It displaces no other transaction and is not displaced. It leaves
// like any other: by inclusion, by a replacement of its sender, by its lifetime,
// or because its nonce is used.
//
// Exempt transactions cannot fill the memory. A newcomer is admitted only while
// all transactions together, including exempt ones and those held aside
// (held.go), are within the sum of the three caps. The pool therefore holds at
// most that sum and, in addition, the transactions that were drained and
// committed at one time, which are those in the host's queue.

// maxPassed is the number of exempt transactions that a newcomer's search for
// victims skips before it gives up.
const maxPassed = 4096

// count adds an entry to the totals.
func (c *core) count(e *entry) {
	c.uses[e.counts()].add(e)
	if e.exempt {
		c.exempt[e.counts()].add(e)
	}
}

// uncount removes an entry from the totals.
func (c *core) uncount(e *entry) {
	c.uses[e.counts()].remove(e)
	if e.exempt {
		c.exempt[e.counts()].remove(e)
	}
}

// exemptEntry makes an entry exempt from the caps. The caller must then arrange
// its chain.
func (c *core) exemptEntry(e *entry) {
	if e.exempt {
		return
	}
	e.exempt = true
	e.account.exempt++
	c.exempt[e.counts()].add(e)
}

// relax makes the caps apply to an entry again, if it fits.
func (c *core) relax(e *entry) {
	a, s := e.account, e.counts()
	own := len(a.txs) - int(a.exempt)
	if a.short || own >= c.cfg.MaxPerSender || !fit(usage{1, uint64(e.memory)}, c.capped(s), c.limit(s), usage{}) {
		return
	}
	e.exempt = false
	a.exempt--
	c.exempt[s].remove(e)
	c.recount(a)
}

// capped returns the usage that counts towards the caps of a status.
func (c *core) capped(s status) usage {
	u, exempt := c.uses[s], c.exempt[s]
	return usage{u.count - exempt.count, u.bytes - exempt.bytes}
}

// sum returns the usage of all statuses together.
func sum(uses [ready + 1]usage) usage {
	var all usage
	for _, u := range uses {
		all.count += u.count
		all.bytes += u.bytes
	}
	return all
}

// bound returns the usage up to which newcomers are admitted, exempt
// transactions included.
func (c *Config) bound() usage {
	bytes := addSaturating(c.MaxPendingBytes, addSaturating(c.MaxParkedBytes, c.MaxQueuedBytes))
	return usage{c.MaxPending + c.MaxParked + c.MaxQueued, min(bytes, math.MaxInt64)}
}

// space is the room that a transaction needs and the room that exists, in its
// status and in the whole pool.
type space struct {
	need, have, limit usage
	all, total, bound usage
}

// total returns the usage of the whole pool, including transactions held aside.
func (c *core) total() usage {
	all := sum(c.uses)
	all.count += c.aside.used.count
	all.bytes += c.aside.used.bytes
	return all
}

// space returns the space for a transaction in a status. If old is not nil, the
// transaction replaces it.
func (c *core) space(old, e *entry, status status) space {
	all := usage{1, uint64(e.memory)} // growth of the pool
	if old != nil {
		all = usage{0, uint64(e.memory - min(e.memory, old.memory))}
	}
	need := all // growth of the status
	switch {
	case old != nil && old.exempt:
		need = usage{}
	case old != nil && old.counts() != status:
		need = usage{1, uint64(e.memory)}
	}
	return space{need, c.capped(status), c.limit(status), all, c.total(), c.bound}
}

// fits reports whether the transaction fits after freed was removed.
func (s space) fits(freed usage) bool {
	return fit(s.need, s.have, s.limit, freed) && fit(s.all, s.total, s.bound, freed)
}

// fit reports whether need can be added to have within limit after freed was
// removed. A need of zero always fits.
func fit(need, have, limit, freed usage) bool {
	return (need.count == 0 || have.count+need.count <= limit.count+freed.count) &&
		(need.bytes == 0 || have.bytes+need.bytes <= limit.bytes+freed.bytes)
}

// worst returns the last entry of an index that a cap may evict, or nil.
func (c *core) worst(index *btree.BTreeG[ranked]) (worst *entry) {
	index.Descend(func(r ranked) bool {
		if !r.entry.exempt {
			worst = r.entry
		}
		return worst == nil
	})
	return worst
}

// funded returns the index of the first transaction of a chain that the balance
// does not cover. The balance covers leased transactions first, then the others
// in nonce order.
func (a *account) funded() int {
	if !a.short {
		return len(a.txs)
	}
	covered, balance := a.totalCost(), a.balance()
	i := len(a.txs)
	for i > 0 && balance.Lt(covered) {
		i--
		if e := a.txs[i].entry; e.lease == nil && a.unsettled(e.nonce) {
			covered.Sub(covered, &e.cost)
		}
	}
	return i
}

// again returns a copy of an entry that has left the pool, to be admitted
// again.
func (e *entry) again() *entry {
	return &entry{
		tx: e.tx, prefix: e.prefix, nonce: e.nonce, feeCap: e.feeCap, tip: e.tip, at: e.at, cost: e.cost, size: e.size, memory: e.memory,
		da: e.da, work: e.work, blob: e.blob, private: e.private, rare: e.rare, exempt: true,
	}
}

// readmit stores a transaction that comes back, above every cap. It refuses
// only transactions that can never run, because the nonce is used or another
// transaction of the sender has it. The caller has set e.exempt.
func (c *core) readmit(a *account, e *entry) error {
	if e.nonce < a.nonce {
		return fmt.Errorf("%w: address %v, tx: %d state: %d", ErrNonceTooLow, a.address, e.nonce, a.nonce)
	}
	i, taken := a.find(e.nonce)
	if taken {
		return &superseded{a.txs[i].hash()}
	}
	balance := a.balance()
	total, over := new(uint256.Int).AddOverflow(a.totalCost(), &e.cost)
	if over {
		return fmt.Errorf("%w: address %v have %v want more than 2^256-1", ErrInsufficientFunds, a.address, balance)
	}
	c.store(a, i, e)
	if !a.short && !balance.Lt(total) {
		return nil
	}
	was := c.keeping
	c.keeping = true
	c.settle(a, balance)
	c.keeping = was
	c.arrange(a, 0, len(a.txs))
	return nil
}
