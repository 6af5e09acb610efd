package txpool

import (
	"fmt"
	"math"

	"github.com/google/btree"
)

// usage counts transactions and the bytes that they take in memory.
type usage struct {
	count int
	bytes uint64
}

func (u *usage) add(other usage) { u.count += other.count; u.bytes += other.bytes }

// uses returns the usage of n entries like this one. n may be -1, for an entry that leaves.
func (e *entry) uses(n int) usage { return usage{n, uint64(n * int(e.memory))} }

// counts returns the status by which other transactions see an entry. A locked entry counts as
// ready.
func (e *entry) counts() status {
	if e.locked {
		return ready
	}
	return e.status
}

// group returns the group in which an entry is counted: its status, or building if it is locked. No
// cap limits the locked transactions, because the host chooses them, and they leave with their
// block. If they counted, newcomers could find no room at any price while a block is built.
func (e *entry) group() status {
	if e.locked {
		return building
	}
	return e.status
}

// countEntry adds an entry to the totals if n is 1, and removes it if n is -1.
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

// keeps reports whether the caps do not apply to an entry. They do not if the entry came back from
// a failed block, or if it could run before and cannot run now. Otherwise newcomers that never pay
// could push it out (promise T5).
func (e *entry) keeps() bool { return e.exempt || e.ran && e.status != ready }

// stays reports whether an entry behind a nonce gap need not give way to others.
func (e *entry) stays() bool { return e.status == queued && (e.locked || e.keeps()) }

// capped returns the usage that counts towards the caps of a status.
func (c *core) capped(s status) usage {
	u, kept := c.uses[s], c.kept[s]
	return usage{u.count - kept.count, u.bytes - kept.bytes}
}

// exceedsCaps reports whether a status exceeds its caps.
func (c *core) exceedsCaps(s status) bool {
	u, limit := c.capped(s), c.limits[s]
	return u.count > limit.count || u.bytes > limit.bytes
}

// fits reports whether the caps have room for one more pending transaction.
func (c *core) fits(e *entry) bool {
	u, limit := c.capped(ready), c.limits[ready]
	return e.exempt || u.count < limit.count && u.bytes+uint64(e.memory) <= limit.bytes
}

// limits returns the caps of each group. bound is the limit for the whole pool up to which
// newcomers are admitted; exempt transactions count towards it.
func (c *Config) limits() (limits [groups]usage, bound usage) {
	limits = [groups]usage{
		queued: {c.MaxQueued, c.MaxBytes}, parked: {c.MaxParked, c.MaxBytes}, ready: {c.MaxPending, c.MaxBytes},
		building: {math.MaxInt32, math.MaxInt64},
	}
	bytes := addSaturating(c.MaxBytes, addSaturating(c.MaxBytes, c.MaxBytes))
	return limits, usage{c.MaxPending + c.MaxParked + c.MaxQueued, min(bytes, math.MaxInt64)}
}

// total returns the usage of the whole pool: locked transactions do not count, and those held aside
// do.
func (c *core) total() usage {
	all := c.aside.used
	for _, u := range c.uses[:building] {
		all.add(u)
	}
	return all
}

// space compares the room that a transaction needs with the room that exists, both in its status
// and in the whole pool.
type space struct {
	need, have, limit usage
	all, total, bound usage
}

// space returns the space for a transaction that is to have a status. If old is not nil, the
// transaction replaces old, and needs only the difference.
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

// fits reports whether the transaction fits if transactions with the usage freed leave the pool.
func (s space) fits(freed usage) bool {
	return fit(s.need, s.have, s.limit, freed) && fit(s.all, s.total, s.bound, freed)
}

// fit reports whether need can be added to have within limit, if freed leaves. A need of zero
// always fits.
func fit(need, have, limit, freed usage) bool {
	return (need.count == 0 || have.count+need.count <= limit.count+freed.count) &&
		(need.bytes == 0 || have.bytes+need.bytes <= limit.bytes+freed.bytes)
}

// gaps orders senders by the number of their transactions behind nonce gaps: the
// one with most of them first, and among equals the one that has had this number
// for longest.
//
// A transaction behind a gap costs its sender nothing and may never run, so
// these transactions have separate caps (invariant I1). At a cap, a newcomer is
// refused, because it would displace others for nothing. Only a sender that has
// more than its share of the room gives way. Otherwise a sender that filled the
// room first would keep it.
type gaps struct {
	index *btree.BTreeG[gappedSender]
	moves uint64 // number of calls of set, which orders senders with equal counts
}

// gappedSender is a sender with its place in gaps.
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

// setCount records the number of a sender's transactions behind gaps.
func (g *gaps) setCount(a *account, count int32) {
	if a.gapped == count {
		return
	}
	if a.gapped > 0 {
		g.index.Delete(gappedSender{a.gapped, a.since, a})
	}
	g.moves++
	a.gapped, a.since = count, g.moves
	if count > 0 {
		g.index.ReplaceOrInsert(gappedSender{count, a.since, a})
	}
}

// all yields the senders in the order in which they give way.
func (g *gaps) all(yield func(*account) bool) {
	g.index.Ascend(func(s gappedSender) bool { return yield(s.account) })
}

// recountGapped counts again how many transactions of a sender are behind a gap and could give way.
func (c *core) recountGapped(a *account) {
	c.queue.setCount(a, int32(len(a.txs))-a.line-a.fixed)
}

// lastGapped returns the n-th last transaction of a sender that is behind a gap and could give way.
// n counts from 0.
func (a *account) lastGapped(n int32) *entry {
	for i := len(a.txs) - 1; i >= 0; i-- {
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

// queueShares is how many equal shares the room for transactions behind gaps has. A sender with
// more than one share gives way to others.
const queueShares = 16

// findGapped chooses the transactions behind gaps that must leave for a newcomer behind a gap.
// These are the last ones of senders that have more than their share, as long as such a sender
// keeps at least as many as the newcomer's sender has. If there are none, the last transaction of
// the newcomer's own sender leaves, provided that the newcomer has a lower nonce and so comes
// earlier.
func (c *core) findGapped(a *account, newcomer *entry, room func(usage) bool) (leaves []leaving, err error) {
	const most = 8 // a newcomer may be large
	var freed usage
	fair := max(a.gapped+1, int32(c.cfg.MaxQueued/queueShares))
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
	last := a.lastGapped(0)
	if last != nil && last.nonce > newcomer.nonce && room(last.uses(1)) {
		return []leaving{{last, Dropped, ErrPoolFull}}, nil
	}
	return nil, fmt.Errorf("%w: %d transactions of %d bytes are behind nonce gaps, %d of them from address %v", ErrPoolFull,
		c.uses[queued].count, c.uses[queued].bytes, a.gapped, a.address)
}
