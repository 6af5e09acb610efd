package txpool_test

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// Rejected from a lease, admitted again (QuarantineTime 0, or after a restart), then that lease is committed.
func TestFoundRejectedIsNotCommitted(t *testing.T) {
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

// Crash in Append of a commit at each record boundary.
func TestFoundCommitAtEachBoundary(t *testing.T) {
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
		require.Empty(t, r.Refused)
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

// Whatever Restore reads twice changes nothing.
func TestFoundDuplicateRecords(t *testing.T) {
	h := newHost(t, nil)
	for n := range uint64(4) {
		require.NoError(t, h.pool.Add(transfer(0, n, 5, 0)))
	}
	l := h.pool.Drain(txpool.Budget{Count: 2})
	require.NoError(t, l.Return(transfer(0, 1, 5, 0).Hash()))
	before := h.pool.Stats()
	for i := range h.tape.records {
		for j := i + 1; j <= len(h.tape.records); j++ { // records i..j were offered again
			twice := &tape{}
			twice.records = append(twice.records, h.tape.records[:j]...)
			twice.records = append(twice.records, h.tape.records[i:]...)
			cfg := h.cfg
			cfg.Journal = twice
			p, err := txpool.New(cfg, h)
			require.NoError(t, err)
			_, err = p.Restore(twice.replay)
			require.NoError(t, err)
			after := p.Stats()
			require.Equal(t, before, after, "records %d to %d twice", i, j)
		}
	}
}

// The same with a commit.
func TestFoundDuplicateRecordsOfCommit(t *testing.T) {
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
	for i := range h.tape.records {
		for j := i + 1; j <= len(h.tape.records); j++ {
			twice := &tape{}
			twice.records = append(twice.records, h.tape.records[:j]...)
			twice.records = append(twice.records, h.tape.records[i:]...)
			cfg := h.cfg
			cfg.Journal = twice
			p, err := txpool.New(cfg, h)
			require.NoError(t, err)
			_, err = p.Restore(twice.replay)
			require.NoError(t, err)
			after := p.Stats()
			n, _ := p.NextNonce(address(0))
			if before != after || n != next {
				t.Errorf("records %d to %d twice: %d pending, next %d; want %d, %d", i, j, after.Pending, n, before.Pending, next)
			}
		}
	}
}

var _ = types.NewTx
