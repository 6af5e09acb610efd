package evm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/eth/gasestimator"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/statedb"
)

// Call runs a message, such as that of eth_call, as if it were a transaction in the
// block with the given header. The view logs the reads, and nothing is written.
// Call checks neither the sender's nonce nor whether the sender is a contract.
// Amounts that are nil count as zero, and a gas price of zero is allowed. The
// result contains the used gas, the return data, and the error of a failed
// execution. If the message cannot run, the error wraps one of go-ethereum's
// errors, ErrHeader, ErrFork or ErrState, or ctx's error if ctx ended first.
func Call(ctx context.Context, view *statedb.View, config *params.ChainConfig, header *types.Header, hashes BlockHashes, msg *core.Message) (*core.ExecutionResult, error) {
	return CallWith(ctx, view, config, header, hashes, msg, Overrides{}, nil)
}

// CallWith is [Call] with overrides of the state and with a go-ethereum tracer,
// which may be nil. Only the tracer's hooks for opcodes, calls, faults and logs are
// called. The error may also wrap ErrOverride.
func CallWith(ctx context.Context, view *statedb.View, config *params.ChainConfig, header *types.Header, hashes BlockHashes, msg *core.Message, changes Overrides, tracer *tracing.Hooks) (*core.ExecutionResult, error) {
	if err := checkHeader(config, header); err != nil {
		return nil, err
	}
	reads := newAdapter(view)
	sdb, err := reads.open()
	if err != nil {
		return nil, err
	}
	msg = complete(msg)
	block := blockContext(changes.Block.header(header))
	block.BlobBaseFee = changes.Block.blobBaseFee()
	block.GetHash = vm.GetHashFunc(reads.hashes(hashes, header))
	contracts := Precompiles(config.Rules(block.BlockNumber, block.Random != nil, block.Time), changes.Precompiles)
	if err := changes.Apply(sdb, contracts); err != nil {
		return nil, err
	}
	if msg.GasPrice.IsZero() && block.BaseFee != nil {
		block.BaseFee.SetInt64(0)
	}
	machine := vm.NewEVM(block, sdb, config, vm.Config{NoBaseFee: true, Tracer: tracer})
	defer machine.Release()
	machine.SetPrecompiles(contracts)
	stop := context.AfterFunc(ctx, machine.Cancel)
	defer stop()
	result, err := core.ApplyMessage(machine, msg.SkipNonceCheck().SkipEOACheck().SkipGasLimitCapCheck(), core.NewGasPool(msg.GasLimit))
	if stateErr := reads.failed(sdb); stateErr != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, stateErr)
	}
	if machine.Cancelled() {
		return nil, fmt.Errorf("evm: call stopped: %w", context.Cause(ctx))
	}
	return result, err
}

// estimateSlack is by which fraction an estimate may exceed the smallest gas limit
// that is enough. It is geth's value.
const estimateSlack = 0.015

// Estimate returns a gas limit with which a message succeeds, as eth_estimateGas
// needs it. It uses go-ethereum's estimator. The result is at most gasCap, or the
// header's gas limit if gasCap is 0. If the message fails with any gas limit, the
// error is the reason, and revert is the data of the revert. Otherwise the error
// wraps ErrHeader or ErrFork, ErrState if the view lacks a value that the message
// reads, or ctx's error if ctx ended first.
func Estimate(ctx context.Context, view *statedb.View, config *params.ChainConfig, header *types.Header, hashes BlockHashes, msg *core.Message, gasCap uint64) (gas uint64, revert []byte, err error) {
	return EstimateWith(ctx, view, config, header, hashes, msg, gasCap, Overrides{})
}

// EstimateWith is [Estimate] with overrides of the state. As in geth, the estimator
// ignores an override that moves a precompiled contract. The error may also wrap
// ErrOverride.
func EstimateWith(ctx context.Context, view *statedb.View, config *params.ChainConfig, header *types.Header, hashes BlockHashes, msg *core.Message, gasCap uint64, changes Overrides) (gas uint64, revert []byte, err error) {
	if err := checkHeader(config, header); err != nil {
		return 0, nil, err
	}
	if len(changes.Precompiles) > 0 {
		return search(ctx, view, config, header, hashes, msg, gasCap, changes)
	}
	reads := newAdapter(view)
	sdb, err := reads.open()
	if err != nil {
		return 0, nil, err
	}
	changed := changes.Block.header(header) // sets the difficulty if nil
	contracts := vm.ActivePrecompiledContracts(config.Rules(changed.Number, true, changed.Time))
	if err := changes.Apply(sdb, contracts); err != nil {
		return 0, nil, err
	}
	gas, revert, err = gasestimator.Estimate(ctx, complete(msg).SkipNonceCheck().SkipEOACheck(), &gasestimator.Options{
		Config: config,
		Chain:  &ancestors{config: config, hashes: reads.hashes(hashes, header)},
		Header: changed, State: sdb, BlobBaseFee: changes.Block.blobBaseFee(), ErrorRatio: estimateSlack,
	}, gasCap)
	if stateErr := reads.failed(sdb); stateErr != nil {
		return 0, nil, fmt.Errorf("%w: %w", ErrState, stateErr)
	}
	// The estimator mistakes a cancelled execution for a successful one.
	if ctx.Err() != nil {
		return 0, nil, fmt.Errorf("evm: estimate stopped: %w", context.Cause(ctx))
	}
	return gas, revert, err
}

