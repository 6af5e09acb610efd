package txpool_test

import (
	"errors"
	"fmt"
	"slices"
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
	h      *host
	open   []*txpool.Lease
	flight [][]*types.Transaction // committed, not executed; oldest first
	blocks [][]*types.Transaction // executed
	untold int                    // blocks not passed to Reset
	here   map[common.Hash]*types.Transaction
	log    []string
}

func (m *life) say(f string, a ...any) { m.log = append(m.log, fmt.Sprintf(f, a...)) }

func (m *life) fail(t *rapid.T, f string, a ...any) {
	for _, l := range m.log {
		t.Log(l)
	}
	t.Fatalf(f, a...)
}

func who(tx *types.Transaction) common.Address { a, _ := types.Sender(signer, tx); return a }

// expected returns the next nonce of a sender after what is in blocks, in flight and in leases,
// which must be without a gap.
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
	for hash := range m.here {
		if m.h.pool.Get(hash) == nil {
			m.fail(t, "%v is not in the pool, and no event said so", hash)
		}
	}
	if len(m.here) != m.h.pool.Size() {
		m.fail(t, "pool has %d, want %d", m.h.pool.Size(), len(m.here))
	}
	for i := range 4 {
		m.checkSender(t, i)
	}
}

// checkSender checks that all of a sender's transactions that follow without a gap are pending.
func (m *life) checkSender(t *rapid.T, i int) {
	waiting := map[uint64]txpool.Status{}
	for hash, tx := range m.here {
		if s := m.h.pool.Status(hash); who(tx) == address(i) && s != txpool.StatusLeased {
			waiting[tx.Nonce()] = s
		}
	}
	next := m.expected(t, address(i), m.open)
	for s, ok := waiting[next]; ok; s, ok = waiting[next] {
		if s != txpool.StatusPending {
			m.fail(t, "sender %d nonce %d is %v, want pending", i, next, s)
		}
		next++
	}
	if got, known := m.h.pool.NextNonce(address(i)); known && got != next {
		m.fail(t, "NextNonce of %d is %d, want %d", i, got, next)
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
	m.say("reset -%d +%d", len(head.Reverted), len(head.Included))
	for _, r := range m.h.pool.Reset(head) {
		m.fail(t, "refused: nonce %d: %v", r.Tx.Nonce(), r.Err)
	}
}

// intact checks the pool's invariants.
func (m *life) intact(t *rapid.T) {
	if err := m.h.pool.Check(); err != nil {
		m.fail(t, "%v", err)
	}
	m.check(t)
}

func newLife(t *rapid.T, tb testing.TB) *life {
	m := &life{here: map[common.Hash]*types.Transaction{}}
	m.h = newHost(tb, func(c *txpool.Config) {
		c.MaxPerSender = 64
		c.QuarantineTime = 0
		c.Observe = m.observe
		c.LeaseLifetime = time.Hour * 1000
		c.Lifetime = time.Hour * 1000
	})
	for i := range 4 {
		m.h.chain[address(i)] = txpool.Account{Balance: *wei(30 * 10 * gas)}
	}
	return m
}

func (m *life) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"add": m.add, "drain": m.drain, "commit": m.commit, "release": m.release, "return": m.giveBack,
		"execute": m.execute, "fail": m.failBundles, "reorg": m.reorg, "cleanup": m.cleanup, "": m.intact,
	}
}

func (m *life) add(t *rapid.T) {
	i := rapid.IntRange(0, 3).Draw(t, "s")
	nonce := m.expected(t, address(i), m.open) + rapid.Uint64Range(0, 4).Draw(t, "gap")
	if nonce > 40 {
		t.Skip()
	}
	err := m.h.pool.Add(transfer(i, nonce, rapid.Int64Range(1, 10).Draw(t, "p"), 0))
	m.say("add %x nonce %d: %v", address(i).Bytes()[:2], nonce, err)
}

func (m *life) drain(t *rapid.T) {
	l := m.h.pool.Drain(txpool.Budget{Count: rapid.IntRange(1, 4).Draw(t, "n")})
	m.open = append(m.open, l)
	m.say("drain lease %d: %d", l.ID(), len(l.Transactions()))
}

func (m *life) commit(t *rapid.T) {
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
}

// release gives back leases from one on, in either order.
func (m *life) release(t *rapid.T) {
	if len(m.open) == 0 {
		t.Skip()
	}
	k := rapid.IntRange(0, len(m.open)-1).Draw(t, "k")
	if rapid.Bool().Draw(t, "backwards") {
		slices.Reverse(m.open[k:])
	}
	m.releaseFrom(t, k)
}

