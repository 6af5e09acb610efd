package evm

import (
	"context"
	"fmt"
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

// Call runs a message as if it were in the block of the given header, and leaves no trace in the view but reads. Nonce and kind of
// the sender are not checked; amounts that are nil are zero, and a gas price of zero is allowed. The result holds gas used, return data, and the error of an
// execution that failed. Otherwise the error wraps one of go-ethereum's, ErrHeader, ErrFork, ErrState, or ctx's error if that ended first.
func Call(ctx context.Context, view *statedb.View, config *params.ChainConfig, header *types.Header, hashes BlockHashes, msg *core.Message) (*core.ExecutionResult, error) {
	return CallTraced(ctx, view, config, header, hashes, msg, nil)
}

// CallTraced is [Call] with one of go-ethereum's tracers watching. Only its hooks for opcodes, calls, faults and logs are called.
func CallTraced(ctx context.Context, view *statedb.View, config *params.ChainConfig, header *types.Header, hashes BlockHashes, msg *core.Message, tracer *tracing.Hooks) (*core.ExecutionResult, error) {
	if err := checkHeader(config, header); err != nil {
		return nil, err
	}
	reads := newAdapter(view)
	sdb, err := reads.open()
	if err != nil {
		return nil, err
	}
	msg = complete(msg)
	block := blockContext(header)
	block.GetHash = vm.GetHashFunc(reads.hashes(hashes, header))
	if msg.GasPrice.IsZero() && block.BaseFee != nil {
		block.BaseFee.SetInt64(0)
	}
	machine := vm.NewEVM(block, sdb, config, vm.Config{NoBaseFee: true, Tracer: tracer})
	defer machine.Release()
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

// estimateSlack is how far above the least gas an estimate may be, as a share: geth's value.
const estimateSlack = 0.015

// Estimate returns the gas that a message needs to succeed, at most gasCap (0: the header's gas limit), by go-ethereum's estimator. If it
// fails with any gas, the error says why and the data is what a revert returned. It wraps ErrHeader or ErrFork; ErrState where the view lacks what the message
// reads; or ctx's error if that ended first.
func Estimate(ctx context.Context, view *statedb.View, config *params.ChainConfig, header *types.Header, hashes BlockHashes, msg *core.Message, gasCap uint64) (gas uint64, revert []byte, err error) {
	if err := checkHeader(config, header); err != nil {
		return 0, nil, err
	}
	reads := newAdapter(view)
	sdb, err := reads.open()
	if err != nil {
		return 0, nil, err
	}
	gas, revert, err = gasestimator.Estimate(ctx, complete(msg).SkipNonceCheck().SkipEOACheck(), &gasestimator.Options{
		Config: config,
		Chain:  &ancestors{config: config, hashes: reads.hashes(hashes, header)},
		Header: types.CopyHeader(header), // with a difficulty, which it wants
		State:  sdb,
		// There are no blobs, but the instruction BLOBBASEFEE exists.
		BlobBaseFee: big.NewInt(params.BlobTxMinBlobGasprice),
		ErrorRatio:  estimateSlack,
	}, gasCap)
	if stateErr := reads.failed(sdb); stateErr != nil {
		return 0, nil, fmt.Errorf("%w: %w", ErrState, stateErr)
	}
	if ctx.Err() != nil { // the estimator takes an execution that was stopped for one that succeeded
		return 0, nil, fmt.Errorf("evm: estimate stopped: %w", context.Cause(ctx))
	}
	return gas, revert, err
}

// complete returns the message with zero for the amounts that it lacks.
func complete(msg *core.Message) *core.Message {
	m := *msg
	for _, amount := range []**uint256.Int{&m.Value, &m.GasPrice, &m.GasFeeCap, &m.GasTipCap} {
		if *amount == nil {
			*amount = new(uint256.Int)
		}
	}
	if m.BlobHashes != nil && m.BlobGasFeeCap == nil { // without hashes a price is refused before Cancun
		m.BlobGasFeeCap = new(uint256.Int)
	}
	return &m
}

// hashes are those of a call. The state has the parent's only after the header's block began, and in its place perhaps an old one.
func (a *adapter) hashes(given BlockHashes, header *types.Header) BlockHashes {
	if given != nil {
		return given
	}
	kept := history(func(addr common.Address, slot common.Hash) common.Hash {
		value, _ := a.Storage(addr, slot) // an error stays in the view
		return value
	})
	number, parent := header.Number.Uint64(), header.ParentHash
	return func(n uint64) common.Hash {
		if n+1 == number && parent != (common.Hash{}) {
			return parent
		}
		return kept(n)
	}
}

// ancestors is what go-ethereum's estimator asks of a chain. The interfaces are wider than what is ever called.
type ancestors struct {
	consensus.ChainHeaderReader
	config *params.ChainConfig
	hashes BlockHashes
}

func (a *ancestors) Config() *params.ChainConfig { return a.config }
func (a *ancestors) Engine() consensus.Engine    { return coinbase{} }

// GetHeader gives a header that knows nothing but its number and its parent's hash, which is all that BLOCKHASH follows.
func (a *ancestors) GetHeader(_ common.Hash, number uint64) *types.Header {
	if number == 0 {
		return nil
	}
	return &types.Header{Number: new(big.Int).SetUint64(number), ParentHash: a.hashes(number - 1)}
}

// coinbase says that the header's coinbase is its author.
type coinbase struct{ consensus.Engine }

func (coinbase) Author(header *types.Header) (common.Address, error) { return header.Coinbase, nil }
