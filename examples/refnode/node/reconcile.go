package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/txpool"
)

// What a crash can leave, and what becomes of it. Blocks are the truth about what was executed, the queue about what may be out there:
//
//	a block that the queue does not have    goes into it: its bundle was never made, or all versions of it are dead
//	a bundle without its block              cannot be: blocks are written first, and thrown away last
//	a transaction in a block and the pool   leaves the pool: its nonce is used up
//	a lease                                 is released: what went into a block is not in the pool any more
//
// An embedded JAM chain dies with the process. Then what was not final never happened: the queue begins anew, and the transactions of the
// blocks go back to the pool.

// recoverBlocks executes the blocks of the data directory. On an embedded chain only final ones count; the others are returned.
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
		return nil, fmt.Errorf("%w: its genesis is %s, want %s", ErrOtherChain, h.genesis, genesis)
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
		n.log.Info("recovered", "blocks", len(h.blocks), "final", h.final, "executed anew", len(undone))
	}
	return undone, nil
}

// recoverBlock executes a block again.
func (n *Node) recoverBlock(sealed *types.Block, final uint64) error {
	b, _, err := n.replay(n.ledger.head(), sealed)
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

// recoverPool takes the pool's transactions back, and those of blocks that
// never happened. It forgets none: the pool holds aside what it cannot admit
// now. Those blocks are thrown away last: until then a restart finds them, and
// afterwards their transactions in the pool.
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
	// Dump writes all that matters of the journal: also what could not be
	// admitted, and why transactions left.
	replacement := new(records)
	if err := n.pool.Dump(replacement); err != nil {
		return err
	}
	if err := n.store.pool.Replace(*replacement...); err != nil || len(undone) == 0 {
		return err
	}
	return n.store.truncated(undone[0].NumberU64())
}

// records is a journal in memory, to be written at once.
type records [][]byte

// Append implements txpool.Journal.
func (r *records) Append(more ...[]byte) error {
	*r = append(*r, more...)
	return nil
}

// recoverHeads puts the blocks where the queue says that they are.
func (n *Node) recoverHeads(found submit.Recovery) error {
	if !found.Found {
		return nil
	}
	oldest := found.Next
	for _, info := range found.Bundles {
		oldest = min(oldest, info.Number)
		b := n.ledger.byNumber(info.Number)
		if b == nil || b.Hash() != info.Commitment {
			return fmt.Errorf("node: the queue has bundle %d of block %s, and the blocks have another: restore the data directory as a whole", info.Number, info.Commitment)
		}
	}
	for number := n.finalNumber() + 1; number < oldest && n.ledger.byNumber(number) != nil; number++ {
		b := n.ledger.byNumber(number) // final so long ago that the queue has forgotten it
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

// enqueueRecovered enqueues blocks that the queue does not have, as far as it takes them. It reports whether it has all now.
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
		if err != nil {
			return false, err
		}
	}
}

func itemOf(b *Block) canonical.Item {
	return canonical.Item{Number: b.NumberU64(), Commitment: b.Hash()}
}

func bundleOf(parent, block *Block) bundlequeue.Enqueue[Bundle] {
	return bundlequeue.Enqueue[Bundle]{Number: block.NumberU64(), Commitment: block.Hash(), Bundle: Bundle{Block: block, PreRoot: parent.Root()}}
}
