package txpool_test

import (
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// Included, shown, reverted, back in the pool; then a restart.
func TestRestartAfterRevert(t *testing.T) {
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
	require.Empty(t, r.Displaced)
	require.Equal(t, txpool.StatusPending, h.pool.Status(tx.Hash()), "the pool lost it in the restart")
}

// The same without the transaction coming back; the sender can go on.
func TestRestartAfterRevertAndRemoval(t *testing.T) {
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

// Transactions that a base fee has parked do not compete with pending ones
// before the base fee is known again.
func TestRestartWithParked(t *testing.T) {
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
	require.Equal(t, 8, h.pool.Size(), "%d restored, %d refused, %d can run", r.Transactions, len(r.Displaced), h.pool.Stats().Pending)
}

// A restart with a lower cap counts each transaction once, as restored or as
// displaced.
func TestRestartIntoSmallerPool(t *testing.T) {
	h := newHost(t, nil)
	for i := range 8 {
		require.NoError(t, h.pool.Add(transfer(i, 0, int64(5+i), 0)))
	}
	h.cfg.MaxPending = 4
	r := h.restart()
	require.Equal(t, h.pool.Size(), r.Transactions, "Restored.Transactions counts what is in the pool again")
	require.Equal(t, 8, r.Transactions+len(r.Displaced))
}

// A lease whose predecessor was released.
func TestRestartWithLeaseBehindAGap(t *testing.T) {
	h := newHost(t, nil)
	a, b := transfer(0, 0, 5, 0), transfer(0, 1, 5, 0)
	require.NoError(t, h.pool.Add(a))
	require.NoError(t, h.pool.Add(b))
	one := h.pool.Drain(txpool.Budget{Count: 1})
	two := h.pool.Drain(txpool.Budget{Count: 1})
	require.Equal(t, b.Hash(), two.Transactions()[0].Hash())
	require.NoError(t, one.Release()) // its bundle failed
	r := h.restart()
	require.Equal(t, 1, r.Leases)
	require.NotNil(t, h.pool.Lease(two.ID()), "lease %d is not open any more", two.ID())
	require.Equal(t, txpool.StatusLeased, h.pool.Status(b.Hash()))
	require.Empty(t, h.pool.Drain(txpool.Budget{}).Transactions(), "its block would come after that of the next nonce")
	require.NoError(t, h.pool.Lease(two.ID()).Release())
	require.Len(t, h.pool.Drain(txpool.Budget{}).Transactions(), 2)
}

// No lease takes the number of one that was before the restart.
func TestLeaseNumbersAfterRestart(t *testing.T) {
	for _, dump := range []bool{false, true} {
		h := newHost(t, nil)
		require.NoError(t, h.pool.Add(transfer(0, 0, 5, 0)))
		old := h.pool.Drain(txpool.Budget{})
		require.NoError(t, old.Commit())
		if dump {
			fresh := &tape{}
			require.NoError(t, h.pool.Rotate(fresh))
			h.tape = fresh
			h.cfg.Journal = fresh
		}
		h.restart()
		require.NoError(t, h.pool.Add(transfer(1, 0, 5, 0)))
		again := h.pool.Drain(txpool.Budget{})
		require.NotEqual(t, old.ID(), again.ID(), "a bundle that was written before the restart names another lease now (dump %v)", dump)
	}
}

// Rotate, then Restore gives the same pool.
func TestRotateRestore(t *testing.T) {
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
	require.NoError(t, h.pool.Rotate(fresh))
	h.tape, h.cfg.Journal = fresh, fresh
	h.restart()
	require.Equal(t, before, h.pool.Stats())
}

// Rejected from a lease, admitted again (QuarantineTime 0, or after a restart), then that lease is
// committed.
func TestRejectedIsNotCommitted(t *testing.T) {
	h := newHost(t, func(c *txpool.Config) { c.QuarantineTime = 0 })
	a, b := transfer(0, 0, 5, 0), transfer(0, 1, 5, 0)
	require.NoError(t, h.pool.Add(a))
	require.NoError(t, h.pool.Add(b))
	l := h.pool.Drain(txpool.Budget{})
	require.NoError(t, l.Reject(b.Hash(), errors.New("not now")))
	require.NoError(t, h.pool.Add(b))
	require.NoError(t, l.Commit())
	require.Equal(t, txpool.StatusPending, h.pool.Status(b.Hash()))
	h.restart()
	require.Equal(t, txpool.StatusPending, h.pool.Status(b.Hash()), "after a restart nonce 1 counts as committed")
}

// A rejected transaction that comes again is not in the lease that it left, also after a restart.
func TestRejectedIsNotLeasedAgain(t *testing.T) {
	h := newHost(t, func(c *txpool.Config) { c.QuarantineTime = 0 })
	a, b := transfer(0, 0, 5, 0), transfer(0, 1, 5, 0)
	require.NoError(t, h.pool.Add(a))
	require.NoError(t, h.pool.Add(b))
	l := h.pool.Drain(txpool.Budget{})
	require.NoError(t, l.Reject(b.Hash(), errors.New("not now")))
	require.NoError(t, h.pool.Add(b))
	h.restart()
	require.Equal(t, txpool.StatusLeased, h.pool.Status(a.Hash()))
	require.Equal(t, txpool.StatusPending, h.pool.Status(b.Hash()))
}

// The journal ends after any record of a commit: nothing is leased again.
func TestCommitCutAtEachRecord(t *testing.T) {
	for cut := 0; ; cut++ {
		h := newHost(t, nil)
		for i := range 3 {
			for n := range uint64(3) {
				require.NoError(t, h.pool.Add(transfer(i, n, 5, 0)))
			}
		}
		l := h.pool.Drain(txpool.Budget{Count: 5})
		leased := map[string]bool{}
		for _, tx := range l.Transactions() {
			leased[tx.Hash().String()] = true
		}
		from := len(h.tape.records)
		require.NoError(t, l.Commit())
		if from+cut > len(h.tape.records) {
			break
		}
		h.tape.records = h.tape.records[:from+cut]
		r := h.restart()
		require.Empty(t, r.Displaced)
		open := h.pool.Lease(l.ID())
		if cut == 0 {
			require.NotNil(t, open)
			require.Len(t, open.Transactions(), 5)
		}
		for _, tx := range h.pool.Drain(txpool.Budget{}).Transactions() {
			require.False(t, leased[tx.Hash().String()], "cut %d: leased again", cut)
		}
	}
}

// repeated restores, for each run of the journal's records, a pool from a journal in which that run
// was offered twice.
func (h *host) repeated(check func(p *txpool.Pool, from, to int)) {
	for i := range h.tape.records {
		for j := i + 1; j <= len(h.tape.records); j++ {
			twice := &tape{}
			twice.records = append(twice.records, h.tape.records[:j]...)
			twice.records = append(twice.records, h.tape.records[i:]...)
			cfg := h.cfg
			cfg.Journal = twice
			p, err := txpool.New(cfg, h)
			require.NoError(h.t, err)
			_, err = p.Restore(twice.replay)
			require.NoError(h.t, err)
			check(p, i, j)
		}
	}
}

// Whatever Restore reads twice changes nothing.
func TestRecordsTwice(t *testing.T) {
	h := newHost(t, nil)
	for n := range uint64(4) {
		require.NoError(t, h.pool.Add(transfer(0, n, 5, 0)))
	}
	l := h.pool.Drain(txpool.Budget{Count: 2})
	require.NoError(t, l.Return(transfer(0, 1, 5, 0).Hash()))
	before := h.pool.Stats()
	h.repeated(func(p *txpool.Pool, from, to int) {
		require.Equal(t, before, p.Stats(), "records %d to %d twice", from, to)
	})
}

// The same with commits and a revert.
func TestRecordsOfCommitTwice(t *testing.T) {
	h := newHost(t, nil)
	for n := range uint64(4) {
		require.NoError(t, h.pool.Add(transfer(0, n, 5, 0)))
	}
	l := h.pool.Drain(txpool.Budget{Count: 2})
	txs := l.Transactions()
	require.NoError(t, l.Commit())
	h.pool.Reset(txpool.Head{Reverted: []txpool.Block{{Transactions: txs}}})
	l = h.pool.Drain(txpool.Budget{Count: 1})
	require.NoError(t, l.Commit())
	before := h.pool.Stats()
	next, _ := h.pool.NextNonce(address(0))
	h.repeated(func(p *txpool.Pool, from, to int) {
		require.Equal(t, before, p.Stats(), "records %d to %d twice", from, to)
		n, _ := p.NextNonce(address(0))
		require.Equal(t, next, n, "records %d to %d twice", from, to)
	})
}

// After a restart observers receive an event for each restored transaction, and
// later one for its end.
func TestEventsAfterRestart(t *testing.T) {
	h := newHost(t, nil)
	require.NoError(t, h.pool.Add(transfer(0, 0, 5, 0)))
	h.restart()
	seen := 0
	h.cfg.Observe = func(e txpool.Event) { seen++ }
	h.restart()
	require.NoError(t, h.pool.Remove(transfer(0, 0, 5, 0).Hash()))
	require.Equal(t, 2, seen, "Event: a transaction appears with Admitted set once, and leaves by exactly one event")
}
