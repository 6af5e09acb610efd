package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/journal"
	"github.com/jamq/jamq/txpool"
)

// A crash can stop between the three journals. The blocks on disk decide which
// transactions were executed, and the queue decides which packages can be out:
//
//	a block that the queue lacks       is enqueued if it never was; if it failed,
//	                                   its transactions return to the pool
//	a bundle without its block         cannot exist: blocks are written first
//	                                   and removed last
//	a transaction in block and pool    leaves the pool: its nonce is used
//	a lease                            is released: the transactions of blocks
//	                                   are not in the pool any more
//
// An embedded JAM chain ends with the process. Blocks that were not final then
// never happened: the queue begins again, and their transactions return to the
// pool.

// recoverBlocks executes the blocks of the data directory. On an embedded chain
// only final blocks count; the others are returned.
func (n *Node) recoverBlocks() (undone []*types.Block, err error) {
	if n.store == nil {
		return nil, nil
	}
	h, err := n.store.history()
	if err != nil {
		return nil, err
	}
	genesis := n.ledger.head().Hash()
	switch h.genesis {
	case common.Hash{}:
		return nil, n.store.genesis(genesis)
	case genesis:
	default:
		return nil, fmt.Errorf("%w: the genesis is %s, want %s", ErrOtherChain, h.genesis, genesis)
	}
	if n.cfg.JAMURL == "" && uint64(len(h.blocks)) > h.final {
		undone, h.blocks = h.blocks[h.final:], h.blocks[:h.final]
	}
	for _, b := range h.blocks {
		if err := n.recoverBlock(b, h.final); err != nil {
			return nil, err
		}
	}
	if len(h.blocks)+len(undone) > 0 {
		n.log.Info("recovered", "blocks", len(h.blocks), "final", h.final, "executed again", len(undone))
	}
	return undone, nil
}

// recoverBlock executes a block again.
func (n *Node) recoverBlock(sealed *types.Block, final uint64) error {
	b, _, err := n.replay(n.ledger.head(), sealed, (*statedb.View).Commit)
	if err != nil {
		return err
	}
	isFinal := b.NumberU64() <= final
	if err := n.ledger.recovered(b, isFinal); err != nil {
		return err
	}
	if err := n.states.Pin(b.Root()); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.tracker.Executed(headOf(b)); err != nil || !isFinal {
		return err
	}
	if _, _, err := n.tracker.Finalized(itemOf(b)); err != nil {
		return err
	}
	return n.states.SetCanonical(b.Root())
}

// recoverPool restores the pool's transactions, and those of blocks that were
// undone by the restart. It forgets none: the pool holds transactions aside
// that it cannot admit now. The undone blocks are removed last, so that a
// restart finds either them or their transactions in the pool.
func (n *Node) recoverPool(undone []*types.Block) error {
	base := n.nextHeader(n.ledger.head()).BaseFee
	if n.store == nil {
		n.pool.Reset(txpool.Head{BaseFee: base}) // which is 0 for a new pool
		return nil
	}
	restored, err := n.pool.Restore(n.store.pool.Replay)
	if err != nil {
		return err
	}
	for _, lease := range n.pool.Leases() {
		if err := lease.Release(); err != nil {
			return err
		}
	}
	reverted := make([]txpool.Block, len(undone))
	for i, b := range undone {
		reverted[i] = txpool.Block{BaseFee: b.BaseFee(), Transactions: b.Transactions()}
	}
	displaced := append(restored.Displaced, n.pool.Reset(txpool.Head{Reverted: reverted, BaseFee: base})...)
	n.logDisplaced(displaced)
	n.log.Info("recovered", "transactions", n.pool.Size(), "held aside", len(n.pool.Held()), "poisoned", len(restored.Poisoned))
	// The new content has the essential records of the journal, including
	// transactions that could not be admitted, and the reasons why transactions
	// left.
	rewrite := &rewriting{Journal: n.store.pool}
	if err := n.pool.Rotate(rewrite); err != nil {
		return err
	}
	if err := rewrite.finish(); err != nil || len(undone) == 0 {
		return err
	}
	return n.store.truncated(undone[0].NumberU64())
}

// rewriting is a journal that gets a new content. It collects records until
// finish replaces the old content by them.
type rewriting struct {
	journal.Journal
	records  [][]byte
	finished bool
}

// Append implements txpool.Journal.
func (r *rewriting) Append(more ...[]byte) error {
	if r.finished {
		return r.Journal.Append(more...)
	}
	r.records = append(r.records, more...)
	return nil
}

// finish replaces the content. Nothing else may use the journal meanwhile.
func (r *rewriting) finish() error {
	if err := r.Replace(r.records...); err != nil {
		return err
	}
	r.records, r.finished = nil, true
	return nil
}

// recoverHeads moves the blocks to the states of their bundles.
func (n *Node) recoverHeads(found submit.Recovery) error {
	if !found.Found {
		return nil
	}
	oldest := found.Next
	for _, info := range found.Bundles {
		oldest = min(oldest, info.Number)
		b := n.ledger.byNumber(info.Number)
		if b == nil || b.Hash() != info.Commitment {
			return fmt.Errorf("node: bundle %d in the queue is of block %s, but the stored block is a different one; restore the data directory as a whole", info.Number, info.Commitment)
		}
	}
	for number := n.finalNumber() + 1; number < oldest && n.ledger.byNumber(number) != nil; number++ {
		b := n.ledger.byNumber(number) // forgotten by the queue
		n.moveHeads(bundlequeue.Changed{Number: number, Commitment: b.Hash(), To: bundlequeue.Finalized})
	}
	for _, info := range found.Bundles {
		change := bundlequeue.Changed{Number: info.Number, Commitment: info.Commitment, To: info.State, Core: info.Core}
		for _, v := range info.Versions {
			if v.Dead == 0 {
				change.Version, change.Package = v.Version, v.Package
			}
		}
		n.ledger.note(change, found.Best.Slot)
		n.live.Changed(change, len(n.ledger.byNumber(info.Number).Transactions()))
		n.moveHeads(change)
	}
	return nil
}

func (n *Node) finalNumber() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tracker.Heads().Finalized.Number
}

// enqueueRecovered enqueues blocks that the queue does not have, while the
// queue has room. It reports whether all are enqueued.
func (n *Node) enqueueRecovered(ctx context.Context) (bool, error) {
	for {
		stats, err := n.runner.Stats(ctx)
		if err != nil {
			return false, err
		}
		block := n.ledger.byNumber(stats.Next)
		if block == nil {
			return true, nil
		}
		err = n.runner.Enqueue(ctx, bundleOf(n.ledger.byNumber(stats.Next-1), block))
		if errors.Is(err, bundlequeue.ErrQueueFull) {
			return false, nil
		}
		if errors.Is(err, bundlequeue.ErrCommitmentUsed) {
			// It failed before the restart, and its transactions are in no other
			// place.
			err = n.takeBackFailed([]Bundle{{Block: block}})
		}
		if err != nil {
			return false, err
		}
	}
}

func itemOf(b *Block) canonical.Item {
	return canonical.Item{Number: b.NumberU64(), Commitment: b.Hash()}
}

func bundleOf(parent, block *Block) bundlequeue.Enqueue[Bundle] {
	return bundlequeue.Enqueue[Bundle]{
		Number: block.NumberU64(), Commitment: block.Hash(), Parent: parent.Hash(), Bundle: Bundle{Block: block, PreRoot: parent.Root()},
	}
}
