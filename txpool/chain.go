package txpool

import "github.com/google/btree"

// arrangeChain recomputes the status and the order of a sender's transactions, from index
// from on. Every change to a sender's chain must end with this call.
//
// The transactions before from must be up to date. changed is the last index at which the
// caller has changed something; after it, arrangeChain stops at the first transaction
// that keeps its status and order.
func (c *core) arrangeChain(a *account, from, changed int) {
	if a.short() || a.unfunded { // funding depends on the whole chain
		from, changed = 0, len(a.txs)
	}
	c.arrangeFrom(a, from, changed)
	if a.unfunded && !a.short() { // one left on the way
		c.arrangeFrom(a, 0, len(a.txs))
	}
	c.recountGapped(a)
	c.notifyOfHead(a)
}

// arrangeFrom is the part of arrangeChain that visits the transactions from an index on.
// It stops as soon as the rest of the chain cannot change.
func (c *core) arrangeFrom(a *account, from, changed int) {
	at := c.position(a, from)
	behindGap := at.lowest == queued
	a.unfunded = at.funded < len(a.txs)
	for i := from; i < len(a.txs); i++ {
		e := a.txs[i].entry
		s := c.seat(a, i, &at)
		if s.status == queued {
			a.line = min(a.line, int32(i))
		} else {
			a.line = max(a.line, int32(i)+1)
		}
		moved := c.moveTo(e, s)
		if moved && s.status == ready && c.refusesPromotion(a, e) {
			c.removeAt(a, i)
			c.emitEvent(Event{Kind: Dropped, Reason: ErrAuthorityReserved}, e)
			at.lowest, at.funded = queued, a.funded()
			i--
			continue
		}
		if e.fresh {
			e.fresh = false
			c.emitMove(e, true)
		}
		if i >= changed && behindGap || i > changed && !moved && !e.locked {
			return
		}
	}
}

// seat is the status of a transaction, and its position in the order of all transactions
// with that status.
type seat struct {
	status   status
	lead     place
	roomless bool
}

// position describes how the transactions of a sender before some index limit the
// transaction at that index:
//
//   - next is the next nonce without a gap.
//   - lead and lowest are the latest place in the order and the lowest status so far.
//   - funded is the index of the first transaction that the balance does not cover.
type position struct {
	next   uint64
	lead   place
	lowest status
	funded int
}

// position returns how the transactions before index i limit the one at i.
func (c *core) position(a *account, i int) position {
	at := position{next: a.Nonce, lead: noLead, lowest: ready, funded: a.funded()}
	if i > 0 {
		at.next, at.lead, at.lowest = a.before(i)
	}
	return at
}

// seat computes the status and the order of the transaction at index i, and advances the
// position at to the next index. A transaction that could run but finds no room in the
// pool is parked until there is room. While the base fee changes, every transaction that
// becomes able to run is first parked in this way, so that the best of them get the room.
func (c *core) seat(a *account, i int, at *position) seat {
	e := a.txs[i].entry
	could := at.lowest == ready
	s := c.standing(a, i, e, at)
	if could && s.status == ready && !e.fresh && e.counts() != ready && !e.exempt && (c.repricing || !c.fits(e)) {
		return at.wait(e)
	}
	return s
}

// wait returns the seat of a transaction that could run but must wait for room in the
// pool. It also moves the sender's later transactions to the end of the order, because
// they cannot run before it.
func (at *position) wait(e *entry) seat {
	s := seat{status: parked, lead: at.lead, roomless: true}
	at.lead, at.lowest = place{0, e.seq}, parked // as entry.behind
	return s
}

