package txpool

import "github.com/google/btree"

// arrangeChain computes the status and the place of a sender's transactions again, from
// the index from on. The transaction at the index changed is the last one that has
// changed.
func (c *core) arrangeChain(a *account, from, changed int) {
	if a.short() || a.unfunded { // funding depends on the whole chain
		from, changed = 0, len(a.txs)
	}
	// After the last change, the computation can stop at the first transaction whose status
	// and place stay as they are.
	c.arrangeFrom(a, from, changed)
	if a.unfunded && !a.short() { // one left on the way
		c.arrangeFrom(a, 0, len(a.txs))
	}
	c.recountGapped(a)
	c.notifyOfHead(a)
}

// arrangeFrom visits the transactions from an index on, for arrangeChain.
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
		// This transaction can run from now on, but it contains an authorization that the pool
		// does not accept now. It is dropped, which leaves a gap before the sender's later
		// transactions.
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
		// The rest of the chain cannot change any more.
		if i >= changed && behindGap || i > changed && !moved && !e.locked {
			return
		}
	}
}

// seat is the status of a transaction, and its position in the order of all
// transactions with that status.
type seat struct {
	status   status
	lead     place
	roomless bool
}

// position describes how the earlier transactions of a sender limit the next one.
type position struct {
	next   uint64 // next nonce without a gap
	lead   place  // latest place so far in the order of the pool
	lowest status // lowest status so far
	funded int    // index of the first transaction that the balance does not cover
}

// position returns how the transactions before index i limit the one at i.
func (c *core) position(a *account, i int) position {
	at := position{next: a.Nonce, lead: noLead, lowest: ready, funded: a.funded()}
	if i > 0 {
		at.next, at.lead, at.lowest = a.before(i)
	}
	return at
}

// seat computes the seat of the transaction at index i, and advances at.
func (c *core) seat(a *account, i int, at *position) seat {
	e := a.txs[i].entry
	could := at.lowest == ready
	s := c.standing(a, i, e, at)
	// The transaction has just become able to run, but the pool has no room for more such
	// transactions. It waits, parked, until there is room. While the base fee changes, all of
	// them wait first, so that the best ones get the room.
	if could && s.status == ready && !e.fresh && e.counts() != ready && !e.exempt && (c.repricing || !c.fits(e)) {
		return at.wait(e)
	}
	return s
}

// wait returns the seat of a transaction that waits for room in the pool.
func (at *position) wait(e *entry) seat {
	s := seat{status: parked, lead: at.lead, roomless: true}
	// The later transactions of the sender must wait too. They go to the end of the order,
	// after all transactions that can run.
	at.lead, at.lowest = place{0, e.seq}, parked // as entry.behind
	return s
}

// standing returns the seat that a transaction has if the pool has room.
func (c *core) standing(a *account, i int, e *entry, at *position) seat {
	// The status of a transaction is decided here and in no other function. Each call also
	// moves at to the sender's next transaction.
	if e.nonce < a.Nonce {
		// The chain has executed this nonce. The transaction is still in the pool only because
		// a session is building a block with it.
		return seat{status: ready, lead: noLead}
	}
	if at.lowest == queued || e.nonce != at.next {
		// A nonce before the transaction is missing, so neither it nor the later ones
		// can run.
		at.lowest = queued
		return seat{status: queued, lead: noLead}
	}
	at.next++
	// A session has taken this transaction for its block, so the sender's later ones need not
	// wait for it, whatever it pays.
	if e.locked {
		return seat{status: ready, lead: noLead}
	}
	at.lead = at.lead.after(e)
	// The balance does not cover this transaction, or the account has been delegated
	// (EIP-7702) since and may have only a few transactions. With the lowest rank it is
	// parked, and so are the sender's later ones.
	if i >= at.funded || a.Delegated && e.nonce-a.Nonce >= uint64(c.cfg.MaxDelegated) {
		at.lead = place{0, e.seq}
	}
	// This transaction, or an earlier one of the sender, pays less than the base fee or the
	// floor.
	if at.lead.rank < c.fees.leastRank() {
		at.lowest = parked
	}
	return seat{status: at.lowest, lead: at.lead}
}

// refusesPromotion reports whether a transaction that can run now contains a forbidden
// authorization (EIP-7702).
func (c *core) refusesPromotion(a *account, e *entry) bool {
	// A new transaction was checked just now. An older one is checked again, because the
	// accounts that signed its authorizations may have changed while it waited.
	return !e.fresh && !e.exempt && !e.locked && c.checkAuthorities(a.address, e) != nil
}

// moveTo gives a transaction a new seat. It returns false if nothing has changed.
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

// indexFor returns the index that contains the transaction, or nil if none does.
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

// addToIndex adds a transaction to the index of its status.
func (c *core) addToIndex(e *entry) {
	index := c.indexFor(e)
	if index != nil {
		index.ReplaceOrInsert(e.ranked(e.lead))
		if e.status == ready {
			// The transaction can run: offer it to the session that is building a
			// block.
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

// removeAt removes a transaction without an event. The caller then calls arrangeChain.
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
