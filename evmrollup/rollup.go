package evmrollup

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/txpool"
)

// rollup implements builder.Rollup for a chain. Only the builder's goroutine uses the
// fields.
type rollup struct {
	*Chain
	proposed *Block // by the last call of Propose
	final    uint64 // number of the last final block
	// logged is the root of the state with which a restart begins: that of the final block
	// in the log's checkpoint. offered is the root for the last call of Checkpoint. Both
	// states are pinned in the store, unless the root is zero.
	logged, offered common.Hash
	imported        [][]byte // of an import, for TakeChanges
}

// Rollup returns the interface through which a builder drives the chain, from the block
// that Origin returns. Rollup must be called only once. The error is that of
// Config.Ledger.
func (c *Chain) Rollup() (builder.Rollup[*Block], error) {
	r := &rollup{Chain: c, final: c.Origin()}
	if err := c.ledger.Rewind(c.Origin()); err != nil {
		return nil, err
	}
	// Keep the state from which the builder's log will continue. Without a checkpoint in the
	// log, that is the newest state in the ledger. With a checkpoint, Restore replaces it, and
	// the newest state may already be gone.
	err := r.repin(&r.logged, c.ledger.Head().Root())
	if err != nil && !errors.Is(err, statedb.ErrUnknownRoot) {
		return nil, err
	}
	return r, nil
}

// Origin returns the number of the chain's first block: 0, or the last imported block.
func (c *Chain) Origin() uint64 { return c.ledger.Origin() }

// Encode implements builder.Codec. The encoding contains no receipts, because executing
// the block produces them again.
func (*rollup) Encode(b *Block) ([]byte, error) { return rlp.EncodeToBytes(b.Block) }

// Decode implements builder.Codec.
func (*rollup) Decode(raw []byte) (*Block, error) {
	b := new(types.Block)
	if err := rlp.DecodeBytes(raw, b); err != nil {
		return nil, fmt.Errorf("evmrollup: a block in the log: %w", err)
	}
	return &Block{Block: b}, nil
}

// Admit implements builder.Operations. op is the binary encoding of a transaction.
func (r *rollup) Admit(ctx context.Context, op []byte) error {
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(op); err != nil {
		return fmt.Errorf("evmrollup: a transaction: %w", err)
	}
	return r.answer(tx, r.pool.Admit(ctx, op))
}

// Root implements builder.Rollup.
func (r *rollup) Root() common.Hash { return r.ledger.Head().Root() }

// Propose implements builder.Rollup.
func (r *rollup) Propose(ctx context.Context, number uint64) (*Block, common.Hash, error) {
	if err := r.abandon(); err != nil {
		return nil, common.Hash{}, err
	}
	parent := r.ledger.Head()
	header := r.nextHeader(parent)
	stats := r.pool.Stats()
	waiting := demand{runs: stats.Pending, parked: stats.Parked > 0 && r.canFall(header), full: r.cfg.MaxTxsPerBlock}
	order, due := r.production.due(number, waiting)
	if !due {
		return nil, common.Hash{}, builder.ErrIdle
	}
	header = r.nextHeader(parent) // again, because the order for this block may have set its time
	session := r.pool.Build(ctx, txpool.Budget{Count: r.cfg.MaxTxsPerBlock, Gas: header.GasLimit, BaseFee: header.BaseFee})
	block, err := r.execute(parent, header, session, order)
	if err == nil && block == nil {
		err = builder.ErrIdle
	}
	if err != nil {
		r.production.gone(number)
		return nil, common.Hash{}, err
	}
	r.proposed = block
	return block, block.Root(), nil
}

// abandon drops the block that Propose has returned last, and its state, if the builder
// has decided not to use the block.
func (r *rollup) abandon() error {
	p := r.proposed
	if r.proposed = nil; p == nil {
		return nil
	}
	return r.states.Discard(p.Root())
}

// Apply implements builder.Rollup. It executes the block, unless the block was just
// proposed. It adds the block to the ledger before it removes the block's transactions
// from the pool, so that a reader finds each transaction at any moment.
func (r *rollup) Apply(_ context.Context, b builder.Block[*Block]) error {
	var err error
	if p := r.proposed; p != nil && p == b.Body {
		r.proposed = nil
		err = r.extend(p)
	} else if err = r.abandon(); err == nil {
		err = r.again(b.Body.Block)
	}
	if err != nil {
		return err
	}
	if parent := r.ledger.ByHash(b.Body.ParentHash()); b.Body.Time() > parent.Time() || len(b.Body.Transactions()) > 0 {
		r.production.made(b.Body.Time(), b.Body.BaseFee())
	} // otherwise it is one for an edit, which leaves the orders of a developer alone
	r.edits.applied(b.Body, r.kept)
	r.pool.Applied(poolBlock(b.Body))
	if e := back(r.edits.in(b.Body.Hash())); e != nil {
		r.restore(e)
	}
	return nil
}

// Undo implements builder.Rollup.
func (r *rollup) Undo(_ context.Context, b builder.Block[*Block]) error {
	if err := r.abandon(); err != nil {
		return err
	}
	reverted := r.reverted(b.Body)
	err := r.pool.Undone(b.Number, poolBlock(b.Body), func() error {
		r.discard(b.Number)
		return nil
	})
	if err == nil {
		r.remove(reverted)
	}
	return err
}

// discard removes the block with the given number and all later blocks, with their
// states.
func (r *rollup) discard(number uint64) {
	for _, b := range r.ledger.Truncate(number) {
		r.edits.discarded(b)
		r.production.gone(b.NumberU64())
		r.replaced.Add(1)
		if err := r.states.Discard(b.Root()); err != nil {
			r.log.Warn("a state could not be discarded", "block", b.NumberU64(), "err", err)
		}
	}
}

// Final implements builder.Finalizer. It ignores a block that is already in the
// database, because that block was final before the restart.
func (r *rollup) Final(_ context.Context, b builder.Block[*Block]) error {
	if b.Number > r.ledger.Final() {
		if err := r.states.SetCanonical(b.Root); err != nil {
			return err
		}
	}
	r.final = b.Number
	r.production.final(b.Number)
	return r.ledger.Finalize(b.Number, b.Progress)
}