func (m *life) releaseFrom(t *rapid.T, k int) {
	for _, l := range m.open[k:] {
		m.say("release %d", l.ID())
		if err := l.Release(); err != nil {
			m.fail(t, "%v", err)
		}
	}
	m.open = m.open[:k]
}

// giveBack returns or rejects one transaction of the last lease, and returns what follows it.
func (m *life) giveBack(t *rapid.T) {
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
}

func (m *life) execute(t *rapid.T) {
	if len(m.flight) == 0 {
		t.Skip()
	}
	m.apply(m.flight[0])
	m.blocks = append(m.blocks, m.flight[0])
	m.say("execute %d", len(m.flight[0]))
	m.flight = m.flight[1:]
	m.untold++
	if rapid.Bool().Draw(t, "tell") {
		told := blocksOf(m.blocks[len(m.blocks)-m.untold:])
		m.untold = 0
		m.reset(t, txpool.Head{Included: told})
	}
}

// failBundles fails the bundles in flight from one on, after the leases that were built on them are
// released.
func (m *life) failBundles(t *rapid.T) {
	if len(m.flight) == 0 {
		t.Skip()
	}
	m.releaseFrom(t, 0)
	k := rapid.IntRange(0, len(m.flight)-1).Draw(t, "k")
	gone := blocksOf(m.flight[k:])
	m.flight = m.flight[:k]
	m.reset(t, txpool.Head{Reverted: gone})
}

// reorg reverts blocks from one on, and all that is in flight, and executes some of the blocks
// again.
func (m *life) reorg(t *rapid.T) {
	if len(m.blocks) == 0 || m.untold > 0 {
		t.Skip()
	}
	m.releaseFrom(t, 0)
	k := rapid.IntRange(0, len(m.blocks)-1).Draw(t, "k")
	gone := m.blocks[k:]
	m.blocks = m.blocks[:k:k]
	for _, b := range slices.Backward(gone) {
		m.unapply(b)
	}
	head := txpool.Head{Reverted: append(blocksOf(gone), blocksOf(m.flight)...)}
	m.flight = nil
	for _, b := range gone[:rapid.IntRange(0, len(gone)).Draw(t, "again")] {
		m.apply(b)
		m.blocks = append(m.blocks, b)
		head.Included = append(head.Included, txpool.Block{Transactions: b})
	}
	m.reset(t, head)
}

func (m *life) cleanup(*rapid.T) {
	m.h.now = m.h.now.Add(time.Minute)
	m.h.pool.CleanupExpired()
}

// restart ends the pool without a shutdown: its transactions, and each lease
// with transactions, must be present again.
func (m *life) restart(t *rapid.T) {
	before := m.open
	held := make([]string, len(before))
	for i, l := range before {
		held[i] = fmt.Sprint(hashesOf(l.Transactions()))
	}
	m.say("restart")
	if rapid.Bool().Draw(t, "dump") {
		fresh := &tape{}
		if err := m.h.pool.Rotate(fresh); err != nil {
			t.Fatal(err)
		}
		m.h.tape, m.h.cfg.Journal = fresh, fresh
	}
	for _, x := range m.h.restart().Displaced {
		m.fail(t, "refused after restart: %x nonce %d %v", who(x.Tx).Bytes()[:2], x.Tx.Nonce(), x.Err)
	}
	m.open = nil
	for i, was := range before {
		l := m.h.pool.Lease(was.ID())
		switch {
		case l == nil && held[i] != "[]":
			m.fail(t, "lease %d is gone", was.ID())
		case l == nil:
			continue
		}
		if now := fmt.Sprint(hashesOf(l.Transactions())); now != held[i] {
			m.fail(t, "lease %d holds %v, had %v", was.ID(), now, held[i])
		}
		m.open = append(m.open, l)
	}
}

func blocksOf(bundles [][]*types.Transaction) (out []txpool.Block) {
	for _, txs := range bundles {
		out = append(out, txpool.Block{Transactions: txs})
	}
	return out
}

func hashesOf(txs []*types.Transaction) (h []common.Hash) {
	for _, tx := range txs {
		h = append(h, tx.Hash())
	}
	return h
}

func TestLifecycle(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { rt.Repeat(newLife(rt, t).actions()) })
}

func TestLifecycleWithRestarts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newLife(rt, t)
		actions := m.actions()
		actions["restart"] = m.restart
		rt.Repeat(actions)
	})
}
