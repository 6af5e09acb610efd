package evmrollup

import (
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/txpool"
)

// SendTransaction adds a transaction to the pool. When it returns nil, the transaction
// is in the builder's log. The errors are those of the pool. If the transaction is
// already in a block, the error is txpool.ErrAlreadyKnown. SendTransaction searches the
// blocks only if the pool has refused the transaction, because reading the disk is
// slower.
func (c *Chain) SendTransaction(tx *types.Transaction) error {
	began := time.Now()
	err := c.answer(tx, c.pool.Add(tx))
	if c.cfg.PoolMetrics.Sent != nil {
		c.cfg.PoolMetrics.Sent(time.Since(began), err)
	}
	return err
}

// answer converts the pool's error for a transaction to the error for the user.
func (c *Chain) answer(tx *types.Transaction, err error) error {
	if err == nil || errors.Is(err, builder.ErrLog) || errors.Is(err, builder.ErrStopped) {
		return err // the transaction may be in a block, and the log lack both
	}
	if b, _ := c.executed(tx.Hash()); b != nil {
		return txpool.ErrAlreadyKnown
	}
	return err
}

// Pooled returns a transaction from the pool. If a failed block is giving its
// transactions back to the pool, Pooled first waits until they are there.
func (c *Chain) Pooled(hash common.Hash) (*types.Transaction, bool) {
	defer c.pool.Hold()()
	tx := c.pool.Get(hash)
	return tx, tx != nil
}

// PoolStats returns the sizes and counters of the pool.
func (c *Chain) PoolStats() txpool.Stats { return c.pool.Stats() }

// CheckPool returns an error if the pool is inconsistent: see txpool.Pool.Check.
func (c *Chain) CheckPool() error { return c.pool.Check() }

// PoolCounts returns the number of transactions in the pool that follow their sender's
// nonce without a gap, and the number of those behind a gap. As in geth, the first
// number includes transactions whose price is below the base fee.
func (c *Chain) PoolCounts() (pending, queued int) {
	s := c.pool.Stats()
	return s.Pending + s.Parked, s.Queued
}

// PoolPressure returns how full the pool is with executable transactions: 0 is empty
// and 1 is full. It measures both their number and their size, and returns the greater
// share. The result can be above 1 if failed blocks have given their transactions back
// to the pool.
func (c *Chain) PoolPressure() float64 {
	s := c.pool.Stats()
	return max(float64(s.Pending)/float64(c.cfg.MaxPool), float64(s.PendingBytes)/float64(c.cfg.poolBytes()))
}

// PoolContent returns the transactions that PoolCounts counts, grouped by sender.
func (c *Chain) PoolContent() (pending, queued map[common.Address][]*types.Transaction) {
	pending, others := c.pool.Content()
	queued = make(map[common.Address][]*types.Transaction, len(others))
	for sender, txs := range others {
		for _, tx := range txs {
			to := queued
			if c.pool.Status(tx.Hash()) == txpool.StatusParked {
				to = pending
			}
			to[sender] = append(to[sender], tx)
		}
	}
	return pending, queued
}

// RemovePooled removes a transaction from the pool. Later transactions of the same
// sender stay in the pool and wait until the nonce gap is closed. The error wraps
// txpool.ErrNotFound, or txpool.ErrInBundle if the transaction is already in a block.
func (c *Chain) RemovePooled(hash common.Hash) error { return c.pool.Remove(hash) }

// NextNonce returns the nonce for the next transaction of an account. It counts the
// account's transactions in blocks and in the pool. If a failed block is giving its
// transactions back to the pool, NextNonce first waits until they are there.
func (c *Chain) NextNonce(addr common.Address) (uint64, error) {
	defer c.pool.Hold()()
	if nonce, known := c.pool.NextNonce(addr); known {
		return nonce, nil
	}
	view, err := c.StateAt(c.ledger.Head())
	if err != nil {
		return 0, err
	}
	return view.Account(addr).Nonce, nil
}
