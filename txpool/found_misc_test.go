package txpool_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// What is in the pool when the batch comes, leaves by the batch, and comes again in it.
func TestFoundBatchAlreadyKnown(t *testing.T) {
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

// After a restart observers hear the end of what they never heard the beginning of.
func TestFoundEvents(t *testing.T) {
	h := newHost(t, nil)
	s := h.pool.Subscribe(txpool.SubscribeOptions{})
	require.NoError(t, h.pool.Add(transfer(0, 0, 5, 0)))
	h.restart()
	_ = s
	seen := 0
	h.cfg.Observe = func(e txpool.Event) { seen++; t.Log(e.Kind, e.Admitted) }
	h.restart()
	require.NoError(t, h.pool.Remove(transfer(0, 0, 5, 0).Hash()))
	require.Equal(t, 2, seen, "Event: a transaction appears with Admitted set once, and leaves by exactly one event")
}

// Large newcomers, each pushing out many small: how long does Add hold the lock?
func TestFoundLockOfLargeNewcomers(t *testing.T) {
	h := newHost(t, func(c *txpool.Config) {
		c.MaxTxSize = 1 << 20
		c.MaxPending = 100_000
		c.MaxPendingBytes = 8000 * 104
		c.MaxPendingBytes = max(c.MaxPendingBytes, c.MaxTxSize)
		c.MaxParkedBytes, c.MaxQueuedBytes = 1<<30, 1<<30
		c.Journal = nil
	})
	for i := range 8500 {
		h.chain[address(i)] = txpool.Account{Balance: *uint256.NewInt(1e18)}
	}
	var batch []*types.Transaction
	for i := range 8000 {
		batch = append(batch, transfer(i, 0, 2, 0))
	}
	h.pool.AddAll(batch)
	t.Log(h.pool.Stats().Pending, h.pool.Stats().PendingBytes)
	for _, price := range []int64{1, 3, 40} {
		big := padded(8001, 0, price, 800_000)
		p, err := h.pool.Prepare(big)
		require.NoError(t, err)
		began := time.Now()
		err = h.pool.AddPrepared(p)
		took := time.Since(began)
		t.Log(price, took, fmt.Sprint(err), h.pool.Size())
	}
}
