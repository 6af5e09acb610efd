package evm

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"

	"github.com/jamq/jamq/statedb"
)

var (
	// ErrBlob: blob transactions do not run here.
	ErrBlob = errors.New("evm: blob transactions are not supported")
	// ErrState: the view could not be read or written. The block is unusable.
	ErrState = errors.New("evm: state failed")
	// ErrFinished: the block was finished before.
	ErrFinished = errors.New("evm: block is finished")
)

// BlockHashes returns the hash of an ancestor block, for the BLOCKHASH instruction; zero for one that does not exist. It is asked
// for the last 256 only.
type BlockHashes func(number uint64) common.Hash

// Block executes transactions one after another. It belongs to one goroutine.
type Block struct {
	config   *params.ChainConfig
	header   *types.Header
	signer   types.Signer
	state    *state.StateDB
	writes   *adapter
	context  vm.BlockContext
	machine  vm.Config // tests watch it
	gas      *core.GasPool
	receipts types.Receipts
	logs     uint
	broken   error
}

// NewBlock begins a block on a view, under the rules that the config has for it: a chain of [ChainConfig], or an older one, where a block with a
// difficulty is one of before the merge. Of the header it reads number, time, coinbase, gas limit, base fee, difficulty, mix digest and
// parent hash. The view must not be used until Finish.
func NewBlock(view *statedb.View, config *params.ChainConfig, header *types.Header, hashes BlockHashes) (*Block, error) {
	sdb, writes, err := openState(view)
	if err != nil {
		return nil, err
	}
	return &Block{
		config:  config,
		header:  header,
		signer:  types.MakeSigner(config, header.Number, header.Time),
		state:   sdb,
		writes:  writes,
		context: blockContext(header, hashes),
		gas:     core.NewGasPool(header.GasLimit),
	}, nil
}

// blockContext is what the EVM knows of a block. A difficulty says that it was mined: then there is no random number and the rules are those of
// before the merge.
func blockContext(header *types.Header, hashes BlockHashes) vm.BlockContext {
	c := vm.BlockContext{
		CanTransfer: core.CanTransfer,
		Transfer:    core.Transfer,
		GetHash:     vm.GetHashFunc(hashes),
		Coinbase:    header.Coinbase,
		BlockNumber: new(big.Int).Set(header.Number),
		Time:        header.Time,
		Difficulty:  new(big.Int),
		BlobBaseFee: big.NewInt(params.BlobTxMinBlobGasprice),
		GasLimit:    header.GasLimit,
	}
	if header.BaseFee != nil { // London
		c.BaseFee = new(big.Int).Set(header.BaseFee)
	}
	if header.Difficulty != nil && header.Difficulty.Sign() > 0 {
		c.Difficulty.Set(header.Difficulty)
	} else {
		random := header.MixDigest
		c.Random = &random
	}
	return c
}

// Apply executes a transaction. Its receipt lacks only the block's hash, which is not known before the block is sealed.
//
// If the transaction cannot be in the block at this place, the error wraps ErrBlob or one of go-ethereum's (core.ErrNonceTooLow,
// core.ErrInsufficientFunds, core.ErrGasLimitReached, …) and the state is as before. A transaction that runs and fails is no
// error: its receipt says so. After an error that wraps ErrState the block must be thrown away.
func (b *Block) Apply(tx *types.Transaction) (*types.Receipt, error) {
	if b.broken != nil {
		return nil, b.broken
	}
	if tx.Type() == types.BlobTxType {
		return nil, fmt.Errorf("%w: %s", ErrBlob, tx.Hash())
	}
	msg, err := core.TransactionToMessage(tx, b.signer, b.header.BaseFee)
	if err != nil {
		return nil, fmt.Errorf("evm: transaction %s: %w", tx.Hash(), err)
	}
	machine := vm.NewEVM(b.context, b.state, b.config, b.machine)
	defer machine.Release()
	b.writes.begin(len(b.receipts))
	b.state.SetTxContext(tx.Hash(), len(b.receipts), uint32(len(b.receipts)+1))
	snapshot, gas := b.state.Snapshot(), b.gas.Snapshot()
	receipt, _, err := core.ApplyTransactionWithEVM(context.Background(), msg, b.gas, b.state, b.header.Number, common.Hash{}, b.header.Time, tx, machine)
	if stateErr := b.writes.failed(b.state); stateErr != nil {
		b.broken = fmt.Errorf("%w: transaction %s: %w", ErrState, tx.Hash(), stateErr)
		return nil, b.broken
	}
	if err != nil {
		b.state.RevertToSnapshot(snapshot)
		b.gas.Set(gas)
		return nil, fmt.Errorf("evm: transaction %s: %w", tx.Hash(), err)
	}
	receipt.EffectiveGasPrice = msg.GasPrice.ToBig()
	for _, l := range receipt.Logs {
		l.Index = b.logs
		b.logs++
	}
	b.receipts = append(b.receipts, receipt)
	return receipt, nil
}

// Receipts returns the receipts of the transactions applied so far.
func (b *Block) Receipts() types.Receipts { return b.receipts }

// GasUsed returns the gas that they used.
func (b *Block) GasUsed() uint64 {
	if n := len(b.receipts); n > 0 {
		return b.receipts[n-1].CumulativeGasUsed
	}
	return 0
}

// Finish stages everything in the view. It is the block's last call. The error wraps ErrState, where a balance does not fit for
// example, or ErrFinished; after it the view must be thrown away.
func (b *Block) Finish() error {
	if b.broken != nil {
		return b.broken
	}
	b.broken = ErrFinished
	b.state.IntermediateRoot(b.config.Rules(b.header.Number, b.context.Random != nil, b.header.Time))
	if err := b.writes.failed(b.state); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	return nil
}
