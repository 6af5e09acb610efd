package txpool

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/holiman/uint256"
)

// checkShare is the number of senders and transactions together that one Check
// visits.
const checkShare = 256

// Check verifies a part of the pool's invariants: all totals, and the chains of
// the next few senders. Successive calls visit all senders. One call visits
// about 256 transactions, or one sender's, and takes less than 0.1 ms, so a
// host can call it after every step. It returns an error that wraps
// [ErrInvariant] and names the invariant.
//
// Check does not wait for a Reset or another call with several steps. While such
// a call is running, Check verifies the totals only, and the next call of Check
// continues with the same senders.
func (p *Pool) Check() error {
	settled := p.turn.TryLock()
	if settled {
		defer p.turn.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.core.checkTotals(); err != nil || !settled {
		return violation(err)
	}
	return violation(p.core.checkSome(checkShare))
}

// CheckAll verifies all invariants of the pool. It waits for a running call
// with several steps, and holds the pool's lock for about a microsecond per
// transaction. It returns an error that wraps [ErrInvariant] and names the
// invariant.
func (p *Pool) CheckAll() error {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	return violation(p.core.check())
}

func violation(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInvariant, err)
}

// checkTotals verifies the totals without visiting transactions. They hold
// whenever the lock is free.
func (c *core) checkTotals() error {
	count := 0
	for _, u := range c.uses {
		count += u.count
	}
	switch {
	case len(c.list) != len(c.accounts):
		return fmt.Errorf("every sender is listed once: %d listed, want %d", len(c.list), len(c.accounts))
	case count != len(c.all):
		return fmt.Errorf("every transaction counts once: %d counted, want %d", count, len(c.all))
	case c.ready.Len() > c.uses[ready].count || c.parked.Len() > c.uses[parked].count:
		return fmt.Errorf("an index has only counted transactions: ready %d and parked %d, want at most %d and %d",
			c.ready.Len(), c.parked.Len(), c.uses[ready].count, c.uses[parked].count)
	case slices.ContainsFunc([]status{queued, parked, ready, leasedOut}, func(s status) bool { return c.kept[s].count > c.uses[s].count }):
		return fmt.Errorf("transactions that keep their room are part of the pool: %v, want at most %v", c.kept, c.uses)
	}
	return nil
}

// checkSome verifies the chains of the next senders.
func (c *core) checkSome(share int) error {
	for range c.list {
		if share <= 0 {
			return nil
		}
		if c.checked >= len(c.list) {
			c.checked = 0
		}
		a := c.list[c.checked]
		if err := c.checkSender(c.checked, a); err != nil {
			return err
		}
		share -= 1 + len(a.txs)
		c.checked++
	}
	return nil
}

// checkSender verifies one sender and its chain.
func (c *core) checkSender(slot int, a *account) error {
	if int(a.slot) != slot || c.accounts[a.address] != a {
		return fmt.Errorf("every sender is listed once: %v is at slot %d, want %d", a.address, a.slot, slot)
	}
	if err := c.checkChain(a); err != nil {
		return fmt.Errorf("sender %v: %w", a.address, err)
	}
	return nil
}

// census is the result of counting all transactions.
type census struct {
	uses, kept    [groups]usage
	exempt        usage
	count         int
	ready, parked int
	roomless      int
}

// take counts a sender's transactions.
func (s *census) take(a *account) {
	for _, l := range a.txs {
		e := l.entry
		s.count++
		s.uses[e.group()].add(e)
		if e.keeps() {
			s.kept[e.group()].add(e)
		}
		if e.exempt {
			s.exempt.add(e)
		}
		switch {
		case e.lease != nil:
		case e.status == ready:
			s.ready++
		case e.roomless:
			s.roomless++
		case e.status == parked:
			s.parked++
		}
	}
}

// check verifies all invariants.
func (c *core) check() error {
	if err := c.checkTotals(); err != nil {
		return err
	}
	var have census
	for i, a := range c.list {
		if err := c.checkSender(i, a); err != nil {
			return err
		}
		have.take(a)
	}
	switch {
	case have.uses != c.uses || have.count != len(c.all):
		return fmt.Errorf("the totals match the transactions: have %v, %d in all; want %v, %d", c.uses, len(c.all), have.uses, have.count)
	case have.kept != c.kept || have.exempt != c.exempt:
		return fmt.Errorf("the totals of transactions that keep their room match them: have %v, exempt %v, want %v, %v", c.kept, c.exempt, have.kept, have.exempt)
	case have.ready != c.ready.Len() || have.parked != c.parked.Len():
		return fmt.Errorf("each index is complete: have %d ready and %d parked, want %d and %d", c.ready.Len(), c.parked.Len(), have.ready, have.parked)
	}
	roomless := 0
	for _, class := range c.roomless {
		roomless += class.Len()
	}
	if roomless != have.roomless {
		return fmt.Errorf("each transaction that waits for room is indexed: %d, want %d", roomless, have.roomless)
	}
	if err := c.checkRoomless(); err != nil {
		return err
	}
	if err := c.aside.check(); err != nil {
		return err
	}
	if err := c.checkCaps(); err != nil {
		return err
	}
	if err := c.checkGaps(); err != nil {
		return err
	}
	return c.checkAuthorized()
}

