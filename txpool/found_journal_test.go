package txpool_test

import (
	"bytes"
	"errors"
	"math/big"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

type tape struct {
	mu      sync.Mutex
	records [][]byte
	fail    bool
	calls   int
	bytes   int
}

func (m *tape) Append(records ...[]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	m.bytes = 0
	for _, r := range records {
		m.bytes += len(r)
	}
	if m.fail {
		return errors.New("no disk")
	}
	for _, r := range records {
		m.records = append(m.records, bytes.Clone(r))
	}
	return nil
}

func (m *tape) replay(f func([]byte) error) error {
	for _, r := range m.records {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// host is a chain, a clock, and a journal.
type host struct {
	t     testing.TB
	mu    sync.Mutex
	chain map[common.Address]txpool.Account
	now   time.Time
	tape  *tape
	cfg   txpool.Config
	pool  *txpool.Pool
}

func newHost(t testing.TB, change func(*txpool.Config)) *host {
	h := &host{t: t, chain: map[common.Address]txpool.Account{}, now: time.Unix(1_800_000_000, 0), tape: &tape{}}
	cfg := txpool.DefaultConfig(chainID)
	cfg.FloorWindow, cfg.SurgeSlope = 0, 0
	cfg.Now = func() time.Time { return h.now }
	cfg.Journal = h.tape
	if change != nil {
		change(&cfg)
	}
	h.cfg = cfg
	p, err := txpool.New(cfg, h)
	require.NoError(t, err)
	h.pool = p
	return h
}

func (h *host) Account(a common.Address) (txpool.Account, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x, ok := h.chain[a]; ok {
		return x, nil
	}
	return txpool.Account{Balance: *uint256.NewInt(1e18)}, nil
}

func (h *host) nonce(i int, n uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.chain[address(i)] = txpool.Account{Nonce: n, Balance: *uint256.NewInt(1e18)}
}

// restart kills the pool and restores it from its journal.
func (h *host) restart() txpool.Restored {
	p, err := txpool.New(h.cfg, h)
	require.NoError(h.t, err)
	r, err := p.Restore(h.tape.replay)
	require.NoError(h.t, err)
	h.pool = p
	return r
}

// Included, shown, reverted, back in the pool; then a restart.
func TestFoundRestoreAfterRevert(t *testing.T) {
	h := newHost(t, nil)
	tx := transfer(0, 0, 5, 0)
	require.NoError(t, h.pool.Add(tx))
	l := h.pool.Drain(txpool.Budget{})
	require.NoError(t, l.Commit())
	block := txpool.Block{Transactions: l.Transactions()}
	block.Transactions = []*types.Transaction{tx}
	h.nonce(0, 1)
	h.pool.Reset(txpool.Head{Included: []txpool.Block{block}})
	h.nonce(0, 0)
	require.Empty(t, h.pool.Reset(txpool.Head{Reverted: []txpool.Block{block}}))
	require.Equal(t, txpool.StatusPending, h.pool.Status(tx.Hash()))
	r := h.restart()
	require.Empty(t, r.Refused)
	require.Equal(t, txpool.StatusPending, h.pool.Status(tx.Hash()), "the pool lost it in the restart")
}

// The same without the transaction coming back; the sender can go on.
func TestFoundRestoreAfterRevertOther(t *testing.T) {
	h := newHost(t, nil)
	tx := transfer(0, 0, 5, 0)
	require.NoError(t, h.pool.Add(tx))
	require.NoError(t, h.pool.Drain(txpool.Budget{}).Commit())
	h.nonce(0, 1)
	h.pool.Reset(txpool.Head{Included: []txpool.Block{{Transactions: []*types.Transaction{tx}}}})
	h.nonce(0, 0)
	h.pool.Reset(txpool.Head{Reverted: []txpool.Block{{Transactions: []*types.Transaction{tx}}}})
	require.NoError(t, h.pool.Remove(tx.Hash()))
	h.restart()
	require.NoError(t, h.pool.Add(transfer(0, 0, 9, 0)), "nonce 0 is free: State says so, and so did Reset before the restart")
}

// Parked ones and a base fee.
func TestFoundRestoreParked(t *testing.T) {
	h := newHost(t, func(c *txpool.Config) { c.MaxPending, c.MaxParked, c.MaxQueued = 4, 4, 4 })
	h.pool.Reset(txpool.Head{BaseFee: big.NewInt(10 * gwei)})
	for i := range 4 {
		require.NoError(t, h.pool.Add(dynamic(i, 0, 2, 30)))
	}
	for i := range 4 {
		require.NoError(t, h.pool.Add(dynamic(10+i, 0, 5, 5)))
	}
	require.Equal(t, 8, h.pool.Size())
	r := h.restart()
	h.pool.Reset(txpool.Head{BaseFee: big.NewInt(10 * gwei)})
	require.Equal(t, 8, h.pool.Size(), "%d restored, %d refused, %d can run", r.Transactions, len(r.Refused), h.pool.Stats().Pending)
}

// Evictions while restoring are neither counted nor written down.
func TestFoundRestoreIntoSmallerPool(t *testing.T) {
	h := newHost(t, nil)
	for i := range 8 {
		require.NoError(t, h.pool.Add(transfer(i, 0, int64(5+i), 0)))
	}
	h.cfg.MaxPending = 4
	r := h.restart()
	t.Log(r.Transactions, len(r.Refused), h.pool.Size())
	require.Equal(t, h.pool.Size(), r.Transactions, "Restored.Transactions counts what is in the pool again")
	require.Equal(t, 8, r.Transactions+len(r.Refused))
}

// A lease with nonces after those of a younger one.
func TestFoundRestoreLeaseOrder(t *testing.T) {
	h := newHost(t, nil)
	a, b := transfer(0, 0, 5, 0), transfer(0, 1, 5, 0)
	require.NoError(t, h.pool.Add(a))
	require.NoError(t, h.pool.Add(b))
	one := h.pool.Drain(txpool.Budget{Count: 1})
	two := h.pool.Drain(txpool.Budget{Count: 1})
	require.Equal(t, b.Hash(), two.Transactions()[0].Hash())
	require.NoError(t, one.Release()) // its bundle failed; it is built anew
	three := h.pool.Drain(txpool.Budget{Count: 1})
	require.Equal(t, a.Hash(), three.Transactions()[0].Hash())
	r := h.restart()
	require.Equal(t, 2, r.Leases)
	require.NotNil(t, h.pool.Lease(two.ID()), "lease %d is not open any more", two.ID())
	require.Equal(t, txpool.StatusLeased, h.pool.Status(b.Hash()))
}

// Numbers of leases.
func TestFoundLeaseNumbersAfterRestart(t *testing.T) {
	for _, dump := range []bool{false, true} {
		h := newHost(t, nil)
		require.NoError(t, h.pool.Add(transfer(0, 0, 5, 0)))
		old := h.pool.Drain(txpool.Budget{})
		require.NoError(t, old.Commit())
		if dump {
			fresh := &tape{}
			require.NoError(t, h.pool.Dump(fresh))
			h.tape = fresh
			h.cfg.Journal = fresh
		}
		h.restart()
		require.NoError(t, h.pool.Add(transfer(1, 0, 5, 0)))
		again := h.pool.Drain(txpool.Budget{})
		require.NotEqual(t, old.ID(), again.ID(), "a bundle that was written before the restart names another lease now (dump %v)", dump)
	}
}

// AddAll while the journal fails.
func TestFoundAddAllWhileJournalFails(t *testing.T) {
	h := newHost(t, func(c *txpool.Config) { c.MaxPending = 4 })
	for i := range 4 {
		require.NoError(t, h.pool.Add(transfer(i, 0, 5, 0)))
	}
	h.tape.fail = true
	require.ErrorIs(t, h.pool.Add(transfer(10, 0, 6, 0)), txpool.ErrJournal) // the first failure
	require.Equal(t, 3, h.pool.Size())
	for i := range 4 {
		errs := h.pool.AddAll([]*types.Transaction{transfer(20+2*i, 0, 10, 0), transfer(21+2*i, 0, 10, 0)})
		require.ErrorIs(t, errs[0], txpool.ErrJournal)
	}
	require.Equal(t, 3, h.pool.Size(), "while the journal is known to fail, nothing else changes")
}

// Memory while the journal fails.
func TestFoundMemoryWhileJournalFails(t *testing.T) {
	h := newHost(t, nil)
	h.tape.fail = true
	var batch []*types.Transaction
	for i := range 50 {
		batch = append(batch, padded(i, 0, 5, 10_000))
	}
	h.pool.AddAll(batch)
	first := h.tape.bytes
	for range 10 {
		h.pool.AddAll(batch)
	}
	runtime.GC()
	require.Less(t, h.tape.bytes, 2*first, "bytes that wait for the journal, of transactions that were all refused")
}

// Dump, then Restore is the same pool.
func TestFoundDumpRestore(t *testing.T) {
	h := newHost(t, nil)
	for i := range 3 {
		for n := range uint64(3) {
			require.NoError(t, h.pool.Add(transfer(i, n, int64(5+i), 0)))
		}
	}
	l1 := h.pool.Drain(txpool.Budget{Count: 2})
	l2 := h.pool.Drain(txpool.Budget{Count: 3})
	require.NoError(t, l1.Commit())
	require.NoError(t, l2.Return(l2.Transactions()[2].Hash()))
	before := h.pool.Stats()
	fresh := &tape{}
	require.NoError(t, h.pool.Dump(fresh))
	h.tape, h.cfg.Journal = fresh, fresh
	r := h.restart()
	t.Logf("%+v", r)
	require.Equal(t, before, h.pool.Stats())
}

// Crash at each record boundary: no nonce is handed out twice, nothing that was accepted is lost.
func TestFoundPrivateReverted(t *testing.T) {
	h := newHost(t, nil)
	tx := transfer(0, 0, 5, 0)
	require.NoError(t, h.pool.AddPrivate(tx))
	require.NoError(t, h.pool.Drain(txpool.Budget{}).Commit())
	block := []txpool.Block{{Transactions: []*types.Transaction{tx}}}
	h.pool.Reset(txpool.Head{Reverted: block}) // the bundle failed: nobody outside saw it
	require.Equal(t, txpool.StatusPending, h.pool.Status(tx.Hash()))
	require.Empty(t, h.pool.Pending(), "a private transaction is shown")
}

// nil in blocks
func TestFoundNilInBlocks(t *testing.T) {
	for name, head := range map[string]txpool.Head{
		"included": {Included: []txpool.Block{{Transactions: []*types.Transaction{nil}}}},
		"reverted": {Reverted: []txpool.Block{{Transactions: []*types.Transaction{nil}}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, nil)
			done := make(chan any, 1)
			go func() {
				defer func() { done <- recover() }()
				h.pool.Reset(head)
			}()
			select {
			case r := <-done:
				require.Nil(t, r)
			case <-time.After(2 * time.Second):
				t.Fatal("Reset hangs with the pool's lock held")
			}
		})
	}
}

// An observer that panics: the events after that one are told all the same.
func TestFoundPanickingObserver(t *testing.T) {
	seen := make(chan txpool.Kind, 10)
	h := newHost(t, func(c *txpool.Config) {
		c.MaxPending = 2
		c.Observe = func(e txpool.Event) {
			seen <- e.Kind
			if e.Kind == txpool.Dropped {
				panic("x")
			}
		}
	})
	require.NoError(t, h.pool.Add(transfer(0, 0, 5, 0)))
	require.NoError(t, h.pool.Add(transfer(1, 0, 5, 0)))
	require.Panics(t, func() { _ = h.pool.Add(transfer(2, 0, 9, 0)) })
	for _, want := range []txpool.Kind{txpool.Pending, txpool.Pending, txpool.Dropped, txpool.Pending} {
		require.Equal(t, want, <-seen)
	}
}
