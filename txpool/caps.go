package txpool

import (
	"fmt"
	"math"

	"github.com/google/btree"
)

// usage is a number of transactions and the memory that they take, in bytes. The caps
// of the pool limit both.
type usage struct {
	count int
	bytes uint64
}

func (u *usage) add(other usage) { u.count += other.count; u.bytes += other.bytes }

// uses returns the usage of n transactions like e; n may be -1.
func (e *entry) uses(n int) usage { return usage{n, uint64(n * int(e.memory))} }

// counts returns the status for rules that ignore the locks of sessions.
func (e *entry) counts() status {
	if e.locked {
		// A session is building a block with this transaction, so it counts as one that can
		// run.
		return ready
	}
	return e.status
}

// group returns the status under which a transaction counts towards the caps.
func (e *entry) group() status {
	if e.locked {
		// Transactions in a block that is being built leave the pool with the block. If they
		// counted, newcomers would find no room in the meantime, whatever they pay.
		return building
	}
	return e.status
}

// countEntry adds a transaction to the totals n times; n is 1 or -1.
func (c *core) countEntry(e *entry, n int) {
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

// keeps reports whether a transaction must stay although better ones arrive and the pool
// is full (promise T5). This holds for a transaction that is exempt from the caps, for
// example because it came back from a failed block, and for one that could run before but
// cannot now.
func (e *entry) keeps() bool { return e.exempt || e.ran && e.status != ready }

// stays reports whether newcomers cannot displace a transaction behind a nonce gap.
func (e *entry) stays() bool { return e.status == queued && (e.locked || e.keeps()) }

// capped returns the usage of a status to which the caps apply.
func (c *core) capped(s status) usage {
	u, kept := c.uses[s], c.kept[s]
	return usage{u.count - kept.count, u.bytes - kept.bytes}
}

// exceedsCaps reports whether the transactions of a status exceed their caps.
func (c *core) exceedsCaps(s status) bool {
	u, limit := c.capped(s), c.limits[s]
	return u.count > limit.count || u.bytes > limit.bytes
}

// fits reports whether the caps have room for one more pending transaction.
func (c *core) fits(e *entry) bool {
	u, limit := c.capped(ready), c.limits[ready]
	return e.exempt || u.count < limit.count && u.bytes+uint64(e.memory) <= limit.bytes
}

// limits returns the caps of each group, and the bound for the whole pool.
func (c *Config) limits() (limits [groups]usage, bound usage) {
	limits = [groups]usage{
		queued: {c.MaxQueued, c.MaxBytes}, parked: {c.MaxParked, c.MaxBytes}, ready: {c.MaxPending, c.MaxBytes},
		building: {math.MaxInt32, math.MaxInt64},
	}
	// The caps also limit the pool as a whole: a newcomer is admitted only while all
	// transactions together stay within the sum of the caps, including those that came back
	// from failed blocks.
	bytes := addSaturating(c.MaxBytes, addSaturating(c.MaxBytes, c.MaxBytes))
	return limits, usage{c.MaxPending + c.MaxParked + c.MaxQueued, min(bytes, math.MaxInt64)}
}

// total returns the usage of the whole pool, for comparison with the bound.
func (c *core) total() usage {
	all := c.aside.used
	// Transactions that are held aside count, because they use memory. Locked ones do not,
	// because they leave with their block.
	for _, u := range c.uses[:building] {
		all.add(u)
	}
	return all
}

// space contains the numbers from which fits decides whether a transaction has room.
// The first line compares it with the transactions of the same status, the second line
// with the whole pool.
type space struct {
	need, have, limit usage // within its status: to be added, in use, cap
	all, total, bound usage // in the whole pool: to be added, in use, limit
}

// space returns the room that a transaction needs and the room that exists.
func (c *core) space(old, e *entry, status status) space {
	all := usage{1, uint64(e.memory)} // growth of the pool
	need := all                       // growth of the status
	switch {
	case e.account != nil: // in the pool already
		all = usage{}
	case old != nil:
		all = usage{0, uint64(e.memory - min(e.memory, old.memory))}
		if old.exempt || old.ran && status != ready { // the replacement keeps the room of old
			need = usage{}
		} else if old.group() == status {
			need = all
		}
	}
	return space{need, c.capped(status), c.limits[status], all, c.total(), c.bound}
}

// fits reports whether the transaction has room after others have freed some.
func (s space) fits(freed usage) bool {
	return fit(s.need, s.have, s.limit, freed) && fit(s.all, s.total, s.bound, freed)
}

// fit reports whether need can be added once freed has been removed.
func fit(need, have, limit, freed usage) bool {
	// A need of zero always fits, even if the limit is already exceeded.
	return (need.count == 0 || have.count+need.count <= limit.count+freed.count) &&
		(need.bytes == 0 || have.bytes+need.bytes <= limit.bytes+freed.bytes)
}

// gaps sorts senders by their number of transactions behind nonce gaps, the greatest
// number first, so that a sender that uses more than its share of the room gives way
// first. A transaction behind a gap costs its sender nothing and may never run. Without
// a share for each sender, the first one to fill the room would keep it forever
// (invariant I1).
type gaps struct {
	index *btree.BTreeG[gappedSender]
	moves uint64 // number of calls of setCount, which orders senders with equal counts
}

// gappedSender is a sender with the key by which gaps sorts it.
type gappedSender struct {
	count int32 // transactions behind gaps
	since uint64
	*account
}

func newGaps() gaps {
	return gaps{index: btree.NewG(degree, func(a, b gappedSender) bool {
		if a.count != b.count {
			return a.count > b.count
		}
		return a.since < b.since
	})}
}

// setCount stores a sender's number of displaceable transactions, and moves the sender
// accordingly.
func (g *gaps) setCount(a *account, count int32) {
	if a.gapped == count {
		return
	}
	if a.gapped > 0 {
		g.index.Delete(gappedSender{a.gapped, a.since, a})
	}
	// If two senders have equally many such transactions, the one whose number has not changed
	// for longer gives way first.
	g.moves++
	a.gapped, a.since = count, g.moves
	if count > 0 {
		g.index.ReplaceOrInsert(gappedSender{count, a.since, a})
	}
}

// all yields the senders, those with the most transactions behind gaps first.
func (g *gaps) all(yield func(*account) bool) {
	g.index.Ascend(func(s gappedSender) bool { return yield(s.account) })
}

// recountGapped updates how many of a sender's transactions behind gaps can be displaced.
func (c *core) recountGapped(a *account) {
	c.queue.setCount(a, int32(len(a.txs))-a.line-a.fixed)
}

// lastGapped returns the sender's n-th last transaction that newcomers can displace, or
// nil.
func (a *account) lastGapped(n int32) *entry {
	for i := len(a.txs) - 1; i >= 0; i-- {
		// Only a transaction behind a nonce gap may be pushed out here, and never one that is
		// locked or that must stay (see keeps).
		e := a.txs[i].entry
		if e.status == queued && !e.stays() {
			if n == 0 {
				return e
			}
			n--
		}
	}
	return nil
}

// queueShares is the number of equal shares of the room for transactions behind nonce
// gaps. A sender that uses more than one share gives way to others.
const queueShares = 16

// findGapped chooses the transactions behind nonce gaps that make room for a newcomer.
func (c *core) findGapped(a *account, newcomer *entry, room func(usage) bool) (leaves []leaving, err error) {
	const most = 8 // a large newcomer may need several
	var freed usage
	fair := max(a.gapped+1, int32(c.cfg.MaxQueued/queueShares))
	// Senders that use more than their fair share of the room lose their last transactions
	// first. Each of them keeps at least as many as the newcomer's sender will have.
	for sender := range c.queue.all {
		if sender.gapped <= fair {
			break
		}
		if sender == a {
			continue
		}
		for n := int32(0); sender.gapped-n > fair && len(leaves) < most; n++ {
			e := sender.lastGapped(n)
			freed.add(e.uses(1))
			leaves = append(leaves, leaving{e, Dropped, ErrPoolFull})
			if room(freed) {
				return leaves, nil
			}
		}
		if len(leaves) == most {
			break
		}
	}
	// Otherwise the sender's last transaction gives way to the newcomer, if its nonce is
	// higher. A lower nonce is closer to being able to run.
	last := a.lastGapped(0)
	if last != nil && last.nonce > newcomer.nonce && room(last.uses(1)) {
		return []leaving{{last, Dropped, ErrPoolFull}}, nil
	}
	return nil, fmt.Errorf("%w: %d transactions of %d bytes are behind nonce gaps, %d of them from address %v", ErrPoolFull,
		c.uses[queued].count, c.uses[queued].bytes, a.gapped, a.address)
}
