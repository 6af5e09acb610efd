package evmrollup

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/vm"
)

// Prestate returns the state and the block context before the transaction with the
// given index, for tracers. If index is the number of transactions, Prestate returns
// the state after the last one.
func (c *Chain) Prestate(b *Block, index int) (*state.StateDB, vm.BlockContext, error) {
	if b.NumberU64() == 0 || index < 0 || index > len(b.Transactions()) {
		return nil, vm.BlockContext{}, fmt.Errorf("evmrollup: no transaction %d in block %d of %d", index, b.NumberU64(), len(b.Transactions()))
	}
	parent := c.BlockByHash(b.ParentHash())
	if parent == nil {
		return nil, vm.BlockContext{}, fmt.Errorf("evmrollup: block %d is being undone", b.NumberU64())
	}
	view, err := c.viewWith(parent, c.edits.in(b.Hash()))
	if err != nil {
		return nil, vm.BlockContext{}, err
	}
	run, err := c.newBlock(view, b.Header(), parent)
	if err != nil {
		return nil, vm.BlockContext{}, err
	}
	for _, tx := range b.Transactions()[:index] {
		if _, err := run.Apply(tx); err != nil {
			return nil, vm.BlockContext{}, err
		}
	}
	return run.Prestate()
}

// Poststate returns the state after a block, for traced calls.
func (c *Chain) Poststate(b *Block) (*state.StateDB, error) {
	view, err := c.StateAt(b)
	if err != nil {
		return nil, err
	}
	run, err := c.newBlock(view, b.Header(), b)
	if err != nil {
		return nil, err
	}
	sdb, _, err := run.Prestate()
	return sdb, err
}