// standing returns the status and the place that the transaction at index i has if there
// is room in the pool, and advances the position at to the next index. Only standing
// decides the status of a transaction:
//
//   - If its nonce is used, it counts as ready. Only a transaction that a session has
//     locked is still in the pool then.
//   - If it is behind a nonce gap, it is queued.
//   - If it is locked, it counts as ready whatever it pays, so that the later ones do not
//     wait for it.
//   - If it does not pay enough, or the balance does not cover it, it is parked, and so
//     are the later ones.
//   - If its account has become delegated since its admission, and it is beyond the limit
//     for such accounts, it is parked until its turn comes.
func (c *core) standing(a *account, i int, e *entry, at *position) seat {
	if e.nonce < a.Nonce {
		return seat{status: ready, lead: noLead}
	}
	if at.lowest == queued || e.nonce != at.next {
		at.lowest = queued
		return seat{status: queued, lead: noLead}
	}
	at.next++
	if e.locked {
		return seat{status: ready, lead: noLead}
	}
	at.lead = at.lead.after(e)
	if i >= at.funded || a.Delegated && e.nonce-a.Nonce >= uint64(c.cfg.MaxDelegated) {
		at.lead = place{0, e.seq}
	}
	if at.lead.rank < c.fees.leastRank() {
		at.lowest = parked
	}
	return seat{status: at.lowest, lead: at.lead}
}

// refusesPromotion reports whether a transaction that has just become able to run
// contains an authorization (EIP-7702) that the pool does not accept. Such authorizations
// were not checked at admission, because the pool limits them only in transactions that
// can run.
func (c *core) refusesPromotion(a *account, e *entry) bool {
	return !e.fresh && !e.exempt && !e.locked && c.checkAuthorities(a.address, e) != nil
}

// moveTo gives a transaction a new status and a new position in the order, and updates
// everything that depends on them, such as counters and indexes. It returns false if
// nothing has changed.
func (c *core) moveTo(e *entry, s seat) bool {
	if e.status == s.status && e.lead == s.lead && e.roomless == s.roomless {
		return false
	}
	c.removeFromIndex(e)
	was := e.counts()
	c.countEntry(e, -1)
	e.status, e.lead, e.roomless = s.status, s.lead, s.roomless
	first := s.status == ready && !e.ran
	e.ran = e.ran || first
	c.countEntry(e, 1)
	if first {
		c.recordKept(e)
	}
	is := e.counts()
	if is != was {
		if !e.fresh {
			c.emitMove(e, false)
		}
		c.enlistAuthorities(e, is == ready)
	}
	c.addToIndex(e)
	return true
}

// indexFor returns the index that contains the transaction. It returns nil if none does,
// for example because a session has locked the transaction.
func (c *core) indexFor(e *entry) *btree.BTreeG[ranked] {
	switch {
	case e.locked || e.lead == noLead:
		return nil
	case e.status == ready:
		return c.ready
	case e.roomless:
		return c.roomless[e.class()]
	}
	return c.parked
}

// addToIndex adds a transaction to the index of its status. If the transaction can run, addToIndex
// also offers it to the session that is building a block, if there is one.
func (c *core) addToIndex(e *entry) {
	index := c.indexFor(e)
	if index != nil {
		index.ReplaceOrInsert(e.ranked(e.lead))
		if e.status == ready {
			c.notifySession(e)
		}
	}
}

// removeFromIndex removes an entry from its index.
func (c *core) removeFromIndex(e *entry) {
	index := c.indexFor(e)
	if index != nil {
		index.Delete(e.ranked(e.lead))
	}
}

// removeAt removes the transaction at an index of a sender's chain from the pool, without an event.
// The caller must then update the chain with arrangeChain.
func (c *core) removeAt(a *account, i int) *entry {
	e := a.txs[i].entry
	c.removeFromIndex(e)
	c.countEntry(e, -1)
	if e.locked {
		a.locked--
		e.locked = false
	}
	if e.exempt {
		a.exempt--
	}
	c.enlistAuthorities(e, false)
	a.removeAt(i)
	if a.unsettled(e.nonce) {
		a.cost.Sub(&a.cost, &e.cost)
	}
	delete(c.all, e.hash())
	e.gone = true
	return e
}
