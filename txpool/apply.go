package txpool

import (
	"math"
	"time"
)

// apply is the last stage of admission, and the only way in which transactions
// enter the pool. It carries a plan out and emits the events. Transactions leave
// here too, except those that are in a block (core.include) and those that
// arrangeFrom refuses to promote.
func (c *core) apply(p plan) {
	a := p.account
	e := p.enters
	if e != nil {
		old := p.replaces // the nonce keeps its room
		if old != nil {
			e.exempt, e.ran = old.exempt, old.ran
		}
		e.ran = e.ran || p.runs
		c.recordAdmission(e.past()) // first: a crash may cut the records after any of them
	}
	for _, l := range p.leaves {
		if l.gone {
			continue // with one before it
		}
		if l.account == a || l.reason != ErrPoolFull {
			c.take(l.account, c.indexOf(l.entry))
			c.emit(Event{Kind: l.kind, Reason: l.reason}, l.entry)
		} else {
			c.evict(l.entry)
		}
	}
	if p.state != nil {
		c.move(a, *p.state)
	}
	for _, e := range p.returns {
		c.unlock(e)
	}
	for _, e := range p.exempts {
		c.exemptEntry(e)
	}
	from := p.index
	if p.together {
		c.touch(a, from, from)
		return
	}
	if p.enters != nil {
		c.enter(p)
	}
	if p.state != nil || len(p.exempts) > 0 {
		c.arrange(a, 0, len(a.txs))
	} else {
		c.arrange(a, min(from, len(a.txs)), from)
	}
	c.close(a)
}

// enter stores a newcomer, in the place of the transaction that it replaces.
func (c *core) enter(p plan) {
	a, e := p.account, p.enters
	old := p.replaces
	if old != nil {
		c.take(a, p.index)
		c.inherit(old, e)
		c.replaced.put(old.hash(), struct{}{}, e.at)
		c.emit(Event{Kind: Replaced, By: e.hash()}, old)
	}
	c.seq++
	e.seq, e.account, e.lead, e.fresh = c.seq, a, noLead, true
	e.rank = c.fees.rank(e)
	a.insert(p.index, e)
	if a.unsettled(e.nonce) {
		a.cost.Add(&a.cost, &e.cost)
	}
	c.all[e.hash()] = e
	c.departures.forget(e.hash())
	c.count(e, 1)
	if e.exempt {
		a.exempt++
	}
}

// inherit passes the count of replacements on to the new transaction.
func (c *core) inherit(old, e *entry) {
	e.replacements, e.since = 1, uint32(e.at/int64(time.Second))
	if c.replacementWait(old, e.at) > 0 {
		e.replacements, e.since = min(old.replacements, math.MaxUint16-1)+1, old.since
	}
}

// replacementWait returns for how long the replacements of a nonce still count.
// 0 or less means that they do not.
func (c *core) replacementWait(e *entry, now int64) time.Duration {
	if e.replacements == 0 {
		return 0
	}
	return replacementWindow - time.Duration(now-int64(e.since)*int64(time.Second))
}

// evict drops a transaction together with those in line after it, which could
// not run without it. Locked ones stay, and those that keep their room.
func (c *core) evict(e *entry) {
	a := e.account
	first := c.indexOf(e)
	for i := max(int(a.line)-1, first); i >= first; i-- {
		l := a.txs[i].entry
		if l == e || !l.locked && !l.keeps() {
			c.emit(Event{Kind: Dropped, Reason: ErrPoolFull}, c.take(a, i))
		}
	}
	c.arrange(a, min(first, len(a.txs)), first)
	c.close(a)
}

// move applies a new state of an account.
func (c *core) move(a *account, known Account) {
	a.stale, a.delegated = false, known.Delegated
	a.nonce, a.balance = known.Nonce, known.Balance
	a.recost()
}

// lock locks a ready entry, because a session has taken it. The places of those after it
// change when the session takes no more transactions: see core.touch.
func (c *core) lock(e *entry) {
	c.unindex(e)
	c.count(e, -1)
	e.locked, e.lead, e.roomless = true, noLead, false
	c.count(e, 1)
	e.account.locked++
	e.account.countAhead()
}

// unlock frees an entry from its session. The entry stays in the pool.
func (c *core) unlock(e *entry) {
	was := e.counts()
	c.count(e, -1)
	e.locked = false
	c.count(e, 1)
	a := e.account
	a.locked--
	a.ahead = min(a.ahead, int32(c.indexOf(e)))
	if e.counts() != was {
		c.emitMove(e, false)
		c.enlist(e, false)
	}
}

// A transaction that comes back was acknowledged: its
// block failed, or the process restarted. It is exempt from the caps of count
// and bytes. It displaces no other transaction and is not displaced. It leaves
// like any other: by inclusion, by a replacement of its sender, by its lifetime,
// or because its nonce is used.
//
// Exempt transactions cannot fill the memory. A newcomer is admitted only while
// all transactions together, including exempt ones and those held aside
// (held.go), but not locked ones, are within the sum of the three caps. The
// pool therefore holds at most that sum and, in addition, the transactions that
// were in a session or in the host's queue at one time.
//
// A transaction that a session postponed was never in a block. It is not exempt.

// exemptEntry makes an entry exempt from the caps. The caller must then arrange
// its chain.
func (c *core) exemptEntry(e *entry) {
	if e.exempt {
		return
	}
	c.count(e, -1)
	e.exempt = true
	e.account.exempt++
	c.count(e, 1)
	c.recordKept(e)
}