// checkCaps verifies that each status is within its caps (T2, I1).
func (c *core) checkCaps() error {
	for s := queued; s <= ready; s++ {
		if c.over(s) && c.yields(s) {
			return fmt.Errorf("the pool is within its caps (T2): status %d has %v that are not exempt, limit %v", s, c.capped(s), c.limit(s))
		}
	}
	return nil
}

// yields reports whether a status has a transaction that a cap may evict.
func (c *core) yields(s status) bool {
	switch s {
	case queued:
		return c.queue.index.Len() > 0
	case ready:
		return c.worst(c.ready) != nil
	}
	return c.worst(c.parked) != nil || c.worst(c.roomless[:]...) != nil
}

// checkChain verifies the chain of one sender.
func (c *core) checkChain(a *account) error {
	if len(a.txs) == 0 && a.nonce == a.state {
		return errors.New("a sender has transactions or committed ones: it has none")
	}
	if n := len(a.txs) - int(a.exempt); n > c.cfg.MaxPerSender {
		return fmt.Errorf("a sender is within its cap (T2): %d transactions that are not exempt, limit %d", n, c.cfg.MaxPerSender)
	}
	for _, s := range a.committed.all() {
		if s.nonce < a.state || s.nonce >= a.nonce {
			return fmt.Errorf("committed nonces are those that State does not show: nonce %d, want %d to %d", s.nonce, a.state, a.nonce)
		}
	}
	total := new(uint256.Int)
	for _, s := range a.committed.all() {
		total.Add(total, &s.cost)
	}
	covered := true // at least one must come back or be in a bundle to exceed the balance
	for _, l := range a.txs {
		covered = covered && !l.exempt && l.lease == nil
		if a.unsettled(l.nonce) {
			total.Add(total, &l.cost)
		}
	}
	if !total.Eq(&a.cost) {
		return fmt.Errorf("the cost of a sender's transactions is counted: %v, want %v", &a.cost, total)
	}
	if covered && a.committed == nil && a.short() {
		return fmt.Errorf("the balance covers all transactions of a sender (I2): balance %v, cost %v", &a.balance, &a.cost)
	}
	if err := a.checkCounts(); err != nil {
		return err
	}
	at := position{next: a.nonce, lead: noLead, lowest: ready, funded: a.funded()}
	for i, l := range a.txs {
		if i > 0 && a.txs[i-1].nonce >= l.nonce {
			return fmt.Errorf("nonces of a sender ascend: %d after %d", l.nonce, a.txs[i-1].nonce)
		}
		if err := c.checkEntry(a, l.entry); err != nil {
			return err
		}
		if l.nonce < a.nonce {
			continue // used, but leased
		}
		if err := c.checkPlace(a, i, &at); err != nil {
			return err
		}
	}
	return nil
}

// checkEntry verifies the fields of an entry.
func (c *core) checkEntry(a *account, e *entry) error {
	switch {
	case e.account != a || e.gone || e.fresh || c.all[e.hash()] != e:
		return fmt.Errorf("every transaction is found by its hash: nonce %d is not", e.nonce)
	case e.rank != c.fees.rank(e):
		return fmt.Errorf("a rank belongs to the current base fee (I4): nonce %d has %d, want %d", e.nonce, e.rank, c.fees.rank(e))
	case e.nonce < a.nonce && e.lease == nil:
		return fmt.Errorf("a used nonce is in a lease or gone (T1): nonce %d, next %d", e.nonce, a.nonce)
	}
	return nil
}

