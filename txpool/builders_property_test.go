package txpool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"pgregory.net/rapid"
)

// blocks is a machine with several sessions at once, and a journal that fails
// now and then.
type blocks struct {
	*machine
	cfg      Config
	records  [][]byte
	failing  bool
	sessions []*naive
}

// Append is the journal.
func (m *blocks) Append(records ...[]byte) error {
	if m.failing {
		return errors.New("no disk")
	}
	for _, r := range records {
		m.records = append(m.records, bytes.Clone(r))
	}
	return nil
}

// naive is a session with a model of it, which looks at every sender for each
// transaction.
type naive struct {
	*Session
	cancel context.CancelFunc
	aside  map[common.Address]bool
	unfit  map[common.Address]bool // did not fit when it had its turn
	lost   bool                    // a transaction was not compared
}

func newBlocks(t *rapid.T) *blocks {
	m := &blocks{machine: newMachine(t)}
	m.cfg = m.pool.cfg
	m.cfg.Journal = m
	m.start(t)
	return m
}

func (m *blocks) start(t *rapid.T) {
	p, err := New(m.cfg, m.world)
	if err != nil {
		t.Fatal(err)
	}
	m.pool, m.sessions, m.leases = p, nil, nil
}

// best returns the transaction that a session must take next.
func (n *naive) best() *entry {
	c := n.pool.core
	for !n.spent() {
		var best *entry
		for _, a := range c.list {
			e := a.head()
			if e == nil || n.aside[a.address] || n.unfit[a.address] && n.refuses(e) != "" {
				continue
			}
			if best == nil || c.keyOf(e).before(c.keyOf(best)) {
				best = e
			}
		}
		if best == nil {
			return nil
		}
		if n.refuses(best) == "" {
			delete(n.unfit, best.account.address)
			return best
		}
		n.unfit[best.account.address] = true
	}
	return nil
}

// next compares a session with its model.
func (m *blocks) next(t *rapid.T, n *naive) {
	n.pool.mu.Lock()
	n.answer(n.limit())
	running := n.lease.session == n.Session && n.ctx.Err() == nil
	n.pool.mu.Unlock()
	compare := len(m.pool.core.sessions) == 1 && m.synced() && !n.lost
	n.lost = !compare
	var want *entry
	if running {
		want = n.best()
	}
	tx := n.Next()
	switch {
	case !running && tx != nil:
		t.Fatalf("a session that has ended returned %s", tx.Hash())
	case compare && want == nil && tx != nil:
		t.Fatalf("Next returned nonce %d, want nil", tx.Nonce())
	case compare && want != nil && (tx == nil || tx.Hash() != want.hash()):
		t.Fatalf("Next returned %v, want nonce %d of %v", tx, want.nonce, want.account.address)
	}
}

// synced reports whether the pool knows the state of all its senders.
func (m *blocks) synced() bool {
	for _, a := range m.pool.core.list {
		if a.differs(m.world.get(a.address)) {
			return false
		}
	}
	return true
}

func (m *blocks) session(t *rapid.T) *naive {
	if len(m.sessions) == 0 {
		t.Skip("no session")
	}
	return rapid.SampledFrom(m.sessions).Draw(t, "session")
}

