package node

import (
	"context"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
)

// Resolve returns the block that a tag or a number names, or nil if there is
// none. It is the only place that gives tags a meaning.
func (n *Node) Resolve(number rpc.BlockNumber) *Block {
	heads := n.builder.Heads()
	switch number {
	case rpc.EarliestBlockNumber:
		return n.BlockByNumber(0)
	case rpc.PendingBlockNumber:
		return n.BlockByNumber(heads.Pending.Number)
	case rpc.SafeBlockNumber:
		return n.BlockByNumber(heads.Safe.Number)
	case rpc.FinalizedBlockNumber:
		return n.BlockByNumber(heads.Finalized.Number)
	case rpc.LatestBlockNumber:
		return n.BlockByNumber(heads.Latest.Number)
	}
	if number < 0 || uint64(number) > heads.Pending.Number {
		return nil
	}
	return n.BlockByNumber(uint64(number))
}

// SendTransaction adds a transaction to the pool. With a data directory it is
// on disk when the call returns. Errors are those of the pool.
func (n *Node) SendTransaction(tx *types.Transaction) error {
	if err := n.Chain.SendTransaction(tx); err != nil {
		return err
	}
	n.live.Sent(1)
	return nil
}

// QueueStats returns the statistics of the queue.
func (n *Node) QueueStats(ctx context.Context) (bundlequeue.Stats, error) {
	return n.builder.Stats(ctx)
}

// BundleInfo describes the bundle of a block while the queue has it.
func (n *Node) BundleInfo(ctx context.Context, number uint64) (bundlequeue.Info, bool, error) {
	return n.builder.Info(ctx, number)
}

// JAMSlot returns the slot of the best JAM block.
func (n *Node) JAMSlot() jamq.Slot {
	best, _ := n.jam.Heads()
	return best.Slot
}

// JAMHeads returns the heads of the JAM chain.
func (n *Node) JAMHeads() (best, finalized jamq.HeaderHash) {
	b, f := n.jam.Heads()
	return b.Hash, f.Hash
}
