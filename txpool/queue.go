package txpool

import (
	"bytes"

	"github.com/google/btree"
)

// What waits behind nonce gaps costs its sender nothing and may never run, so it has caps of its own (invariant I1). When they are reached,
// the sender with the most of it gives way, and of several the one that has waited longest: else whoever filled the room first would
// keep it.

// waiter is a sender at its place in core.waiting, by a copy of what that depends on.
type waiter struct {
	waits   int32
	since   uint64
	account *account
}

func givesWayBefore(a, b waiter) bool {
	switch {
	case a.waits != b.waits:
		return a.waits > b.waits
	case a.since != b.since:
		return a.since < b.since
	default:
		return bytes.Compare(a.account.address[:], b.account.address[:]) < 0
	}
}

func newWaiting() *btree.BTreeG[waiter] { return btree.NewG(degree, givesWayBefore) }

// recount notes how many of a sender's transactions are behind a gap.
func (c *core) recount(a *account) {
	waits := int32(len(a.txs)) - a.line
	if a.leased > 0 {
		for _, e := range a.txs[a.line:] {
			if e.lease != nil {
				waits-- // it counts as ready, wherever it stands
			}
		}
	}
	if waits == a.waits {
		return
	}
	if a.waits > 0 {
		c.waiting.Delete(waiter{a.waits, a.since, a})
	} else {
		a.since = c.seq
	}
	if a.waits = waits; waits > 0 {
		c.waiting.ReplaceOrInsert(waiter{waits, a.since, a})
	}
}

// lastWaiting returns the n-th last of a sender's transactions behind a gap.
func (a *account) lastWaiting(n int32) *entry {
	for i := len(a.txs) - 1; i >= 0; i-- {
		if e := a.txs[i].entry; e.status == queued && e.lease == nil {
			if n == 0 {
				return e
			}
			n--
		}
	}
	return nil
}

// giveWay chooses who behind gaps must go for a newcomer there: the last ones of senders that have at least as many as its own sender
// would have then.
func (c *core) giveWay(a *account, room func(usage) bool) (victims []*entry) {
	const most = 8 // for one newcomer, which may be large
	var freed usage
	enough := false
	c.waiting.Ascend(func(w waiter) bool {
		if w.account == a {
			return true
		}
		for n := int32(0); w.waits-n > a.waits && len(victims) < most && !enough; n++ {
			e := w.account.lastWaiting(n)
			freed.add(e)
			victims = append(victims, e)
			enough = room(freed)
		}
		return w.waits > a.waits && len(victims) < most && !enough
	})
	if !enough {
		return nil
	}
	return victims
}

// shrinkWaiting drops the last transaction of the sender that has most behind a gap.
func (c *core) shrinkWaiting() bool {
	first, ok := c.waiting.Min()
	if ok {
		c.dropEntry(first.account.lastWaiting(0), Dropped, ErrPoolFull)
	}
	return ok
}
