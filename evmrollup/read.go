package evmrollup

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/statedb/evm"
)

// ChainConfig returns the chain configuration.
func (c *Chain) ChainConfig() *params.ChainConfig { return c.config }

// Head returns the newest executed block.
func (c *Chain) Head() *Block { return c.ledger.Head() }

// Stored returns the number of the last block in Config.Ledger, or 0 if the ledger is
// empty. All blocks in the ledger are final.
func (c *Chain) Stored() uint64 { return c.ledger.Final() }

// BlockByNumber returns the executed block with the given number, or nil. If an edit
// has restored a state from before the block, the result contains only the block's
// header.
func (c *Chain) BlockByNumber(number uint64) *Block { return c.Present(c.ledger.ByNumber(number)) }

// BlockByHash returns the executed block with a hash, in the same form as
// BlockByNumber.
func (c *Chain) BlockByHash(hash common.Hash) *Block { return c.Present(c.ledger.ByHash(hash)) }

// Present returns a block as readers must see it. If an edit has restored a state from
// before the block, only the block's header remains. All readers use Present, so that
// their answers agree.
func (c *Chain) Present(b *Block) *Block {
	if b == nil || !c.edits.took(b.NumberU64()) {
		return b
	}
	return &Block{Block: types.NewBlockWithHeader(b.Header())}
}

// Transaction returns the executed block that contains a transaction, and the
// transaction's index in that block. It returns false if there is no such block.
func (c *Chain) Transaction(hash common.Hash) (*Block, int, bool) {
	b, index := c.executed(hash)
	return b, index, b != nil
}

// FinalProgress returns the progress of a final block on JAM. It returns false if the
// database does not have the block.
func (c *Chain) FinalProgress(number uint64) (builder.Progress, bool) {
	return c.ledger.Progress(number)
}

// Logs returns the numbers of the blocks that may have a log that matches a query. The
// caller must check the logs of each block. See ledger.Ledger.Logs for the arguments.
func (c *Chain) Logs(from, to uint64, addresses []common.Address, topics [][]common.Hash) iter.Seq[uint64] {
	return c.ledger.Logs(from, to, addresses, topics)
}

// LogsOf returns the logs of the executed block with the given number, or false if
// there is no such block.
func (c *Chain) LogsOf(number uint64) ([]*types.Log, bool) {
	if c.edits.took(number) {
		return nil, true
	}
	return c.ledger.LogsOf(number)
}

// ReplacedBlocks returns how many executed blocks have been undone so far. When this
// number changes, a cache of blocks by number is out of date.
func (c *Chain) ReplacedBlocks() uint64 { return c.replaced.Load() }

// CanonicalRoot returns the state root of the last final block.
func (c *Chain) CanonicalRoot() common.Hash { return c.states.Canonical() }

// OldestBlock returns the number of the oldest block after the genesis whose body the
// chain still has. Of older blocks, it has only the headers and the progress.
func (c *Chain) OldestBlock() uint64 { return c.ledger.Oldest() }

// Damage returns the first error that a method has found on the disk, or nil. That
// method has panicked with this error, because any other answer would have been wrong.
func (c *Chain) Damage() error { return c.ledger.Damage() }

// States returns the number of states in memory.
func (c *Chain) States() int { return c.states.Roots() }

// NextBaseFee returns the base fee of the next block, in wei per gas.
func (c *Chain) NextBaseFee() *big.Int { return c.nextHeader(c.ledger.Head()).BaseFee }

// NextTime returns the Unix time, in seconds, that a block would get if it were made
// now.
func (c *Chain) NextTime() uint64 { return c.nextHeader(c.ledger.Head()).Time }

// StateAt returns a view of the state after a block. The state of block 0 is always
// available. Of the other blocks, only recent ones have a state: see
// Config.RetainStates.
func (c *Chain) StateAt(b *Block) (*statedb.View, error) {
	view, err := c.states.View(b.Root())
	if errors.Is(err, statedb.ErrUnknownRoot) && b.NumberU64() == 0 {
		view, err = c.genesis.View(b.Root())
	}
	if err != nil {
		return nil, fmt.Errorf("historical state of block %d is not available: %w", b.NumberU64(), err)
	}
	return view, nil
}

// Call executes a message on a view of the state after block b. The view may already
// contain changes of the caller. tracer may be nil.
func (c *Chain) Call(ctx context.Context, b *Block, view *statedb.View, msg *core.Message, o evm.Overrides, tracer *tracing.Hooks) (*core.ExecutionResult, error) {
	o.Precompiles = c.cfg.Rules.Precompiles
	return evm.CallWith(ctx, view, c.config, b.Header(), c.blockHashes(b), msg, o, tracer)
}

// EstimateGas returns the gas limit that a message needs on a view of the state after a
// block. The result is at most gasCap, and at most the gas limit of a transaction. If
// the message fails with every gas limit, EstimateGas returns the error and the revert
// data.
func (c *Chain) EstimateGas(ctx context.Context, b *Block, view *statedb.View, msg *core.Message, o evm.Overrides, gasCap uint64) (uint64, []byte, error) {
	o.Precompiles = c.cfg.Rules.Precompiles
	estimate := func(gasCap uint64) (uint64, []byte, error) {
		return evm.EstimateWith(ctx, view, c.config, b.Header(), c.blockHashes(b), msg, gasCap, o)
	}
	gas, revert, err := estimate(gasCap)
	if most := uint64(c.limits.TxGas); err == nil && gas > most {
		return estimate(most) // which is less generous, or fails
	}
	return gas, revert, err
}
