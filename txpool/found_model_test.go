package txpool_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/txpool"
)

// life is a host that does everything right, in the order in which bundles are built.
type life struct {
	h        *host
	open     []*txpool.Lease
	flight   [][]*types.Transaction // committed, not executed; oldest first
	blocks   [][]*types.Transaction // executed
	untold   int                    // how many of blocks the pool was not told of
	here     map[common.Hash]*types.Transaction
	restarts bool
	log      []string
}

func (m *life) say(f string, a ...any) { m.log = append(m.log, fmt.Sprintf(f, a...)) }

func (m *life) fail(t *rapid.T, f string, a ...any) {
	for _, l := range m.log {
		t.Log(l)
	}
	t.Fatalf(f, a...)
}

func who(tx *types.Transaction) common.Address { a, _ := types.Sender(signer, tx); return a }

// used says which nonces of a sender are in blocks, in flight and in leases.
func (m *life) expected(t *rapid.T, from common.Address, leases []*txpool.Lease) uint64 {
	a, _ := m.h.Account(from)
	next := a.Nonce
	step := func(where string, txs []*types.Transaction) {
		for _, tx := range txs {
			if who(tx) == from {
				if tx.Nonce() != next {
					m.fail(t, "%s: sender %v nonce %d, want %d", where, from, tx.Nonce(), next)
				}
				next++
			}
		}
	}
	for _, b := range m.flight {
		step("flight", b)
	}
	for _, l := range leases {
		step(fmt.Sprint("lease ", l.ID()), l.Transactions())
	}
	return next
}

func (m *life) apply(txs []*types.Transaction) {
	for _, tx := range txs {
		a, _ := m.h.Account(who(tx))
		if a.Nonce != tx.Nonce() {
			panic(fmt.Sprintf("executed nonce %d, want %d", tx.Nonce(), a.Nonce))
		}
		cost := uint256.MustFromBig(tx.Cost())
		if a.Balance.Lt(cost) {
			panic("cannot pay")
		}
		a.Nonce++
		a.Balance.Sub(&a.Balance, cost)
		m.h.chain[who(tx)] = a
	}
}

func (m *life) unapply(txs []*types.Transaction) {
	for i := len(txs) - 1; i >= 0; i-- {
		a, _ := m.h.Account(who(txs[i]))
		a.Nonce--
		a.Balance.Add(&a.Balance, uint256.MustFromBig(txs[i].Cost()))
		m.h.chain[who(txs[i])] = a
	}
}

func (m *life) check(t *rapid.T) {
	for i := range 4 {
		next := m.expected(t, address(i), m.open)
		_ = next
	}
	for hash := range m.here {
		if m.h.pool.Get(hash) == nil {
			m.fail(t, "%v is not in the pool, and no event said so", hash)
		}
	}
	if len(m.here) != m.h.pool.Size() {
		m.fail(t, "pool has %d, want %d", m.h.pool.Size(), len(m.here))
	}
	// all that is contiguous is pending
	for i := range 4 {
		next := m.expected(t, address(i), m.open)
		for {
			found := false
			for _, tx := range m.here {
				if who(tx) == address(i) && tx.Nonce() == next && m.h.pool.Status(tx.Hash()) != txpool.StatusLeased {
					if s := m.h.pool.Status(tx.Hash()); s != txpool.StatusPending {
						m.fail(t, "sender %d nonce %d is %v, want pending", i, next, s)
					}
					found = true
				}
			}
			if !found {
				break
			}
			next++
		}
		if got, known := m.h.pool.NextNonce(address(i)); known && got != next {
			m.fail(t, "NextNonce of %d is %d, want %d", i, got, next)
		}
	}
}

func (m *life) observe(e txpool.Event) {
	switch {
	case e.Kind == txpool.FloorChanged:
	case e.Kind == txpool.Replaced || e.Kind == txpool.Dropped || e.Kind == txpool.Included:
		if m.here[e.Tx.Hash()] == nil {
			panic("left twice")
		}
		m.say("  event %v %x nonce %d %v", e.Kind, e.Sender[:2], e.Tx.Nonce(), e.Reason)
		delete(m.here, e.Tx.Hash())
	case e.Admitted:
		m.here[e.Tx.Hash()] = e.Tx
	}
}

