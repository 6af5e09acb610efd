package txpool

import (
	"math"

	"github.com/google/btree"
)

// usage counts transactions and the bytes that they take in memory.
type usage struct {
	count int
	bytes uint64
}

func (u *usage) add(other usage) { u.count += other.count; u.bytes += other.bytes }

// uses returns what n entries like this one use. n may be -1.
func (e *entry) uses(n int) usage { return usage{n, uint64(n * int(e.memory))} }

// counts returns the status by which an entry counts for others: a locked one
// could run.
func (e *entry) counts() status {
	if e.locked {
		return ready
	}
	return e.status
}

// group returns the group in which an entry counts: its status, or building. No cap
// limits the locked transactions, because the host chooses them, and they
// leave with their block. Otherwise newcomers could find no room, at any price,
// while a block is built.
func (e *entry) group() status {
	if e.locked {
		return building
	}
	return e.status
}

// count adds an entry to the totals if n is 1, and removes it if n is -1.
func (c *core) count(e *entry, n int) {
	used, group := e.uses(n), e.group()
	c.uses[group].add(used)
	if e.keeps() {
		c.kept[group].add(used)
	}
	if e.exempt {
		c.exempt.add(used)
	}
	if e.stays() {
		e.account.fixed += int32(n)
	}
}

// keeps reports whether the caps do not apply to an entry, because the entry came
// back from a failed block, or because it could run before and can no longer.
// Otherwise newcomers that never pay could push it out (promise T5).
func (e *entry) keeps() bool { return e.exempt || e.ran && e.status != ready }

// stays reports whether an entry behind a gap cannot give way to others.
func (e *entry) stays() bool { return e.status == queued && (e.locked || e.keeps()) }

// capped returns the usage that counts towards the caps of a status.
func (c *core) capped(s status) usage {
	u, kept := c.uses[s], c.kept[s]
	return usage{u.count - kept.count, u.bytes - kept.bytes}
}

// over reports whether a status exceeds its caps.
func (c *core) over(s status) bool {
	u, limit := c.capped(s), c.limits[s]
	return u.count > limit.count || u.bytes > limit.bytes
}

// fits reports whether there is room for one more pending transaction.
func (c *core) fits(e *entry) bool {
	u, limit := c.capped(ready), c.limits[ready]
	return e.exempt || u.count < limit.count && u.bytes+uint64(e.memory) <= limit.bytes
}

// limits returns the caps of each group, and the bound of the whole pool up to
// which newcomers are admitted, exempt transactions included.
func (c *Config) limits() (limits [groups]usage, bound usage) {
	limits = [groups]usage{
		queued: {c.MaxQueued, c.MaxBytes}, parked: {c.MaxParked, c.MaxBytes}, ready: {c.MaxPending, c.MaxBytes},
		building: {math.MaxInt32, math.MaxInt64},
	}
	bytes := addSaturating(c.MaxBytes, addSaturating(c.MaxBytes, c.MaxBytes))
	return limits, usage{c.MaxPending + c.MaxParked + c.MaxQueued, min(bytes, math.MaxInt64)}
}

// total returns the usage of the pool without locked ones, but with the transactions
// held aside.
func (c *core) total() usage {
	all := c.aside.used
	for _, u := range c.uses[:building] {
		all.add(u)
	}
	return all
}

// space is the room that a transaction needs and the room that exists, in its
// status and in the whole pool.
type space struct {
	need, have, limit usage
	all, total, bound usage
}

// space returns the space for a transaction in a status. If old is not nil, the
// transaction replaces it.
func (c *core) space(old, e *entry, status status) space {
	all := usage{1, uint64(e.memory)} // growth of the pool
	need := all                       // growth of the status
	switch {
	case e.account != nil: // in the pool already
		all = usage{}
	case old != nil:
		all = usage{0, uint64(e.memory - min(e.memory, old.memory))}
		if old.exempt || old.ran && status != ready { // and so the new one keeps its room
			need = usage{}
		} else if old.group() == status {
			need = all
		}
	}
	return space{need, c.capped(status), c.limits[status], all, c.total(), c.bound}
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

// settle restores the caps and lets waiting transactions come in. Every change
// of the pool ends with it.
func (c *core) settle() {
	c.arrangeTouched()
	c.evictOver(ready, c.ready)
	for !c.patient && (c.lift() || c.letIn()) { // keep room for returning transactions
		continue
	}
	c.evictOver(parked, c.parked)
	c.evictOver(parked, c.roomless[:]...) // after the others
	// Gaps before returning transactions close.
	for !c.patient && c.over(queued) && c.shrinkQueue() {
		continue
	}
	c.fees.occupy(c.uses[ready])
}

// letIn applies the plan of nextIn. It reports whether a transaction came in.
func (c *core) letIn() bool {
	p, some := c.nextIn()
	if some {
		c.apply(p)
	}
	return some && !p.promotes.roomless
}

// evictOver evicts the worst transactions of a status, in any of the indexes,
// while it exceeds its caps.
func (c *core) evictOver(s status, indexes ...*btree.BTreeG[ranked]) {
	for c.over(s) {
		worst := c.worst(indexes...)
		if worst == nil {
			return
		}
		c.evict(worst)
	}
}

// worst returns the last entry of several indexes that a cap may evict, or nil.
func (c *core) worst(indexes ...*btree.BTreeG[ranked]) *entry {
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
