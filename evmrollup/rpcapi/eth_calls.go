package rpcapi

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/tracers/logger"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/statedb/evm"
)

// ethCalls implements the eth methods that execute a message without changing the
// state, for example eth_call.
type ethCalls struct {
	*api
	fees *ethFees
}

// call is a message together with the block and the state on which it runs. ctx limits
// the duration of the call, and the caller must call end afterwards.
type call struct {
	ctx     context.Context
	end     context.CancelFunc
	block   *node.Block
	view    *statedb.View
	changes evm.Overrides
	message *core.Message
}

// prepare makes a call from a client's arguments.
func (a *ethCalls) prepare(ctx context.Context, method string, args *callArgs, at *rpc.BlockNumberOrHash, state *stateOverride, block *blockOverrides, gasCap uint64) (*call, error) {
	if err := args.checkBlobPrice(); err != nil {
		return nil, err
	}
	if err := a.limits.call(ctx, method, 0); err != nil {
		return nil, err
	}
	b, err := a.resolve(latestIfNil(at))
	if err != nil {
		return nil, err
	}
	c := &call{block: b}
	if c.view, err = a.node.StateAt(b); err != nil {
		return nil, err
	}
	if c.changes.Block, err = block.changes(); err != nil {
		return nil, err
	}
	c.changes.Accounts = state.changes()
	// If the client overrides the base fee, the prices of the message must use the overridden
	// value.
	baseFee := b.BaseFee()
	if changed := c.changes.Block.BaseFee; changed != nil {
		baseFee = changed
	}
	if c.message, err = args.message(baseFee, a.node.ChainConfig().ChainID, gasCap); err != nil {
		return nil, err
	}
	c.ctx, c.end = a.withTimeout(ctx)
	return c, nil
}

// withTimeout returns a context that ends after Config.CallTime, with geth's error as
// its cause.
func (a *api) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, a.cfg.CallTime, fmt.Errorf("execution aborted (timeout = %v)", a.cfg.CallTime))
}

// Call implements eth_call. It accepts geth's overrides of the state and of the block.
func (a *ethCalls) Call(ctx context.Context, args callArgs, at *rpc.BlockNumberOrHash, state *stateOverride, block *blockOverrides) (_ hexutil.Bytes, err error) {
	defer ledger.Recover(&err)
	c, err := a.prepare(ctx, "eth_call", &args, at, state, block, a.cfg.GasCap)
	if err != nil {
		return nil, err
	}
	defer c.end()
	result, err := a.node.Call(c.ctx, c.block, c.view, c.message, c.changes, nil)
	switch {
	case err == nil:
	case c.ctx.Err() == nil && !errors.Is(err, evm.ErrState) && !errors.Is(err, evm.ErrOverride):
		return nil, fmt.Errorf("err: %w (supplied gas %d)", err, c.message.GasLimit)
	default:
		return nil, withoutOverride(err)
	}
	if errors.Is(result.Err, vm.ErrExecutionReverted) {
		return nil, a.reverted(result.Revert())
	}
	return result.Return(), result.Err
}

// EstimateGas implements eth_estimateGas. As in geth, the message runs in the context
// of the requested block. In developer mode, a message on the newest block runs in the
// context of the next block instead.
func (a *ethCalls) EstimateGas(ctx context.Context, args callArgs, at *rpc.BlockNumberOrHash, state *stateOverride, block *blockOverrides) (_ hexutil.Uint64, err error) {
	defer ledger.Recover(&err)
	c, err := a.prepare(ctx, "eth_estimateGas", &args, at, state, block, 0)
	if err != nil {
		return 0, err
	}
	defer c.end()
	if a.cfg.Dev && c.block.NumberU64() >= a.node.Resolve(rpc.LatestBlockNumber).NumberU64() {
		c.runInNextBlock(a.node.NextTime())
	}
	gas, revert, err := a.node.EstimateGas(c.ctx, c.block, c.view, c.message, c.changes, a.cfg.GasCap)
	if errors.Is(err, vm.ErrExecutionReverted) {
		return 0, a.reverted(revert)
	}
	return hexutil.Uint64(gas), withoutOverride(err)
}