// restart replaces the pool by one that the journal restores.
func (m *blocks) restart(t *rapid.T) {
	m.failing = false
	if err := m.pool.writeDown(); err != nil {
		t.Fatal(err)
	}
	old := m.pool
	m.inside = make(map[common.Hash]bool)
	m.start(t)
	if _, err := m.pool.Restore(func(f func([]byte) error) error {
		for _, r := range m.records {
			if err := f(r); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := sameContent(old, m.pool); err != nil {
		t.Fatal(err)
	}
	m.leases = m.pool.Leases()
}

// sameContent compares a pool with the one that was restored from its journal.
func sameContent(old, restored *Pool) error {
	for _, a := range old.core.list {
		b := restored.core.accounts[a.address]
		if a.nonce > a.state && (b == nil || b.nonce != a.nonce) && !a.stale {
			return fmt.Errorf("the restart lost the committed nonces of %v: next %d, shown %d", a.address, a.nonce, a.state)
		}
		if b != nil && b.nonce > a.nonce && b.nonce > b.state {
			return fmt.Errorf("the restart committed nonces of %v: next %d, want %d", a.address, b.nonce, a.nonce)
		}
		for _, e := range a.txs {
			if e.nonce < a.nonce {
				continue // used, but leased
			}
			if have := restored.Status(e.hash()); have == StatusUnknown {
				return fmt.Errorf("the restart lost nonce %d of %v, leased %v", e.nonce, a.address, e.lease != nil)
			}
		}
	}
	for _, a := range restored.core.list {
		for _, e := range a.txs {
			if old.Status(e.hash()) == StatusUnknown {
				return fmt.Errorf("the restart brought back nonce %d of %v", e.nonce, a.address)
			}
		}
	}
	for _, l := range old.Leases() {
		var have []common.Hash
		if r := restored.Lease(l.id); r != nil {
			have = hashesOf(r.Transactions())
		}
		want := hashesOf(l.Transactions())
		if !l.sealed && !l.bundled {
			want = nil
		}
		for _, hash := range have {
			if !slices.Contains(want, hash) {
				return fmt.Errorf("the restart leased %s in lease %d", hash, l.id)
			}
		}
	}
	return nil
}

func (m *blocks) actions() map[string]func(*rapid.T) {
	all := m.machine.actions()
	delete(all, "broken") // sameContent does not know the failed reads
	add := all["normal"]
	maps.Copy(all, map[string]func(*rapid.T){
		"": func(t *rapid.T) { m.check(t) },
		"many": func(t *rapid.T) {
			for range 4 {
				add(t)
			}
		},
		"build": func(t *rapid.T) {
			ctx, cancel := context.WithCancel(context.Background())
			b := Budget{Count: rapid.IntRange(0, 6).Draw(t, "count"),
				Gas: rapid.SampledFrom([]uint64{0, 100_000, 30_000}).Draw(t, "gas"), Bytes: rapid.SampledFrom([]uint64{0, 400}).Draw(t, "bytes")}
			m.sessions = append(m.sessions, &naive{Session: m.pool.Build(ctx, b), cancel: cancel, aside: make(map[common.Address]bool), unfit: make(map[common.Address]bool)})
		},
		"next":  func(t *rapid.T) { m.next(t, m.session(t)) },
		"next2": func(t *rapid.T) { m.next(t, m.session(t)) },
		"used":  func(t *rapid.T) { m.session(t).Used(rapid.Uint64Range(0, 40_000).Draw(t, "gas"), 50) },
		"fail": func(t *rapid.T) {
			n := m.session(t)
			if n.current != nil && n.lease.holds(n.current) {
				n.aside[n.current.account.address] = true
			}
			n.Fail(errors.New("reverted"))
		},
		"later": func(t *rapid.T) {
			n := m.session(t)
			if n.current != nil && n.lease.holds(n.current) {
				n.aside[n.current.account.address] = true
			}
			n.Later()
		},
	})
	maps.Copy(all, m.endings())
	return all
}

// endings are the actions that end sessions or concern the whole pool.
func (m *blocks) endings() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"seal": func(t *rapid.T) {
			if l, err := m.session(t).Seal(); err == nil {
				m.leases = append(m.leases, l)
			}
		},
		"commit session": func(t *rapid.T) {
			n := m.session(t)
			_ = n.Commit()
			m.leases = append(m.leases, n.Lease())
		},
		"cancel session": func(t *rapid.T) { _ = m.session(t).Cancel() },
		"return": func(t *rapid.T) {
			l := m.lease(t)
			if txs := l.Transactions(); len(txs) > 0 {
				tx := rapid.SampledFrom(txs).Draw(t, "tx")
				for _, n := range m.sessions {
					if e := m.pool.core.all[tx.Hash()]; n.lease == l && e != nil {
						n.aside[e.account.address] = true
					}
				}
				_ = l.Return(tx.Hash())
			}
		},
		"its lease": func(t *rapid.T) { m.leases = append(m.leases, m.session(t).Lease()) },
		"cancel":    func(t *rapid.T) { m.session(t).cancel() },
		"journal":   func(t *rapid.T) { m.failing = rapid.Bool().Draw(t, "failing") },
		"restart":   m.restart,
		"rotate": func(t *rapid.T) {
			next := new(blocks)
			if m.pool.Rotate(next) == nil {
				m.records = next.records
				m.pool.out.journal = m
			}
		},
		"minute": func(t *rapid.T) {
			m.world.advance(time.Minute)
			m.pool.CleanupExpired()
		},
	}
}

func (m *blocks) check(t *rapid.T) {
	if err := m.pool.Check(); err != nil {
		t.Fatal(err)
	}
	leased := 0
	for _, l := range m.pool.Leases() {
		leased += len(l.Transactions())
	}
	if have := m.pool.Stats().Leased; have != leased {
		t.Fatalf("%d transactions are leased, %d are in open leases", have, leased)
	}
}

// Several sessions at once, in any order with everything that else happens:
// they take the best transactions, as a model that looks at all of them does,
// and no transaction is lost, also not by a restart.
func TestBlocksUnderRandomCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newBlocks(t)
		t.Repeat(m.actions())
	})
}

func hashesOf(txs []*types.Transaction) []common.Hash {
	hashes := make([]common.Hash, len(txs))
	for i, tx := range txs {
		hashes[i] = tx.Hash()
	}
	return hashes
}
