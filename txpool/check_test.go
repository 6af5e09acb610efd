package txpool

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/google/btree"
)

// check returns what is wrong, or nil: the invariants that must hold after every call.
func (p *Pool) check() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.core.check()
}

func (c *core) check() error {
	var uses [ready + 1]usage
	leased, count, readyCount, parkedCount, surplus := 0, 0, 0, 0, 0
	if len(c.list) != c.accounts.len() {
		return fmt.Errorf("%d accounts listed, %d known", len(c.list), c.accounts.len())
	}
	for i, a := range c.list {
		if int(a.slot) != i || c.accounts.get(a.address) != a {
			return fmt.Errorf("%v is at slot %d, want %d", a.address, a.slot, i)
		}
		if err := c.checkChain(a); err != nil {
			return fmt.Errorf("%v: %w", a.address, err)
		}
		for _, l := range a.txs {
			e := l.entry
			count++
			uses[e.counts()].add(e)
			switch {
			case e.lease != nil:
				leased++
			case e.status == ready:
				readyCount++
				if e.surplus {
					surplus++
				}
			case e.status == parked:
				parkedCount++
			}
		}
	}
	switch {
	case uses != c.uses || leased != c.leased || count != c.all.len():
		return fmt.Errorf("uses are %v, %d leased, %d in all; want %v, %d, %d", c.uses, c.leased, c.all.len(), uses, leased, count)
	case readyCount != c.ready.Len() || parkedCount != c.parked.Len() || surplus != c.surplus.Len():
		return fmt.Errorf("indexes hold %d, %d and %d, want %d, %d and %d", c.ready.Len(), c.parked.Len(), c.surplus.Len(), readyCount, parkedCount, surplus)
	}
	for s := queued; s <= ready; s++ { // T2, I1: held ones have their own caps
		if c.over(s) && !(s == ready && c.ready.Len() == 0) {
			return fmt.Errorf("T2: status %d has %v, limit %v", s, c.uses[s], c.limit(s))
		}
	}
	if err := c.checkWaiting(); err != nil {
		return err
	}
	return c.checkAuthorized()
}

// checkChain checks one sender.
func (c *core) checkChain(a *account) error {
	if len(a.txs) == 0 && a.nonce == a.state {
		return errors.New("an account without anything")
	}
	if n := len(a.txs); n > c.cfg.MaxPerSender {
		return fmt.Errorf("T2: %d transactions", n)
	}
	for _, s := range a.committed.all() {
		if s.nonce < a.state || s.nonce >= a.nonce {
			return fmt.Errorf("nonce %d is kept as committed, state %d, next %d", s.nonce, a.state, a.nonce)
		}
	}
	if total := a.totalCost(); !a.short && a.balance().Lt(total) {
		return fmt.Errorf("I2: balance %v, cost %v", a.balance(), total)
	}
	next, lead, line := a.nonce, noLead, ready
	if err := a.checkCounts(); err != nil {
		return err
	}
	for i, l := range a.txs {
		e := l.entry
		if i > 0 && a.txs[i-1].nonce >= e.nonce {
			return errors.New("nonces out of order")
		}
		if e.account != a || e.gone || e.fresh || c.all.get(e.hash()) != e {
			return fmt.Errorf("nonce %d is not indexed", e.nonce)
		}
		if e.rank != c.fees.rank(e) {
			return fmt.Errorf("I4: nonce %d has rank %d, want %d", e.nonce, e.rank, c.fees.rank(e))
		}
		if e.nonce < a.nonce {
			if e.lease == nil {
				return fmt.Errorf("T1: nonce %d is used up", e.nonce)
			}
			continue
		}
		want, at := queued, noLead
		switch {
		case line == queued || e.nonce != next:
			line = queued
		case e.lease != nil:
			want, next = ready, next+1
		default:
			if lead = lead.after(e); a.delegated && int(e.nonce-a.nonce) >= c.cfg.MaxDelegated {
				lead = place{0, e.seq}
			}
			if lead.rank < c.fees.leastRank() {
				line = parked
			}
			want, at, next = line, lead, next+1
		}
		if e.status == parked && want == ready && e.lease == nil {
			want, line = parked, parked // it waits for room
			if c.fits(e) && (i == 0 || a.txs[i-1].status != parked) {
				return fmt.Errorf("nonce %d waits for room, and there is some", e.nonce)
			}
		}
		if e.status != want || e.lead != at {
			return fmt.Errorf("T1: nonce %d is %d at %v, want %d at %v", e.nonce, e.status, e.lead, want, at)
		}
		if e.lease == nil && at != noLead {
			index := map[status]*btree.BTreeG[ranked]{ready: c.ready, parked: c.parked}[want]
			if got, there := index.Get(ranked{at, e}); !there || got.entry != e {
				return fmt.Errorf("nonce %d is not in its index", e.nonce)
			}
		}
	}
	return nil
}

// checkCounts checks what an account counts of its own.
func (a *account) checkCounts() error {
	var line, leased int32
	for i, e := range a.txs {
		if e.nonce != e.entry.nonce {
			return fmt.Errorf("nonce %d is linked as %d", e.entry.nonce, e.nonce)
		}
		if e.status != queued && int(line) == i {
			line++
		}
		if e.lease != nil {
			leased++
		}
	}
	if line != a.line || leased != a.leased {
		return fmt.Errorf("counts %d in line and %d leased, want %d and %d", a.line, a.leased, line, leased)
	}
	return nil
}

// checkAuthorized checks the index of authorizations.
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
		return fmt.Errorf("I7: authorizations %v, want %v", c.authorizations, want)
	}
	return nil
}

// checkWaiting checks who has how much behind gaps.
func (c *core) checkWaiting() error {
	senders := 0
	for _, a := range c.list {
		var waits int32
		for _, e := range a.txs {
			if e.counts() == queued {
				waits++
			}
		}
		if waits != a.waits {
			return fmt.Errorf("%v has %d behind gaps, counted %d", a.address, waits, a.waits)
		}
		if waits > 0 {
			senders++
		}
	}
	listed, most := 0, c.waiting.most
	for a := range c.waiting.all {
		if listed++; a.waits > most || a.waits == 0 {
			return fmt.Errorf("%v waits with %d after one with %d", a.address, a.waits, most)
		}
		most = a.waits
	}
	if senders != c.waiting.senders || senders != listed {
		return fmt.Errorf("%d senders waiting, %d listed, want %d", c.waiting.senders, listed, senders)
	}
	return nil
}
