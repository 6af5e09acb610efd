package evm

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/eth/gasestimator"
	"github.com/ethereum/go-ethereum/params"

	"github.com/jamq/jamq/statedb"
)

// Call runs a message as if it were in the block of the given header, and leaves no trace in the view but reads. Nonce and kind of
// the sender are not checked; a gas price of zero is allowed. The result holds gas used, return data, and the error of an
// execution that failed. Otherwise the error wraps one of go-ethereum's, ErrState, or ctx's error if that ended first.
func Call(ctx context.Context, view *statedb.View, config *params.ChainConfig, header *types.Header, hashes BlockHashes, msg *core.Message) (*core.ExecutionResult, error) {
	sdb, reads, err := openState(view)
	if err != nil {
		return nil, err
	}
	block := blockContext(header, hashes)
	if msg.GasPrice.IsZero() {
		block.BaseFee.SetInt64(0)
	}
	machine := vm.NewEVM(block, sdb, config, vm.Config{NoBaseFee: true})
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
// fails with any gas, the error says why and the data is what a revert returned.
func Estimate(ctx context.Context, view *statedb.View, config *params.ChainConfig, header *types.Header, hashes BlockHashes, msg *core.Message, gasCap uint64) (gas uint64, revert []byte, err error) {
	sdb, _, err := openState(view)
	if err != nil {
		return 0, nil, err
	}
	return gasestimator.Estimate(ctx, msg.SkipNonceCheck().SkipEOACheck(), &gasestimator.Options{
		Config: config,
		Chain:  &ancestors{config: config, hashes: hashes},
		Header: types.CopyHeader(header), // with a difficulty, which it wants
		State:  sdb,
		// There are no blobs, but the instruction BLOBBASEFEE exists.
		BlobBaseFee: big.NewInt(params.BlobTxMinBlobGasprice),
		ErrorRatio:  estimateSlack,
	}, gasCap)
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