// search estimates the gas of a message on a chain with added precompiled
// contracts.
func search(ctx context.Context, view *statedb.View, config *params.ChainConfig, header *types.Header, hashes BlockHashes, msg *core.Message, gasCap uint64, changes Overrides) (gas uint64, revert []byte, err error) {
	// go-ethereum's estimator does not know the added contracts.
	try := func(gas uint64) (*core.ExecutionResult, error) {
		m := *msg
		m.GasLimit = gas
		return CallWith(ctx, view, config, header, hashes, &m, changes, nil)
	}
	high := changes.Block.header(header).GasLimit
	if msg.GasLimit >= params.TxGas {
		high = msg.GasLimit
	}
	if gasCap != 0 {
		high = min(high, gasCap)
	}
	high = min(high, affordable(view, msg, changes.Accounts[msg.From].Balance))
	most, err := try(high)
	switch {
	case err != nil:
		return 0, nil, err
	case errors.Is(most.Err, vm.ErrOutOfGas):
		return 0, nil, fmt.Errorf("gas required exceeds allowance (%d)", high)
	case most.Failed():
		return 0, most.Revert(), most.Err
	}
	low := most.UsedGas - 1 // less than was used is too little, even after refunds
	// Search by bisection between low, the greatest gas limit that was too small,
	// and high, the smallest one that was enough.
	for next := (most.MaxUsedGas + params.CallStipend) * 64 / 63; low+1 < high && float64(high-low) > estimateSlack*float64(high); next = (low + high) / 2 {
		next = max(low+1, min(next, high-1, 2*low))
		result, err := try(next)
		switch {
		case err != nil && !errors.Is(err, core.ErrIntrinsicGas) && !errors.Is(err, core.ErrFloorDataGas):
			return 0, nil, err
		case err != nil || result.Failed():
			low = next
		default:
			high = next
		}
	}
	return high, nil, nil
}

// affordable returns the most gas that the sender of a message can pay for.
func affordable(view *statedb.View, msg *core.Message, balance *uint256.Int) uint64 {
	m := complete(msg)
	price := m.GasFeeCap
	if price.IsZero() {
		price = m.GasPrice
	}
	// An override replaces the sender's balance in the view.
	if balance == nil {
		balance = view.Account(m.From).Balance
	}
	if price.IsZero() || balance.Lt(m.Value) {
		return math.MaxUint64
	}
	left := new(uint256.Int).Sub(balance, m.Value)
	gas, overflow := left.Div(left, price).Uint64WithOverflow()
	if overflow {
		return math.MaxUint64
	}
	return gas
}

// complete returns a copy of the message with zero in place of nil amounts.
func complete(msg *core.Message) *core.Message {
	m := *msg
	for _, amount := range []**uint256.Int{&m.Value, &m.GasPrice, &m.GasFeeCap, &m.GasTipCap} {
		if *amount == nil {
			*amount = new(uint256.Int)
		}
	}
	// Before Cancun, a blob price without blob hashes is refused.
	if m.BlobHashes != nil && m.BlobGasFeeCap == nil {
		m.BlobGasFeeCap = new(uint256.Int)
	}
	return &m
}

// hashes returns the function that provides the results of BLOCKHASH in a call.
func (a *adapter) hashes(given BlockHashes, header *types.Header) BlockHashes {
	if given != nil {
		return given
	}
	// Without a function of the host, block hashes come from the state.
	kept := history(func(addr common.Address, slot common.Hash) common.Hash {
		value, _ := a.Storage(addr, slot) // the view keeps the error
		return value
	})
	number, parent := header.Number.Uint64(), header.ParentHash
	return func(n uint64) common.Hash {
		// The history contract gets the parent's hash only when this block begins. Until then
		// its slot may have an old hash, so take the hash from the header.
		if n+1 == number && parent != (common.Hash{}) {
			return parent
		}
		return kept(n)
	}
}

// ancestors is the chain that go-ethereum's estimator reads. It implements only the methods that
// the estimator calls.
type ancestors struct {
	consensus.ChainHeaderReader
	config *params.ChainConfig
	hashes BlockHashes
}

func (a *ancestors) Config() *params.ChainConfig { return a.config }
func (a *ancestors) Engine() consensus.Engine    { return coinbase{} }

// GetHeader returns a header with only the number and the parent's hash, because
// the instruction BLOCKHASH uses nothing else.
func (a *ancestors) GetHeader(_ common.Hash, number uint64) *types.Header {
	if number == 0 {
		return nil
	}
	return &types.Header{Number: new(big.Int).SetUint64(number), ParentHash: a.hashes(number - 1)}
}

// coinbase is a consensus engine that returns the header's coinbase as the author of a block.
type coinbase struct{ consensus.Engine }

func (coinbase) Author(header *types.Header) (common.Address, error) { return header.Coinbase, nil }
