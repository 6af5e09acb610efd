package txpool_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// A journal that is known to fail: a batch changes nothing.
func TestAddAllWhileJournalFails(t *testing.T) {
	h := newHost(t, func(c *txpool.Config) { c.MaxPending = 4 })
	for i := range 4 {
		require.NoError(t, h.pool.Add(transfer(i, 0, 5, 0)))
	}
	h.tape.fail = true
	require.ErrorIs(t, h.pool.Add(transfer(10, 0, 6, 0)), txpool.ErrJournal) // the first failure
	require.Equal(t, 4, h.pool.Size())
	for i := range 4 {
		errs := h.pool.AddAll([]*types.Transaction{transfer(20+2*i, 0, 10, 0), transfer(21+2*i, 0, 10, 0)})
		require.ErrorIs(t, errs[0], txpool.ErrJournal)
	}
	require.Equal(t, 4, h.pool.Size(), "while the journal is known to fail, nothing else changes")
	h.tape.fail = false
	h.restart()
	require.Equal(t, 4, h.pool.Size())
}

// A newcomer that the journal cannot record displaces no transaction: those
// that it replaced or evicted are in the pool again, now and after a restart.
func TestRefusedByTheJournal(t *testing.T) {
	for name, newcomer := range map[string]*types.Transaction{"replaces": transfer(0, 0, 9, 0), "evicts": transfer(1, 0, 9, 0)} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, func(c *txpool.Config) { c.MaxPending, c.QuarantineTime = 2, time.Hour })
			old := []*types.Transaction{transfer(0, 0, 5, 0), transfer(0, 1, 5, 0)}
			for _, tx := range old {
				require.NoError(t, h.pool.Add(tx))
			}
			h.tape.fail = true
			require.ErrorIs(t, h.pool.Add(newcomer), txpool.ErrJournal)
			for i := range 2 {
				require.Equal(t, txpool.StatusUnknown, h.pool.Status(newcomer.Hash()))
				for _, tx := range old {
					require.Equal(t, txpool.StatusPending, h.pool.Status(tx.Hash()))
				}
				require.NoError(t, h.pool.Check())
				h.tape.fail = false
				require.ErrorIs(t, h.pool.Add(old[0]), txpool.ErrAlreadyKnown)
				require.NoError(t, h.pool.Add(transfer(5+i, 9, 5, 0)), "the journal works again")
				h.restart()
			}
		})
	}
}

// A transaction that was refused because the journal fails does not wait for the journal.
func TestMemoryWhileJournalFails(t *testing.T) {
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

// A transaction is in the pool when the batch arrives, is displaced by the batch,
// and is in it again.
func TestBatchAlreadyKnown(t *testing.T) {
	build := func() *host {
		h := newHost(t, func(c *txpool.Config) { c.MaxQueued = 2; c.Journal = nil })
		require.NoError(t, h.pool.Add(transfer(0, 1, 5, 0)))
		require.NoError(t, h.pool.Add(transfer(0, 2, 5, 0)))
		return h
	}
	batch := []*types.Transaction{
		transfer(1, 1, 5, 0), // takes the place of sender 0's last
		transfer(1, 0, 5, 0), // closes the gap: room again
		transfer(0, 2, 5, 0), // once more
	}
	one, all := build(), build()
	errs := all.pool.AddAll(batch)
	for i, tx := range batch {
		err := one.pool.Add(tx)
		require.Equal(t, err == nil, errs[i] == nil, "transaction %d: alone %v, in a batch %v; in the pool: %v", i, err, errs[i], all.pool.Get(tx.Hash()) != nil)
	}
}

// A newcomer that the journal cannot record has evicted the only transaction of
// a sender. That one comes back as its sender's.
func TestDisplacedKeepsSender(t *testing.T) {
	h := newHost(t, func(c *txpool.Config) { c.MaxPending = 1 })
	old := transfer(0, 0, 5, 0)
	require.NoError(t, h.pool.Add(old))
	h.tape.fail = true
	require.ErrorIs(t, h.pool.Add(transfer(1, 0, 9, 0)), txpool.ErrJournal)
	pending, _ := h.pool.ContentFrom(address(0))
	require.Len(t, pending, 1)
	next, known := h.pool.NextNonce(address(0))
	require.True(t, known)
	require.EqualValues(t, 1, next)
}
