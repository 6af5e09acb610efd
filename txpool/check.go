package txpool

import (
	"fmt"
	"reflect"

	"github.com/holiman/uint256"
)

// Check verifies all invariants of the pool, for tests and for cautious hosts. It
// recomputes the position and the counters of each transaction and compares them with the
// stored ones. If they differ, it returns an error that wraps [ErrInvariant] and names
// the invariant.
//
// Check first waits for a running call with several steps, such as Reset. It then holds
// the pool's lock for about a microsecond per transaction.
func (p *Pool) Check() error {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.core.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvariant, err)
	}
	return nil
}

// totals has sums over all transactions and senders. The core updates such sums with each
// change; Check computes them again from the transactions, and compares.
type totals struct {
	senders, transactions   int
	ready, parked, roomless int // in the indexes
	gapped                  int // senders with transactions behind gaps
	uses, kept              [groups]usage
	exempt, aside           usage
	authorizations          authorizations
}

// counters are an account's counts of its transactions, which Check compares with a
// recount.
type counters struct{ line, locked, ahead, exempt, fixed, gapped int32 }

// check verifies all invariants.
func (c *core) check() error {
	have := totals{
		senders: len(c.accounts), transactions: len(c.all), ready: c.ready.Len(), parked: c.parked.Len(), gapped: c.queue.index.Len(),
		uses: c.uses, kept: c.kept, exempt: c.exempt, aside: c.aside.used, authorizations: c.authorizations,
	}
	for _, class := range c.roomless {
		have.roomless += class.Len()
	}
	want := totals{senders: len(c.list), authorizations: make(authorizations)}
	for slot, a := range c.list {
		if int(a.slot) != slot || c.accounts[a.address] != a {
			return fmt.Errorf("every sender is listed once: %v is at slot %d, want %d", a.address, a.slot, slot)
		}
		if err := c.checkSender(a, &want); err != nil {
			return fmt.Errorf("sender %v: %w", a.address, err)
		}
	}
	for _, o := range c.aside.txs {
		want.aside.add(usage{1, memoryOf(o.tx)})
	}
	if !reflect.DeepEqual(have, want) {
		return fmt.Errorf("the totals match the transactions: have %+v, want %+v", have, want)
	}
	return c.checkRoom()
}

// checkRoom verifies the caps, and that no transaction waits although there is room.
func (c *core) checkRoom() error {
	yields := [...]bool{
		queued: c.queue.index.Len() > 0,
		parked: c.findWorst(c.parked) != nil || c.findWorst(c.roomless[:]...) != nil,
		ready:  c.findWorst(c.ready) != nil,
	}
	for s := queued; s <= ready; s++ {
		returning := c.patient && s == queued // gaps of a running Reset close
		if c.exceedsCaps(s) && yields[s] && !returning {
			return fmt.Errorf("the pool is within its caps (T2): status %d has %v that are not exempt, limit %v", s, c.capped(s), c.limits[s])
		}
	}
	if c.patient {
		return nil // some come in later
	}
	p, some := c.planNextIn()
	if some {
		return fmt.Errorf("no transaction waits while it may come in: nonce %d of %v does", p.promotes.nonce, p.account.address)
	}
	r, some := c.parked.Min()
	if some && r.rank >= c.fees.leastRank() {
		return fmt.Errorf("no transaction is parked that pays enough: nonce %d of %v is", r.entry.nonce, r.entry.account.address)
	}
	return nil
}

