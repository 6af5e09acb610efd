package txpool

import "fmt"

// waitingRoom orders senders by the number of their transactions behind nonce
// gaps. There is one list per number, and the sender that has had this number
// for longest is its first element. The cost of a change therefore does not
// depend on the number of senders.
//
// A transaction behind a gap costs its sender nothing and may never run, so
// these transactions have separate caps (invariant I1). At a cap, a newcomer is
// refused, because it would displace others for nothing. Only a sender that has
// more than its share of the room gives way. Otherwise a sender that filled the
// room first would keep it.
type waitingRoom struct {
	lists   []waitingList // by number; 0 is unused
	most    int32         // highest number of any sender
	senders int
}

type waitingList struct{ first, last *account }

// set records the number of a sender's transactions behind gaps.
func (r *waitingRoom) set(a *account, waits int32) {
	if a.waits == waits {
		return
	}
	r.remove(a)
	if a.waits = waits; waits == 0 {
		return
	}
	for int(waits) >= len(r.lists) {
		r.lists = append(r.lists, waitingList{})
	}
	l := &r.lists[waits]
	a.waitsAfter = l.last
	if l.last != nil {
		l.last.waitsBefore = a
	} else {
		l.first = a
	}
	l.last = a
	r.most = max(r.most, waits)
	r.senders++
}

// remove removes a sender from its list.
func (r *waitingRoom) remove(a *account) {
	if a.waits == 0 {
		return
	}
	l := &r.lists[a.waits]
	if a.waitsAfter != nil {
		a.waitsAfter.waitsBefore = a.waitsBefore
	} else {
		l.first = a.waitsBefore
	}
	if a.waitsBefore != nil {
		a.waitsBefore.waitsAfter = a.waitsAfter
	} else {
		l.last = a.waitsAfter
	}
	a.waitsAfter, a.waitsBefore = nil, nil
	r.senders--
	for r.most > 0 && r.lists[r.most].first == nil {
		r.most--
	}
}

// all yields the senders in the order in which they give way.
func (r *waitingRoom) all(yield func(*account) bool) {
	for n := r.most; n > 0; n-- {
		for a := r.lists[n].first; a != nil; a = a.waitsBefore {
			if !yield(a) {
				return
			}
		}
	}
}

// recount updates the number of a sender's transactions that are behind a gap
// and can give way.
func (c *core) recount(a *account) {
	c.queue.set(a, int32(len(a.txs))-a.line-a.fixed)
}

// lastWaiting returns the n-th last queued transaction of a sender that can
// give way.
func (a *account) lastWaiting(n int32) *entry {
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
// at least as many as the newcomer's sender.
func (c *core) giveWay(a *account, room func(usage) bool) (leaves []leaving, err error) {
	const most = 8 // a newcomer may be large
	var freed usage
	fair := max(a.waits+1, int32(c.cfg.MaxQueued/queueShares))
	for sender := range c.queue.all {
		if sender.waits <= fair {
			break
		}
		if sender == a {
			continue
		}
		for n := int32(0); sender.waits-n > fair && len(leaves) < most; n++ {
			e := sender.lastWaiting(n)
			freed.add(e)
			leaves = append(leaves, leaving{e, Dropped, ErrPoolFull})
			if room(freed) {
				return leaves, nil
			}
		}
		if len(leaves) == most {
			break
		}
	}
	return nil, fmt.Errorf("%w: %d transactions of %d bytes are behind nonce gaps, %d of them from address %v", ErrPoolFull,
		c.uses[queued].count, c.uses[queued].bytes, a.waits, a.address)
}

// shrinkQueue drops the last queued transaction of the sender that has most of
// them.
func (c *core) shrinkQueue() bool {
	for sender := range c.queue.all {
		c.apply(dropping(sender.lastWaiting(0), ErrPoolFull))
		return true
	}
	return false
}
