package evmrollup

import (
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/txpool"
)

// TransactionStatus is the position of a transaction. One of Block, Pool and
// Departure is set, or none if the node does not know the transaction.
type TransactionStatus struct {
	// Block is the executed block of the transaction, and Index its index there.
	Block *Block
	Index int
	// Pool is its status in the pool, or StatusUnknown.
	Pool txpool.Status
	// Departure is the reason why it left the pool.
	Departure *txpool.Departure
}

// TransactionStatus returns the position of a transaction: in a block, in the
// pool, or dropped or replaced. A transaction that was acknowledged is found
// until a day after it was dropped or replaced, with a data directory also
// across restarts.
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

// inBlock returns the status of a transaction in a block, or zero.
func (c *Chain) inBlock(hash common.Hash) (s TransactionStatus) {
	s.Block, s.Index = c.executed(hash)
	return s
}

// poolEvent logs each transaction that leaves the pool otherwise than by
// inclusion.
func (c *Chain) poolEvent(e txpool.Event) {
	switch e.Kind {
	case txpool.Dropped:
		c.log.Info("transaction dropped", "tx", e.Tx.Hash(), "sender", e.Sender, "reason", e.Reason, "age", e.Age.Round(time.Second))
	case txpool.Replaced:
		c.log.Info("transaction replaced", "tx", e.Tx.Hash(), "sender", e.Sender, "by", e.By)
	}
}
