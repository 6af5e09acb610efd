package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/statedb/evm"
	"github.com/jamq/jamq/txpool"
)

// ChainConfig returns the rollup's chain configuration.
func (n *Node) ChainConfig() *params.ChainConfig { return n.chain }

// Resolve returns the block that a tag or number names, or nil for one that does not exist. It is the only place where tags get a
// meaning.
func (n *Node) Resolve(number rpc.BlockNumber) *Block {
	tag := canonical.Latest
	switch number {
	case rpc.EarliestBlockNumber:
		tag = canonical.Earliest
	case rpc.PendingBlockNumber:
		tag = canonical.Pending
	case rpc.SafeBlockNumber:
		tag = canonical.Safe
	case rpc.FinalizedBlockNumber:
		tag = canonical.Finalized
	case rpc.LatestBlockNumber:
	default:
		if number < 0 {
			return nil
		}
		tag = canonical.Number(uint64(number))
	}
	n.mu.Lock()
	head, err := n.tracker.Resolve(tag)
	n.mu.Unlock()
	if err != nil {
		return nil
	}
	return n.ledger.byNumber(head.Number)
}

// BlockByHash returns a block, or nil.
func (n *Node) BlockByHash(hash common.Hash) *Block { return n.ledger.blockByHash(hash) }

// Transaction returns the executed block that holds a transaction, and its place there.
func (n *Node) Transaction(hash common.Hash) (*Block, int, bool) { return n.ledger.transaction(hash) }

// ReplacedBlocks counts the executed blocks that were thrown away, so that caches by block number know when they are stale.
func (n *Node) ReplacedBlocks() uint64 { return n.replaced.Load() }

// Progress returns where a block stands on JAM.
func (n *Node) Progress(number uint64) Progress { return n.ledger.progressOf(number) }

// PooledProgress is that of a transaction in no block.
func (n *Node) PooledProgress() Progress { return Progress{Status: "pooled"} }

// SendTransaction takes a transaction into the pool. With a data directory it is on disk before it returns. Errors are the pool's.
func (n *Node) SendTransaction(tx *types.Transaction) error {
	if _, _, executed := n.ledger.transaction(tx.Hash()); executed {
		return txpool.ErrAlreadyKnown
	}
	// The pool's journal gives no reason once the node has closed it.
	if err := n.store.failure(); err != nil {
		return fmt.Errorf("%w: %w", txpool.ErrJournal, err)
	}
	if err := n.pool.Add(tx); err != nil {
		return err
	}
	n.live.Sent(1)
	wake(n.produceNow)
	return nil
}

// Pooled returns a transaction of the pool.
func (n *Node) Pooled(hash common.Hash) (*types.Transaction, bool) {
	tx := n.pool.Get(hash)
	return tx, tx != nil
}

// PoolCounts returns how many transactions can run and how many wait behind nonce gaps.
func (n *Node) PoolCounts() (pending, queued int) {
	s := n.pool.Stats()
	return s.Pending, s.Queued
}

// PoolContent returns them by sender.
func (n *Node) PoolContent() (pending, queued map[common.Address][]*types.Transaction) {
	return n.pool.Content()
}

// NextNonce returns the nonce after everything that the node knows of an account.
func (n *Node) NextNonce(addr common.Address) (uint64, error) {
	if nonce, known := n.pool.NextNonce(addr); known {
		return nonce, nil
	}
	view, err := n.StateAt(n.ledger.head())
	if err != nil {
		return 0, err
	}
	return view.Account(addr).Nonce, nil
}

// StateAt returns a view of the state after a block.
func (n *Node) StateAt(b *Block) (*statedb.View, error) {
	view, err := n.states.View(b.Root())
	if err != nil {
		return nil, fmt.Errorf("historical state of block %d is not available: %w", b.NumberU64(), err)
	}
	return view, nil
}

// Call runs a message on a view of the state after a block, with a tracer that watches it or nil. The view may differ from that state.
func (n *Node) Call(ctx context.Context, b *Block, view *statedb.View, msg *core.Message, tracer *tracing.Hooks) (*core.ExecutionResult, error) {
	return evm.CallTraced(ctx, view, n.chain, b.Header(), n.blockHashes(b), msg, tracer)
}

// EstimateGas returns the gas that a message needs on a view of the state after a block; if it fails with any gas, the data of the revert.
func (n *Node) EstimateGas(ctx context.Context, b *Block, view *statedb.View, msg *core.Message, gasCap uint64) (uint64, []byte, error) {
	return evm.Estimate(ctx, view, n.chain, b.Header(), n.blockHashes(b), msg, gasCap)
}

// QueueStats summarizes the queue.
func (n *Node) QueueStats(ctx context.Context) (bundlequeue.Stats, error) { return n.runner.Stats(ctx) }

// BundleInfo describes the bundle of a block, while the queue remembers it.
func (n *Node) BundleInfo(ctx context.Context, number uint64) (bundlequeue.Info, bool, error) {
	return n.runner.Info(ctx, number)
}

// CanonicalRoot returns the state root of the last finalized block.
func (n *Node) CanonicalRoot() common.Hash { return n.states.Canonical() }

// JAMSlot returns the slot of the best JAM block.
func (n *Node) JAMSlot() jamq.Slot {
	best, _ := n.jam.heads()
	return best.slot
}

// JAMHeads returns the heads of the JAM chain.
func (n *Node) JAMHeads() (best, finalized jamq.HeaderHash) {
	b, f := n.jam.heads()
	return b.hash, f.hash
}

// ServiceReport is what the rollup's service on the finalized JAM chain was given since the node started.
type ServiceReport struct {
	// Total counts accumulated packages of the rollup; First and Last are the block numbers of the first and the latest.
	Total, First, Last uint64
	// Root is the state root after the last.
	Root common.Hash
	// Duplicates are block numbers accumulated again, Gaps those that did not continue the one before. Both should be empty.
	Duplicates, Gaps []uint64
}

// Service reports what the finalized JAM chain itself accumulated. It is read from the chain, not from the queue.
func (n *Node) Service() ServiceReport {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := &n.service
	return ServiceReport{
		Total: s.total, First: s.first, Last: s.last, Root: s.root,
		Duplicates: slices.Clone(s.duplicates), Gaps: slices.Clone(s.gaps),
	}
}