// runInNextBlock makes a message run in the context of the next block.
func (c *call) runInNextBlock(next uint64) {
	// Give the block the number and the time of the next block, unless the caller has
	// overridden them. Some contracts need more gas in another block, and developers who are
	// used to Hardhat and Anvil expect that an estimate includes this gas.
	if c.changes.Block.Number == nil {
		c.changes.Block.Number = new(big.Int).Add(c.block.Number(), common.Big1)
	}
	if c.changes.Block.Time == nil {
		next = max(next, c.block.Time()+1)
		c.changes.Block.Time = &next
	}
}

// accessListResult is the answer of eth_createAccessList. If the call reverts or fails
// although it has the access list, Error contains the reason, and the other fields are set
// nevertheless.
type accessListResult struct {
	AccessList types.AccessList `json:"accessList"`
	Error      string           `json:"error,omitempty"`
	GasUsed    hexutil.Uint64   `json:"gasUsed"`
}

// CreateAccessList implements eth_createAccessList. It returns the addresses and slots
// that a call touches, and the gas that the call uses with this list. The list omits
// the sender, the receiver and the precompiled contracts. Because the list can change
// the result of the call, the call is repeated until the list no longer changes.
//
// If the arguments set some of the gas prices, CreateAccessList fills in the others
// like eth_fillTransaction.
func (a *ethCalls) CreateAccessList(ctx context.Context, args callArgs, at *rpc.BlockNumberOrHash, state *stateOverride) (_ *accessListResult, err error) {
	defer ledger.Recover(&err)
	if args.GasPrice != nil || args.MaxFeePerGas != nil || args.MaxPriorityFeePerGas != nil {
		if err := a.fees.fill(ctx, &args); err != nil {
			return nil, err
		}
	}
	c, err := a.prepare(ctx, "eth_createAccessList", &args, at, state, nil, a.cfg.GasCap)
	if err != nil {
		return nil, err
	}
	defer c.end()
	if args.Nonce == nil {
		nonce := hexutil.Uint64(c.nonce())
		args.Nonce = &nonce
	}
	known := a.implicitAddresses(c, uint64(*args.Nonce))
	before := logger.NewAccessListTracer(c.message.AccessList, known)
	for {
		list := before.AccessList()
		c.message.AccessList = list
		watch := logger.NewAccessListTracer(list, known)
		result, err := a.node.Call(c.ctx, c.block, c.view, c.message, c.changes, watch.Hooks())
		if err != nil {
			return nil, a.notApplied(c, args, list, err)
		}
		if watch.Equal(before) {
			answer := &accessListResult{AccessList: list, GasUsed: hexutil.Uint64(result.UsedGas)}
			if result.Err != nil {
				answer.Error = result.Err.Error()
			}
			return answer, nil
		}
		before = watch
	}
}

// nonce returns the nonce of the sender, with the overrides applied.
func (c *call) nonce() uint64 {
	if account := c.changes.Accounts[c.message.From]; account.Nonce != nil {
		return *account.Nonce
	}
	return c.view.Account(c.message.From).Nonce
}

// notApplied returns geth's error for a call that fails as a transaction.
func (a *ethCalls) notApplied(c *call, args callArgs, list types.AccessList, err error) error {
	if c.ctx.Err() != nil || errors.Is(err, evm.ErrState) || errors.Is(err, evm.ErrOverride) {
		return withoutOverride(err)
	}
	args.AccessList, args.Gas = &list, (*hexutil.Uint64)(&c.message.GasLimit)
	// The error contains the hash that the transaction would have with this access
	// list.
	tx := types.NewTx(args.transaction(a.node.ChainConfig().ChainID))
	return fmt.Errorf("failed to apply transaction: %v err: %w", tx.Hash(), err)
}

// implicitAddresses returns the addresses that need no entry in an access list.
func (a *ethCalls) implicitAddresses(c *call, nonce uint64) map[common.Address]struct{} {
	// Access to these addresses is cheap even without an entry.
	m, config := c.message, a.node.ChainConfig()
	known := map[common.Address]struct{}{m.From: {}}
	if m.To != nil {
		known[*m.To] = struct{}{}
	} else {
		known[crypto.CreateAddress(m.From, nonce)] = struct{}{}
	}
	for contract := range a.node.Precompiles(c.block.Number(), c.block.Time()) {
		known[contract] = struct{}{}
	}
	for _, authorization := range m.SetCodeAuthorizations {
		if authority, err := authorization.Authority(); err == nil && (authorization.ChainID.IsZero() || authorization.ChainID.CmpBig(config.ChainID) == 0) {
			known[authority] = struct{}{}
		}
	}
	return known
}
