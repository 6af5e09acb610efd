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

// Resolve returns the block that a tag or a number names, or nil if there is
// none. It is the only place that gives tags a meaning.
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

// BlockByHash returns the block with a hash, or nil.
func (n *Node) BlockByHash(hash common.Hash) *Block { return n.ledger.blockByHash(hash) }

// Transaction returns the executed block of a transaction, and its index there.
func (n *Node) Transaction(hash common.Hash) (*Block, int, bool) { return n.ledger.transaction(hash) }

// ReplacedBlocks returns the number of executed blocks that were undone. A
// cache by block number is stale when it changes.
func (n *Node) ReplacedBlocks() uint64 { return n.replaced.Load() }

// Progress returns the position of a block on its way through JAM.
func (n *Node) Progress(number uint64) Progress { return n.ledger.progressOf(number) }

// PooledProgress returns the progress of a transaction that is in no block.
func (n *Node) PooledProgress() Progress { return Progress{Status: "pooled"} }

// SendTransaction adds a transaction to the pool. With a data directory it is
// on disk when the call returns. Errors are those of the pool.
//
// While failed blocks return to the pool, SendTransaction waits. The pool would
// see the state before these blocks but not their transactions, and take the
// sender's next transaction for one behind a gap, which a full queue drops.
func (n *Node) SendTransaction(tx *types.Transaction) error {
	n.moving.RLock()
	defer n.moving.RUnlock()
	if _, _, executed := n.ledger.transaction(tx.Hash()); executed {
		return txpool.ErrAlreadyKnown
	}
	// After the node has closed it, the pool's journal gives no reason.
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

// Pooled returns a transaction in the pool. It waits while failed blocks return
// to the pool.
func (n *Node) Pooled(hash common.Hash) (*types.Transaction, bool) {
	n.moving.RLock()
	defer n.moving.RUnlock()
	tx := n.pool.Get(hash)
	return tx, tx != nil
}

// PoolCounts returns the number of transactions that can run, and of those
// behind gaps in the nonces.
func (n *Node) PoolCounts() (pending, queued int) {
	s := n.pool.Stats()
	return s.Pending, s.Queued
}

// PoolPressure returns how full the pool is with transactions that can run, by
// number or by size: 0 if it is empty, 1 if it is full. It can be higher while
// transactions of failed blocks are back in the pool.
func (n *Node) PoolPressure() float64 {
	s := n.pool.Stats()
	return max(float64(s.Pending)/float64(n.cfg.MaxPool), float64(s.PendingBytes)/float64(n.cfg.poolBytes()))
}

// PoolContent returns the transactions of PoolCounts by sender.
func (n *Node) PoolContent() (pending, queued map[common.Address][]*types.Transaction) {
	return n.pool.Content()
}

// NextNonce returns the nonce after all known transactions of an account. It
// waits while failed blocks return to the pool.
func (n *Node) NextNonce(addr common.Address) (uint64, error) {
	n.moving.RLock()
	defer n.moving.RUnlock()
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

// Call runs a message on a view of the state after a block, with a tracer or
// nil. The view may contain further changes.
func (n *Node) Call(ctx context.Context, b *Block, view *statedb.View, msg *core.Message, o evm.Overrides, tracer *tracing.Hooks) (*core.ExecutionResult, error) {
	return evm.CallWith(ctx, view, n.chain, b.Header(), n.blockHashes(b), msg, o, tracer)
}

// EstimateGas returns the gas that a message needs on a view of the state after
// a block. It is at most gasCap, and at most the gas that a transaction may
// have. If the message fails with any gas, it returns the data of the revert.
func (n *Node) EstimateGas(ctx context.Context, b *Block, view *statedb.View, msg *core.Message, o evm.Overrides, gasCap uint64) (uint64, []byte, error) {
	estimate := func(gasCap uint64) (uint64, []byte, error) {
		return evm.EstimateWith(ctx, view, n.chain, b.Header(), n.blockHashes(b), msg, gasCap, o)
	}
	gas, revert, err := estimate(gasCap)
	if most := uint64(n.limits.TxGas); err == nil && gas > most {
		return estimate(most) // which is less generous, or fails
	}
	return gas, revert, err
}

// QueueStats returns the statistics of the queue.
func (n *Node) QueueStats(ctx context.Context) (bundlequeue.Stats, error) { return n.runner.Stats(ctx) }

// BundleInfo describes the bundle of a block while the queue has it.
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

// ServiceReport lists the calls that the rollup's service received on the
// finalized JAM chain since the node started.
type ServiceReport struct {
	// Total is the number of accumulated packages of the rollup. First and Last
	// are the block numbers of the first and the latest one.
	Total, First, Last uint64
	// Root is the state root after the last block.
	Root common.Hash
	// Duplicates are the numbers of blocks that were accumulated again, and
	// Gaps those that did not continue the previous block. Both should be
	// empty.
	Duplicates, Gaps []uint64
}

// Service returns the accumulations of the finalized JAM chain. It reads the
// chain, not the queue.
func (n *Node) Service() ServiceReport {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := &n.service
	return ServiceReport{
		Total: s.total, First: s.first, Last: s.last, Root: s.root,
		Duplicates: slices.Clone(s.duplicates), Gaps: slices.Clone(s.gaps),
	}
}
