package evmrollup

import (
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq/txpool"
)

// TransactionStatus shows in which block a transaction is, its status in the pool, or
// how it left the pool. At most one of Block, Pool and Departure is set. None is set if
// the node does not know the transaction.
type TransactionStatus struct {
	// Block is the executed block that contains the transaction, and Index is the
	// transaction's position in that block.
	Block *Block
	Index int
	// Pool is the transaction's status in the pool. It is StatusUnknown if the transaction
	// is not in the pool.
	Pool txpool.Status
	// Departure describes why the transaction left the pool without being included in a block.
	Departure *txpool.Departure
}

// TransactionStatus returns whether a transaction is in a block, is in the pool, or was
// dropped or replaced. The node remembers a dropped or replaced transaction for a day
// if it had acknowledged the transaction. With a data directory, it does so even across
// a restart.
func (c *Chain) TransactionStatus(hash common.Hash) TransactionStatus {
	defer c.pool.Hold()() // blocks that failed are neither here nor there
	if s := c.inBlock(hash); s.Block != nil {
		return s
	}
	if status := c.pool.Status(hash); status != txpool.StatusUnknown {
		return TransactionStatus{Pool: status}
	}
	if s := c.inBlock(hash); s.Block != nil {
		return s // it was put there meanwhile
	}
	if d, known := c.pool.Departure(hash); known {
		return TransactionStatus{Departure: &d}
	}
	return TransactionStatus{}
}

// inBlock returns the status of a transaction in a block, or the zero value.
func (c *Chain) inBlock(hash common.Hash) (s TransactionStatus) {
	s.Block, s.Index = c.executed(hash)
	return s
}

// PoolMetrics contains functions that receive measurements of the pool. They may be
// called concurrently. Any of them may be nil.
type PoolMetrics struct {
	// Event is called with each event of the pool.
	Event func(txpool.Event)
	// Sent is called after each SendTransaction, with its duration and error.
	Sent func(took time.Duration, err error)
}

// poolEvent receives the pool's events. It logs each transaction that leaves the pool
// without being included in a block.
func (c *Chain) poolEvent(e txpool.Event) {
	if c.cfg.PoolMetrics.Event != nil {
		c.cfg.PoolMetrics.Event(e)
	}
	switch e.Kind {
	case txpool.Pending, txpool.Promoted:
		c.pending.send(e.Tx)
	case txpool.Dropped:
		c.log.Info("transaction dropped", "tx", e.Tx.Hash(), "sender", e.Sender, "reason", e.Reason, "age", e.Age.Round(time.Second))
	case txpool.Replaced:
		c.log.Info("transaction replaced", "tx", e.Tx.Hash(), "sender", e.Sender, "by", e.By)
	}
}

// pending notifies subscribers of transactions that have become executable. The zero
// value is ready to use.
type pending struct {
	mu          sync.Mutex
	subscribers map[chan *types.Transaction]bool
}

func (p *pending) send(tx *types.Transaction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.subscribers {
		select {
		case s <- tx:
		default: // the subscriber is too slow
		}
	}
}

// PendingTransactions returns a channel that receives each transaction that becomes
// executable from now on. buffer is the size of the channel; if the channel is full, a
// transaction is lost. The caller must call end, which closes the channel.
func (c *Chain) PendingTransactions(buffer int) (txs <-chan *types.Transaction, end func()) {
	s, p := make(chan *types.Transaction, buffer), &c.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.subscribers == nil {
		p.subscribers = make(map[chan *types.Transaction]bool)
	}
	p.subscribers[s] = true
	return s, sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.subscribers, s)
		close(s)
	})
}
