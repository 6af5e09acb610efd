package txpool

// What waits behind nonce gaps costs its sender nothing and may never run, so it has caps of its own (invariant I1). When they are reached,
// the sender with the most of it gives way, and of several the one that has had as many for longest: else whoever filled the room first would
// keep it.

// waitingRoom orders senders by how many transactions they have behind gaps: a list for each number, who has had as many for longest first. So
// a change costs the same however many there are.
type waitingRoom struct {
	lists   []waitingList // by number; 0 is unused
	most    int32         // the greatest number that somebody has
	senders int
}

type waitingList struct{ first, last *account }

// set notes how many transactions of a sender are behind gaps.
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

// remove takes a sender out of its list.
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

// all yields the senders, those that give way first.
func (r *waitingRoom) all(yield func(*account) bool) {
	for n := r.most; n > 0; n-- {
		for a := r.lists[n].first; a != nil; a = a.waitsBefore {
			if !yield(a) {
				return
			}
		}
	}
}

// recount notes how many of a sender's transactions are behind a gap and can
// give way.
func (c *core) recount(a *account) {
	waits := int32(len(a.txs)) - a.line
	if a.leased > 0 || a.exempt > 0 {
		for _, e := range a.txs[a.line:] {
			if e.lease != nil || e.exempt {
				waits-- // it counts as ready, wherever it stands, or gives way to nothing
			}
		}
	}
	c.waiting.set(a, waits)
}

// lastWaiting returns the n-th last of a sender's transactions behind a gap.
func (a *account) lastWaiting(n int32) *entry {
	for i := len(a.txs) - 1; i >= 0; i-- {
		if e := a.txs[i].entry; e.status == queued && e.lease == nil && !e.exempt {
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
	for sender := range c.waiting.all {
		if sender.waits <= a.waits {
			break
		}
		if sender == a {
			continue
		}
		for n := int32(0); sender.waits-n > a.waits && len(victims) < most; n++ {
			e := sender.lastWaiting(n)
			freed.add(e)
			if victims = append(victims, e); room(freed) {
				return victims
			}
		}
		if len(victims) == most {
			break
		}
	}
	return nil
}

// shrinkWaiting drops the last transaction of the sender that has most behind a gap.
func (c *core) shrinkWaiting() bool {
	for sender := range c.waiting.all {
		c.dropEntry(sender.lastWaiting(0), Dropped, ErrPoolFull)
		return true
	}
	return false
}