// checkSender verifies one sender, and adds the sender's transactions to all.
func (c *core) checkSender(a *account, all *totals) error {
	total := new(uint256.Int)
	var n counters
	// Only a transaction that came back or is locked may exceed the balance.
	covered := true
	for i, l := range a.txs {
		if err := c.checkEntry(a, l); err != nil {
			return err
		}
		n.add(i, l.entry)
		all.add(l.entry)
		covered = covered && !l.exempt && !l.locked
		if a.unsettled(l.nonce) {
			total.Add(total, &l.cost)
		}
	}
	have := counters{a.line, a.locked, a.ahead, a.exempt, a.fixed, a.gapped}
	own := len(a.txs) - int(a.exempt)
	_, listed := c.queue.index.Get(gappedSender{a.gapped, a.since, a})
	switch {
	case len(a.txs) == 0:
		return fmt.Errorf("a sender has transactions: it has none")
	case have != n:
		return fmt.Errorf("the counters of a sender match its transactions: have %+v, want %+v", have, n)
	case listed != (n.gapped > 0):
		return fmt.Errorf("every sender with a gap is listed: one with %d is not", n.gapped)
	case own > c.cfg.MaxPerSender:
		return fmt.Errorf("a sender is within its cap (T2): %d transactions that are not exempt, limit %d", own, c.cfg.MaxPerSender)
	case !total.Eq(&a.cost):
		return fmt.Errorf("the cost of a sender's transactions is counted: %v, want %v", &a.cost, total)
	case covered && a.short():
		return fmt.Errorf("the balance covers all transactions of a sender (I2): balance %v, cost %v", &a.Balance, &a.cost)
	}
	if n.gapped > 0 {
		all.gapped++
	}
	return c.checkPlaces(a)
}

// add counts the entry at an index of a chain.
func (n *counters) add(i int, e *entry) {
	count := func(counter *int32, counts bool) {
		if counts {
			*counter++
		}
	}
	count(&n.line, e.status != queued && int(n.line) == i)
	count(&n.locked, e.locked)
	count(&n.ahead, e.locked && int(n.ahead) == i)
	count(&n.exempt, e.exempt)
	count(&n.fixed, e.stays())
	count(&n.gapped, e.counts() == queued && !e.stays())
}

// add counts an entry.
func (t *totals) add(e *entry) {
	t.transactions++
	t.uses[e.group()].add(e.uses(1))
	if e.keeps() {
		t.kept[e.group()].add(e.uses(1))
	}
	if e.exempt {
		t.exempt.add(e.uses(1))
	}
	switch {
	case e.locked:
	case e.status == ready:
		t.ready++
	case e.roomless:
		t.roomless++
	case e.status == parked:
		t.parked++
	}
	for _, auth := range e.authorities() {
		if e.counts() == ready {
			t.authorizations.add(auth)
		}
	}
}

// checkEntry verifies the fields of a transaction in a chain.
func (c *core) checkEntry(a *account, l link) error {
	e := l.entry
	switch {
	case e.account != a || e.gone || e.fresh || c.all[e.hash()] != e || e.nonce != l.nonce:
		return fmt.Errorf("every transaction is found by hash and nonce: nonce %d is not", e.nonce)
	case e.rank != c.fees.rank(e):
		return fmt.Errorf("a rank belongs to the current base fee (I4): nonce %d has %d, want %d", e.nonce, e.rank, c.fees.rank(e))
	case e.nonce < a.Nonce && !e.locked:
		return fmt.Errorf("a used nonce is locked or gone (T1): nonce %d, next %d", e.nonce, a.Nonce)
	}
	return nil
}

// checkPlaces verifies the nonce order, status and place of a sender's transactions.
func (c *core) checkPlaces(a *account) error {
	at := position{next: a.Nonce, lead: noLead, lowest: ready, funded: a.funded()}
	last := -1
	for i, l := range a.txs {
		e := l.entry
		if i > 0 && a.txs[last].nonce >= e.nonce {
			return fmt.Errorf("nonces of a sender ascend: %d after %d", e.nonce, a.txs[last].nonce)
		}
		last = i
		if e.nonce < a.Nonce {
			continue // used, but locked
		}
		want := c.standing(a, i, e, &at)
		if e.roomless && want.status == ready { // only a transaction that could run waits for room
			want = at.wait(e)
		}
		if c.session != nil && a.locked > 0 {
			// While a session takes transactions of this sender, the places of the later ones
			// are not updated, so they cannot be checked now.
			want.lead = e.lead
		}
		have := (seat{e.status, e.lead, e.roomless})
		if have != want {
			return fmt.Errorf("a chain runs in the order of its nonces (T1): nonce %d has %+v, want %+v", e.nonce, have, want)
		}
		index := c.indexFor(e)
		if index != nil {
			got, there := index.Get(e.ranked(e.lead))
			if !there || got.entry != e {
				return fmt.Errorf("each index is complete: nonce %d is missing", e.nonce)
			}
		}
	}
	return nil
}