// checkPlace verifies status and place of the entry at i, and advances the
// position. The places of a sender's transactions are outdated while a session
// takes others of it.
func (c *core) checkPlace(a *account, i int, at *position) error {
	e := a.txs[i].entry
	want, lead := queued, noLead
	switch {
	case at.lowest == queued || e.nonce != at.next:
		at.lowest = queued
	case e.lease != nil:
		want, at.next = ready, at.next+1
	default:
		at.lead, at.lowest = c.standing(a, e, at.lead, at.lowest)
		if i >= at.funded {
			at.lead, at.lowest = place{0, e.seq}, parked
		}
		want, lead, at.next = at.lowest, at.lead, at.next+1
	}
	if e.roomless {
		if want != ready {
			return fmt.Errorf("only transactions that could run wait for room: nonce %d does not", e.nonce)
		}
		want, at.lead, at.lowest = parked, place{0, e.seq}, parked
	}
	if len(c.sessions) > 0 && a.leased > 0 {
		lead = e.lead
	}
	if e.status != want || e.lead != lead {
		return fmt.Errorf("a chain runs in the order of its nonces (T1): nonce %d is %d at %v, want %d at %v", e.nonce, e.status, e.lead, want, lead)
	}
	if e.lease == nil && lead != noLead {
		index := c.parked
		switch {
		case want == ready:
			index = c.ready
		case e.roomless:
			index = c.roomless[e.class()]
		}
		if got, there := index.Get(ranked{lead, e}); !there || got.entry != e {
			return fmt.Errorf("each index is complete: nonce %d is missing", e.nonce)
		}
	}
	return nil
}

// checkRoomless verifies that no transaction waits while it could come in.
func (c *core) checkRoomless() error {
	if c.patient {
		return nil // some come in later
	}
	if p, some := c.nextIn(); some {
		return fmt.Errorf("no transaction waits while it may come in: nonce %d of %v does", p.promotes.nonce, p.account.address)
	}
	if r, some := c.parked.Min(); some && r.rank >= c.fees.leastRank() {
		return fmt.Errorf("no transaction is parked that pays enough: nonce %d of %v is", r.entry.nonce, r.entry.account.address)
	}
	return nil
}

// checkCounts verifies the counters of an account.
func (a *account) checkCounts() error {
	var line, leased, exempt, lent, fixed int32
	last := uint64(0) // number of the last lease
	for i, e := range a.txs {
		if e.nonce != e.entry.nonce {
			return fmt.Errorf("a link has the nonce of its entry: %d, want %d", e.nonce, e.entry.nonce)
		}
		if e.status != queued && int(line) == i {
			line++
		}
		if e.lease != nil {
			if e.lease.id < last {
				return fmt.Errorf("a sender's later nonce is in the same or a later session: nonce %d is in lease %d, one before it in %d", e.nonce, e.lease.id, last)
			}
			last = e.lease.id
			leased++
			if int(lent) == i {
				lent++
			}
		}
		if e.exempt {
			exempt++
		}
		if e.stays() {
			fixed++
		}
	}
	have, want := []int32{a.line, a.leased, a.exempt, a.lent, a.fixed}, []int32{line, leased, exempt, lent, fixed}
	if !slices.Equal(have, want) {
		return fmt.Errorf("the counters of a sender match its transactions: in line, leased, exempt, lent and fixed are %v, want %v", have, want)
	}
	return nil
}

// checkAuthorized verifies the index of authorizations.
func (c *core) checkAuthorized() error {
	want := make(authorizations)
	for _, a := range c.list {
		for _, e := range a.txs {
			if e.rare != nil && e.counts() == ready {
				for _, auth := range e.rare.authorities {
					want.add(auth)
				}
			}
		}
		for _, s := range a.committed.all() {
			if s.carrier != nil {
				for _, auth := range s.carrier.rare.authorities {
					want.add(auth)
				}
			}
		}
	}
	if !reflect.DeepEqual(want, c.authorizations) {
		return fmt.Errorf("applicable authorizations are counted (I7): have %v, want %v", c.authorizations, want)
	}
	return nil
}

// checkGaps verifies the list of senders with transactions behind gaps.
func (c *core) checkGaps() error {
	senders := 0
	for _, a := range c.list {
		var count int32
		for _, e := range a.txs {
			if e.counts() == queued && !e.stays() {
				count++
			}
		}
		if count != a.gapped {
			return fmt.Errorf("the queued transactions of a sender are counted: %v has %d, counted %d", a.address, count, a.gapped)
		}
		if _, listed := c.queue.index.Get(gappedSender{count, a.since, a}); listed != (count > 0) {
			return fmt.Errorf("every sender with a gap is listed: %v with %d is not", a.address, count)
		}
		if count > 0 {
			senders++
		}
	}
	if senders != c.queue.index.Len() {
		return fmt.Errorf("every sender with a gap is listed: %d, want %d", c.queue.index.Len(), senders)
	}
	return nil
}
