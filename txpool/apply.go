package txpool

import (
	"math"
	"time"
)

// applyPlan is the last stage of admission: it carries out a plan and emits the events.
func (c *core) applyPlan(p plan) {
	a := p.account
	e := p.enters
	if e != nil {
		old := p.replaces // the replacement keeps the room of the old one
		if old != nil {
			e.exempt, e.ran = old.exempt, old.ran
		}
		e.ran = e.ran || p.runs
		c.recordAdmission(e.past()) // first: a crash may cut the records after any of them
	}
	for _, l := range p.leaves {
		if l.gone {
			continue // left together with a transaction before it
		}
		if l.account == a || l.reason != ErrPoolFull {
			c.removeAt(l.account, l.account.indexOf(l.entry))
			c.emitEvent(Event{Kind: l.kind, Reason: l.reason}, l.entry)
		} else {
			// The pool is full, and the transaction of another sender leaves. The later
			// transactions of that sender leave too, because they cannot run without it.
			c.evictChain(l.entry)
		}
	}
	if p.state != nil {
		c.setState(a, *p.state)
	}
	for _, e := range p.returns {
		c.unlockEntry(e)
	}
	for _, e := range p.exempts {
		c.exemptEntry(e)
	}
	from := p.index
	// More changes to the same sender follow. The order of its transactions is computed after
	// the last change.
	if p.together {
		c.touchAccount(a, from, from)
		return
	}
	if p.enters != nil {
		c.storeEntry(p)
	}
	if p.state != nil || len(p.exempts) > 0 {
		c.arrangeChain(a, 0, len(a.txs))
	} else {
		c.arrangeChain(a, min(from, len(a.txs)), from)
	}
	c.closeAccount(a)
}

// storeEntry adds a new transaction to its sender's list. If it replaces a transaction
// with the same nonce, it takes that one's place.
func (c *core) storeEntry(p plan) {
	a, e := p.account, p.enters
	old := p.replaces
	if old != nil {
		c.removeAt(a, p.index)
		c.inheritCount(old, e)
		c.replaced.remember(old.hash(), struct{}{}, e.at)
		c.emitEvent(Event{Kind: Replaced, By: e.hash()}, old)
	}
	c.seq++
	e.seq, e.account, e.lead, e.fresh = c.seq, a, noLead, true
	e.rank = c.fees.rank(e)
	a.insertAt(p.index, e)
	if a.unsettled(e.nonce) {
		a.cost.Add(&a.cost, &e.cost)
	}
	c.all[e.hash()] = e
	c.departures.Remove(e.hash())
	c.countEntry(e, 1)
	if e.exempt {
		a.exempt++
	}
}

// inheritCount makes a replacement continue the replacement count of the old
// transaction.
func (c *core) inheritCount(old, e *entry) {
	e.replacements, e.since = 1, uint32(e.at/int64(time.Second))
	if c.replacementWait(old, e.at) > 0 {
		// Replacements are counted by nonce, not by transaction. Otherwise a sender could evade
		// the limit by replacing each replacement in turn.
		e.replacements, e.since = min(old.replacements, math.MaxUint16-1)+1, old.since
	}
}

// replacementWait returns how long earlier replacements still count towards the limit
// per minute.
func (c *core) replacementWait(e *entry, now int64) time.Duration {
	if e.replacements == 0 {
		return 0
	}
	return replacementWindow - time.Duration(now-int64(e.since)*int64(time.Second))
}

// evictChain drops a transaction, and the sender's later ones, because the pool is
// full.
func (c *core) evictChain(e *entry) {
	a := e.account
	first := a.indexOf(e)
	for i := max(int(a.line)-1, first); i >= first; i-- {
		// The sender's later transactions cannot run without this one, so they leave too.
		// Transactions that a session has locked stay, and so do those that no newcomer may
		// push out.
		l := a.txs[i].entry
		if l == e || !l.locked && !l.keeps() {
			c.emitEvent(Event{Kind: Dropped, Reason: ErrPoolFull}, c.removeAt(a, i))
		}
	}
	c.arrangeChain(a, min(first, len(a.txs)), first)
	c.closeAccount(a)
}

// setState stores an account's new nonce and balance, and recomputes the total cost.
func (c *core) setState(a *account, known Account) {
	a.stale, a.Account = false, known
	a.countCost()
}

// lockEntry locks a transaction because a session has taken it.
func (c *core) lockEntry(e *entry) {
	// The places of the sender's later transactions change too. They are computed only once,
	// when the session takes no more transactions of this sender: see stopTaking.
	c.removeFromIndex(e)
	c.countEntry(e, -1)
	e.locked, e.lead, e.roomless = true, noLead, false
	c.countEntry(e, 1)
	e.account.locked++
	e.account.countAhead()
}

// unlockEntry unlocks a transaction because it is in no block.
func (c *core) unlockEntry(e *entry) {
	was := e.counts()
	c.countEntry(e, -1)
	e.locked = false
	c.countEntry(e, 1)
	a := e.account
	a.locked--
	a.ahead = min(a.ahead, int32(a.indexOf(e)))
	if e.counts() != was {
		c.emitMove(e, false)
		c.enlistAuthorities(e, false)
	}
}

// A transaction comes back when its block has failed or the process was restarted. The
// pool has accepted it before, so it is exempt from the caps on count and bytes: it
// displaces no other transaction, and no newcomer displaces it. It leaves the pool like
// any other transaction, for example by inclusion in a block or at the end of its
// lifetime.
//
// Exempt transactions cannot fill the memory, because they use up the room of
// newcomers: a newcomer is admitted only while all transactions together stay within
// the sum of the three caps. The pool therefore holds at most that sum, plus the
// transactions that were in a session or in the host's queue at one time.
//
// A transaction that a session postponed was never in a block, so it is not exempt.

// exemptEntry exempts a transaction from the caps. The caller must then call
// arrangeChain.
func (c *core) exemptEntry(e *entry) {
	if e.exempt {
		return
	}
	c.countEntry(e, -1)
	e.exempt = true
	e.account.exempt++
	c.countEntry(e, 1)
	c.recordKept(e)
}
