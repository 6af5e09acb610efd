package txpool

import (
	"math"
	"time"
)

// applyPlan is the last stage of admission: it carries out a plan and emits the
// events. Transactions enter the pool only here, and most leave the pool here. The
// exceptions are transactions included in a block (core.includeTransaction) and
// those that arrangeFrom refuses to promote.
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

// storeEntry stores the newcomer of a plan. If the newcomer replaces another
// transaction, it takes that transaction's position in the sender's chain, and the
// replaced transaction leaves the pool.
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

// inheritCount makes the replacement e continue the recent replacement count of the
// transaction old. The count belongs to the nonce, so a sender cannot evade the limit
// by replacing a replacement.
func (c *core) inheritCount(old, e *entry) {
	e.replacements, e.since = 1, uint32(e.at/int64(time.Second))
	if c.replacementWait(old, e.at) > 0 {
		e.replacements, e.since = min(old.replacements, math.MaxUint16-1)+1, old.since
	}
}

// replacementWait returns how long the recent replacements of a transaction's nonce still
// count towards the limit per minute. The result is 0 or less if they no longer count.
func (c *core) replacementWait(e *entry, now int64) time.Duration {
	if e.replacements == 0 {
		return 0
	}
	return replacementWindow - time.Duration(now-int64(e.since)*int64(time.Second))
}

// evictChain drops a transaction because the pool is full. It also drops the later
// ones in the sender's chain, because they cannot run without it. Locked
// transactions stay, and so do those to which the caps do not apply.
func (c *core) evictChain(e *entry) {
	a := e.account
	first := a.indexOf(e)
	for i := max(int(a.line)-1, first); i >= first; i-- {
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

// lockEntry locks a transaction because a session has taken it. It does not compute the
// order of the sender's later transactions again. That happens once, when the session
// takes no more transactions of this sender: see core.touchAccount.
func (c *core) lockEntry(e *entry) {
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

// A transaction comes back when its block has failed or the process was restarted.
// The pool has accepted it before, so it is exempt from the caps on count and
// bytes. It neither displaces another transaction nor is displaced. It leaves the
// pool like any other transaction: by inclusion, by a replacement of its sender, by
// its lifetime, or because its nonce is used.
//
// Exempt transactions cannot fill the memory, because a newcomer is admitted only
// while all transactions together stay within the sum of the three caps. This sum
// includes exempt transactions and those held aside (held.go), but not locked ones.
// The pool therefore holds at most that sum plus the transactions that were in a
// session or in the host's queue at one time.
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