func (m *life) reset(t *rapid.T, head txpool.Head) {
	n := 0
	for _, b := range head.Reverted {
		n += len(b.Transactions)
	}
	m.say("reset -%d (%d txs) +%d", len(head.Reverted), n, len(head.Included))
	for _, r := range m.h.pool.Reset(head) {
		m.fail(t, "refused: nonce %d: %v", r.Tx.Nonce(), r.Err)
	}
}

func newLife(t *rapid.T, tb testing.TB, restarts bool) *life {
	m := &life{here: map[common.Hash]*types.Transaction{}, restarts: restarts}
	m.h = newHost(tb, func(c *txpool.Config) {
		c.MaxPerSender = 64
		c.TombstoneTime = 0
		c.Observe = m.observe
		c.LeaseLifetime = time.Hour * 1000
		c.Lifetime = time.Hour * 1000
		c.MinReadyPerSender = rapid.IntRange(0, 2).Draw(t, "quota")
	})
	for i := range 4 {
		m.h.chain[address(i)] = txpool.Account{Balance: *wei(30 * 10 * gas)}
	}
	return m
}

func (m *life) actions() map[string]func(*rapid.T) {
	block := func(txs []*types.Transaction) txpool.Block { return txpool.Block{Transactions: txs} }
	acts := map[string]func(*rapid.T){
		"add": func(t *rapid.T) {
			i := rapid.IntRange(0, 3).Draw(t, "s")
			next := m.expected(t, address(i), m.open)
			nonce := next + rapid.Uint64Range(0, 4).Draw(t, "gap")
			if nonce > 40 {
				t.Skip()
			}
			err := m.h.pool.Add(transfer(i, nonce, rapid.Int64Range(1, 10).Draw(t, "p"), 0))
			m.say("add %x nonce %d: %v", address(i).Bytes()[:2], nonce, err)
		},
		"drain": func(t *rapid.T) {
			l := m.h.pool.Drain(txpool.Budget{Count: rapid.IntRange(1, 4).Draw(t, "n")})
			m.open = append(m.open, l)
			m.say("drain lease %d: %d", l.ID(), len(l.Transactions()))
		},
		"commit": func(t *rapid.T) {
			if len(m.open) == 0 {
				t.Skip()
			}
			l := m.open[0]
			txs := l.Transactions()
			m.say("commit lease %d", l.ID())
			if err := l.Commit(); err != nil {
				m.fail(t, "%v", err)
			}
			m.open = m.open[1:]
			m.flight = append(m.flight, txs)
		},
		"release": func(t *rapid.T) { // from one on
			if len(m.open) == 0 {
				t.Skip()
			}
			k := rapid.IntRange(0, len(m.open)-1).Draw(t, "k")
			order := m.open[k:]
			if rapid.Bool().Draw(t, "forwards") {
				for _, l := range order {
					m.say("release %d", l.ID())
					if err := l.Release(); err != nil {
						m.fail(t, "%v", err)
					}
				}
			} else {
				for i := len(order) - 1; i >= 0; i-- {
					m.say("release %d", order[i].ID())
					if err := order[i].Release(); err != nil {
						m.fail(t, "%v", err)
					}
				}
			}
			m.open = m.open[:k]
		},
		"return": func(t *rapid.T) {
			if len(m.open) == 0 {
				t.Skip()
			}
			l := m.open[len(m.open)-1]
			txs := l.Transactions()
			if len(txs) == 0 {
				t.Skip()
			}
			tx := rapid.SampledFrom(txs).Draw(t, "tx")
			reject := rapid.Bool().Draw(t, "reject")
			for _, other := range txs {
				if who(other) != who(tx) || other.Nonce() < tx.Nonce() {
					continue
				}
				var err error
				if reject && other == tx {
					err = l.Reject(tx.Hash(), errors.New("bad"))
				} else {
					err = l.Return(other.Hash())
				}
				m.say("return/reject(%v) %x nonce %d of lease %d: %v", reject, who(other).Bytes()[:2], other.Nonce(), l.ID(), err)
				if err != nil {
					m.fail(t, "%v", err)
				}
			}
		},
		"execute": func(t *rapid.T) {
			if len(m.flight) == 0 {
				t.Skip()
			}
			m.apply(m.flight[0])
			m.blocks = append(m.blocks, m.flight[0])
			m.say("execute %d", len(m.flight[0]))
			m.flight = m.flight[1:]
			m.untold++
			if rapid.Bool().Draw(t, "tell") {
				var in []txpool.Block
				for _, b := range m.blocks[len(m.blocks)-m.untold:] {
					in = append(in, block(b))
				}
				m.untold = 0
				m.reset(t, txpool.Head{Included: in})
			}
		},
		"fail": func(t *rapid.T) { // bundles in flight from one on; leases after them are released first
			if len(m.flight) == 0 {
				t.Skip()
			}
			for _, l := range m.open {
				m.say("release %d", l.ID())
				_ = l.Release()
			}
			m.open = nil
			k := rapid.IntRange(0, len(m.flight)-1).Draw(t, "k")
			var out []txpool.Block
			for _, b := range m.flight[k:] {
				out = append(out, block(b))
			}
			m.flight = m.flight[:k]
			m.reset(t, txpool.Head{Reverted: out})
		},
		"reorg": func(t *rapid.T) {
			if len(m.blocks) == 0 || m.untold > 0 {
				t.Skip()
			}
			if rapid.Bool().Draw(t, "release first") {
				for _, l := range m.open {
					m.say("release %d", l.ID())
					_ = l.Release()
				}
				m.open = nil
			} else if len(m.open) > 0 {
				t.Skip()
			}
			k := rapid.IntRange(0, len(m.blocks)-1).Draw(t, "k")
			var out []txpool.Block
			for _, b := range m.blocks[k:] {
				out = append(out, block(b))
			}
			for i := len(m.blocks) - 1; i >= k; i-- {
				m.unapply(m.blocks[i])
			}
			for _, b := range m.flight {
				out = append(out, block(b))
			}
			m.flight = nil
			head := txpool.Head{Reverted: out}
			gone := m.blocks[k:]
			m.blocks = m.blocks[:k:k]
			if both := rapid.IntRange(0, len(gone)).Draw(t, "again"); both > 0 {
				for _, b := range gone[:both] {
					m.apply(b)
					m.blocks = append(m.blocks, b)
					head.Included = append(head.Included, block(b))
				}
			}
			m.reset(t, head)
		},
		"cleanup": func(t *rapid.T) {
			m.h.now = m.h.now.Add(time.Minute)
			m.h.pool.CleanupExpired()
		},
		"": m.check,
	}
	if m.restarts {
		if !withReorg {
			delete(acts, "reorg")
		}
		acts["restart"] = func(t *rapid.T) {
			ids := make([]uint64, len(m.open))
			held := make([]string, len(m.open))
			for i, l := range m.open {
				ids[i] = l.ID()
				held[i] = fmt.Sprint(hashesOf(l.Transactions()))
			}
			m.say("restart")
			if rapid.Bool().Draw(t, "dump") {
				fresh := &tape{}
				if err := m.h.pool.Dump(fresh); err != nil {
					t.Fatal(err)
				}
				m.h.tape, m.h.cfg.Journal = fresh, fresh
			}
			r := m.h.restart()
			for _, x := range r.Refused {
				m.fail(t, "refused after restart: %x nonce %d %v", who(x.Tx).Bytes()[:2], x.Tx.Nonce(), x.Err)
			}
			for i, id := range ids {
				m.open[i] = m.h.pool.Lease(id)
				if m.open[i] == nil {
					if held[i] != "[]" {
						m.fail(t, "lease %d is gone", id)
					}
					continue
				}
				if now := fmt.Sprint(hashesOf(m.open[i].Transactions())); now != held[i] {
					m.fail(t, "lease %d holds %v, had %v", id, now, held[i])
				}
			}
			var still []*txpool.Lease
			for _, l := range m.open {
				if l != nil {
					still = append(still, l)
				}
			}
			m.open = still
		}
	}
	return acts
}

const withReorg = true

func hashesOf(txs []*types.Transaction) (h []common.Hash) {
	for _, tx := range txs {
		h = append(h, tx.Hash())
	}
	return h
}

func TestFoundModelLife(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { m := newLife(rt, t, false); rt.Repeat(m.actions()) })
}

func TestFoundModelRestart(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { m := newLife(rt, t, true); rt.Repeat(m.actions()) })
}
