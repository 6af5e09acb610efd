package txpool

import (
	"fmt"

	"github.com/google/btree"
)

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

// set records the number of a sender's transactions behind gaps.
func (g *gaps) set(a *account, count int32) {
	if a.gapped == count {
		return
	}
	if a.gapped > 0 {
		g.index.Delete(gappedSender{a.gapped, a.since, a})
	}
	g.moves++
	if a.gapped, a.since = count, g.moves; count > 0 {
		g.index.ReplaceOrInsert(gappedSender{count, a.since, a})
	}
}

// all yields the senders in the order in which they give way.
func (g *gaps) all(yield func(*account) bool) {
	g.index.Ascend(func(s gappedSender) bool { return yield(s.account) })
}

// recount updates the number of a sender's transactions that are behind a gap
// and can give way.
func (c *core) recount(a *account) {
	c.queue.set(a, int32(len(a.txs))-a.line-a.fixed)
}

// lastGapped returns the n-th last queued transaction of a sender that can
// give way.
func (a *account) lastGapped(n int32) *entry {
	for i := len(a.txs) - 1; i >= 0; i-- {
		if e := a.txs[i].entry; e.status == queued && !e.stays() {
			if n == 0 {
				return e
			}
			n--
		}
	}
	return nil
}

// queueShares is the number of equal shares of the room behind gaps. A sender
// that has more than one share gives way.
const queueShares = 16

// giveWay chooses the queued transactions that must go for a queued newcomer:
// the last ones of senders that have more than their share, and would still have
// at least as many as the newcomer's sender. If there are none, the last one of the
// newcomer's sender goes for an earlier nonce, which is executed before it.
func (c *core) giveWay(a *account, newcomer *entry, room func(usage) bool) (leaves []leaving, err error) {
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
	if last := a.lastGapped(0); last != nil && last.nonce > newcomer.nonce && room(last.uses(1)) {
		return []leaving{{last, Dropped, ErrPoolFull}}, nil
	}
	return nil, fmt.Errorf("%w: %d transactions of %d bytes are behind nonce gaps, %d of them from address %v", ErrPoolFull,
		c.uses[queued].count, c.uses[queued].bytes, a.gapped, a.address)
}

// shrinkQueue drops the last queued transaction of the sender that has most of
// them.
func (c *core) shrinkQueue() bool {
	sender, some := c.queue.index.Min()
	if some {
		c.apply(dropping(sender.lastGapped(0), ErrPoolFull))
	}
	return some
}
