package node

import (
	"context"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/evmrollup"
)

// Heads returns the newest block of the rollup for each tag, such as latest.
func (n *Node) Heads() canonical.Heads { return n.builder.Heads() }

// Resolve returns the block for a tag or a number, or nil if there is no such block.
// All methods use Resolve, so that a tag means the same block everywhere.
func (n *Node) Resolve(tag rpc.BlockNumber) *Block {
	for {
		h := n.builder.Heads()
		number, known := map[rpc.BlockNumber]uint64{
			rpc.EarliestBlockNumber: 0, rpc.PendingBlockNumber: h.Pending.Number, rpc.LatestBlockNumber: h.Latest.Number,
			rpc.SafeBlockNumber: h.Safe.Number, rpc.FinalizedBlockNumber: h.Finalized.Number,
		}[tag]
		switch {
		case known:
		case tag < 0, uint64(tag) > h.Pending.Number:
			return nil
		default:
			number = uint64(tag)
		}
		if b := n.BlockByNumber(number); b != nil {
			return b
		} // it was undone meanwhile, and the heads are lower now
	}
}

// SendTransaction adds a transaction to the pool. With a data directory, the
// transaction is on the disk when the call returns. The errors are those of the pool.
// After the disk has failed, SendTransaction refuses every transaction with ErrDisk.
// While the log does not answer, the error wraps builder.ErrBusy.
func (n *Node) SendTransaction(tx *types.Transaction) error {
	if err := n.store.Err(); err != nil {
		return err
	}
	if err := n.builder.Busy(); err != nil {
		return err
	}
	if err := n.Chain.SendTransaction(tx); err != nil {
		return err
	}
	n.observer.Sent(1)
	return nil
}

// Mine makes blocks, even if they are empty, and waits until the last of them is
// latest. If seconds is not 0, it is the time between two of these blocks. The error is
// that of ctx, or of a node that has stopped.
func (n *Node) Mine(ctx context.Context, blocks, seconds uint64) error {
	return n.await(ctx, n.Chain.Mine(blocks, seconds))
}

// await waits until the block with a number is latest.
func (n *Node) await(ctx context.Context, last uint64) error {
	return n.builder.Await(ctx, func(h canonical.Heads) bool { return h.Latest.Number >= last })
}

// Edit makes a block that applies an edit, and waits until that block is latest. If ctx
// has already ended, nothing changes. The error wraps evmrollup.ErrEdit, or is that of
// Mine.
func (n *Node) Edit(ctx context.Context, e evmrollup.Edit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	number, err := n.Chain.Edit(e)
	if err != nil {
		return err
	}
	return n.await(ctx, number)
}

// QueueStats returns the statistics of the queue.
func (n *Node) QueueStats(ctx context.Context) (bundlequeue.Stats, error) {
	return n.builder.Stats(ctx)
}

// BundleInfo returns the details of a block's bundle. It returns false if the queue no
// longer has the bundle.
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
