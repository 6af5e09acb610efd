package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
)

// perBlock is the number of transactions in a block.
const perBlock = 4

// rollup makes, executes and undoes blocks of transactions for the builder. It
// implements builder.Rollup.
type rollup struct {
	mu      sync.Mutex
	waiting []*transaction              // mempool in order of arrival
	changes [][]byte                    // accepted, and not in the builder's log yet
	claimed pool                        // as if all accepted transactions had been executed
	state   pool                        // after the last of blocks
	blocks  []*block                    // by height, the genesis first
	final   map[uint64]builder.Progress // of the final blocks, by height
}

var _ builder.Rollup[*block] = (*rollup)(nil)

// newRollup returns a rollup at its genesis, which is the same for all of them.
func newRollup() *rollup {
	genesis := &block{header: header{Time: jamq.CommonEra().Unix()}}
	return &rollup{
		claimed: pool{spent: map[bytes32]bool{}}, state: pool{spent: map[bytes32]bool{}},
		blocks: []*block{genesis}, final: map[uint64]builder.Progress{},
	}
}

// Admit implements builder.Operations. The error wraps errDoubleSpend if a transaction spends
// a note that an accepted transaction spends.
func (r *rollup) Admit(_ context.Context, op []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.accept(op); err != nil {
		return err
	}
	r.changes = append(r.changes, op)
	return nil
}

// accept lets a transaction wait. The caller holds the lock.
func (r *rollup) accept(op []byte) error {
	t, err := decodeTransaction(op)
	if err != nil {
		return err
	}
	if err := r.claimed.apply(t); err != nil {
		return err
	}
	r.waiting = append(r.waiting, t)
	return nil
}

// TakeChanges implements builder.Operations.
func (r *rollup) TakeChanges() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	changes := r.changes
	r.changes = nil
	return changes
}

// ReplayChange implements builder.Operations. There are no checkpoints, so the change is new.
func (r *rollup) ReplayChange(_ context.Context, change []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accept(change)
}

// Recovered implements builder.Operations.
func (r *rollup) Recovered(context.Context, func() error) error { return nil }

// Propose implements builder.Rollup. It executes the block on the state and undoes
// it under the same lock, because a copy of all nullifiers would cost more.
func (r *rollup) Propose(_ context.Context, number uint64) (*block, common.Hash, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tip := r.tip()
	b := &block{header: header{Height: number, Previous: tip.hash(), Time: time.Now().Unix()}}
	for _, t := range r.waiting {
		if len(b.Transactions) < perBlock && r.state.apply(t) == nil {
			b.Transactions = append(b.Transactions, t)
		}
	}
	b.Merkle, b.Root, b.Notes = merkleRoot(b.Transactions), r.state.root, r.state.notes
	r.state.revert(b.Transactions, tip)
	if len(b.Transactions) == 0 {
		return nil, common.Hash{}, builder.ErrIdle
	}
	return b, common.Hash(b.Root), nil
}

// Apply implements builder.Rollup.
func (r *rollup) Apply(_ context.Context, next builder.Block[*block]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := next.Body
	for i, t := range b.Transactions {
		if err := r.state.apply(t); err != nil {
			r.state.revert(b.Transactions[:i], r.tip())
			return err
		}
	}
	r.blocks = append(r.blocks, b)
	r.waiting = slices.DeleteFunc(r.waiting, func(t *transaction) bool { return r.state.check(t) != nil })
	return nil
}

// Undo implements builder.Rollup.
func (r *rollup) Undo(_ context.Context, newest builder.Block[*block]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := newest.Body
	r.blocks = r.blocks[:len(r.blocks)-1]
	r.state.revert(b.Transactions, r.tip())
	r.waiting = append(slices.Clone(b.Transactions), r.waiting...)
	return nil
}

// Final implements builder.Finalizer.
func (r *rollup) Final(_ context.Context, b builder.Block[*block]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.final[b.Number] = b.Progress
	return nil
}

// Root implements builder.Rollup.
func (r *rollup) Root() common.Hash {
	r.mu.Lock()
	defer r.mu.Unlock()
	return common.Hash(r.state.root)
}

// Payload implements builder.Rollup.
func (r *rollup) Payload(_ context.Context, b builder.Block[*block]) ([]byte, error) {
	return b.Body.encode(), nil
}

// tip returns the newest block. The caller holds the lock.
func (r *rollup) tip() *block { return r.blocks[len(r.blocks)-1] }
