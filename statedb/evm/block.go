package evm

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"

	"github.com/jamq/jamq/statedb"
)

var (
	// ErrHeader: a header lacks what its rules need.
	ErrHeader = errors.New("evm: bad header")
	// ErrFork: a config has a fork active that does not run here: Amsterdam, which counts the gas of a block in another way and wants block access
	// lists, or go-ethereum's UBT, which prices accesses by the tree (EIP-4762). Which tree holds the state is no part of a config here.
	ErrFork = errors.New("evm: fork does not run here")
	// ErrBlob: blob transactions do not run here.
	ErrBlob = errors.New("evm: blob transactions are not supported")
	// ErrState: the view could not be read or written. The block is unusable.
	ErrState = errors.New("evm: state failed")
	// ErrDestroyed: before Cancun an account that destroys itself loses its storage, which a tree of hashed keys cannot find (EIP-6780). What is looked
	// at are the first 64 slots and those that the block reads. An account whose whole storage is elsewhere is destroyed and leaves it behind, to be
	// seen again if a later block creates it anew: a chain that begins with Cancun has no such accounts.
	ErrDestroyed = errors.New("evm: an account with storage was destroyed")
	// ErrFinished: the block was finished before.
	ErrFinished = errors.New("evm: block is finished")
)

// Block executes transactions one after another. It belongs to one goroutine.
type Block struct {
	config    *params.ChainConfig
	rules     params.Rules
	header    *types.Header
	signer    types.Signer
	adapter   *adapter
	state     *state.StateDB
	context   vm.BlockContext
	machine   vm.Config // tests watch it
	gas       *core.GasPool
	receipts  types.Receipts
	logs      uint
	destroyed []common.Address // by the transaction that is running, before Cancun
	broken    error
}

// NewBlock begins a block on a view, under the rules that the config has for it: a chain of [ChainConfig], Osaka's, or an older one, where a block with a
// difficulty is one of before the merge. Of the header it reads number, time, coinbase, gas limit, base fee, difficulty, mix digest and
// parent hash. The view must not be used until Finish. Errors wrap ErrHeader, ErrFork, ErrHistory, or ErrState.
func NewBlock(view *statedb.View, config *params.ChainConfig, header *types.Header, hashes BlockHashes) (*Block, error) {
	if err := checkHeader(config, header); err != nil {
		return nil, err
	}
	header = types.CopyHeader(header)
	b := &Block{
		config:  config,
		header:  header,
		signer:  types.MakeSigner(config, header.Number, header.Time),
		adapter: newAdapter(view),
		context: blockContext(header),
		gas:     core.NewGasPool(header.GasLimit),
	}
	b.rules = config.Rules(header.Number, b.context.Random != nil, header.Time)
	var err error
	if b.state, err = b.adapter.open(); err != nil {
		return nil, err
	}
	if hashes == nil {
		hashes = history(func(addr common.Address, slot common.Hash) common.Hash { return b.state.GetState(addr, slot) })
		if err := b.keepParentHash(); err != nil {
			return nil, err
		}
	}
	b.context.GetHash = vm.GetHashFunc(hashes)
	return b, nil
}

// checkHeader returns an error if the rules of a block need what its header lacks, or do not run here.
func checkHeader(config *params.ChainConfig, header *types.Header) error {
	switch {
	case header.Number == nil || header.Number.Sign() < 0 || !header.Number.IsUint64():
		return fmt.Errorf("%w: number %v, want one of 64 bits", ErrHeader, header.Number)
	case header.BaseFee == nil && config.IsLondon(header.Number):
		return fmt.Errorf("%w: no base fee, want one from London on (EIP-1559)", ErrHeader)
	case header.BaseFee != nil && (header.BaseFee.Sign() < 0 || header.BaseFee.BitLen() > 256):
		return fmt.Errorf("%w: base fee %v, want one of 256 bits", ErrHeader, header.BaseFee)
	}
	switch rules := config.Rules(header.Number, true, header.Time); {
	case rules.IsAmsterdam:
		return fmt.Errorf("%w: Amsterdam at time %d, want Osaka or an older one", ErrFork, header.Time)
	case rules.IsUBT:
		return fmt.Errorf("%w: UBT at time %d, want a config without", ErrFork, header.Time)
	}
	return nil
}

// blockContext is what the EVM knows of a block. A difficulty says that it was mined: then there is no random number and the rules are those of
// before the merge.
func blockContext(header *types.Header) vm.BlockContext {
	c := vm.BlockContext{
		CanTransfer: core.CanTransfer,
		Transfer:    core.Transfer,
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

// Apply executes a transaction. Its receipt lacks only the block's hash, which is not known before the block is sealed, and before Byzantium the root
// of its state, in whose place stands that of an empty Merkle Patricia trie.
//
// If the transaction cannot be in the block at this place, the error wraps ErrBlob or one of go-ethereum's (core.ErrNonceTooLow,
// core.ErrInsufficientFunds, core.ErrGasLimitReached, …), the state is as before, and nothing that it has read is in the witness. A transaction that runs and fails is no
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
	machine := vm.NewEVM(b.context, &machineState{b.state, b.adapter}, b.config, b.watched())
	defer machine.Release()
	mark := b.adapter.begin(len(b.receipts))
	b.state.SetTxContext(tx.Hash(), len(b.receipts), uint32(len(b.receipts)+1))
	snapshot, gas := b.state.Snapshot(), b.gas.Snapshot()
	receipt, _, err := core.ApplyTransactionWithEVM(context.Background(), msg, b.gas, b.state, b.header.Number, common.Hash{}, b.header.Time, tx, machine)
	if stateErr := b.failed(); stateErr != nil {
		b.broken = fmt.Errorf("%w: transaction %s: %w", ErrState, tx.Hash(), stateErr)
		return nil, b.broken
	}
	if err != nil {
		b.state.RevertToSnapshot(snapshot)
		b.gas.Set(gas)
		return nil, errors.Join(fmt.Errorf("evm: transaction %s: %w", tx.Hash(), err), b.forget(mark))
	}
	receipt.EffectiveGasPrice = msg.GasPrice.ToBig()
	for _, l := range receipt.Logs {
		l.Index = b.logs
		b.logs++
	}
	b.receipts = append(b.receipts, receipt)
	return receipt, nil
}

// forget takes what a refused transaction has read out of the log. The StateDB would not ask for it again, so what it has is settled, and a new one
// takes over.
func (b *Block) forget(mark statedb.ReadMark) error {
	if !b.adapter.rewind(mark) {
		return nil
	}
	b.state.IntermediateRoot(b.rules)
	err := b.failed()
	if err == nil {
		b.state, err = b.adapter.open()
	}
	if err != nil {
		b.broken = fmt.Errorf("%w: %w", ErrState, err)
	}
	return b.broken
}

// watched is the machine's configuration. Before Cancun it tells which accounts destroy themselves.
func (b *Block) watched() vm.Config {
	b.destroyed = nil
	if b.rules.IsCancun {
		return b.machine
	}
	machine, hooks := b.machine, tracing.Hooks{}
	if machine.Tracer != nil {
		hooks = *machine.Tracer
	}
	enter := hooks.OnEnter
	hooks.OnEnter = func(depth int, op byte, from, to common.Address, input []byte, gas uint64, value *big.Int) {
		if vm.OpCode(op) == vm.SELFDESTRUCT {
			b.destroyed = append(b.destroyed, from)
		}
		if enter != nil {
			enter(depth, op, from, to, input, gas, value)
		}
	}
	machine.Tracer = &hooks
	return machine
}

// failed returns what went wrong with the state in a transaction.
func (b *Block) failed() error {
	for _, addr := range b.destroyed {
		if b.state.Exist(addr) {
			continue // that was reverted
		}
		if b.adapter.stored(addr) {
			return fmt.Errorf("%w: %s", ErrDestroyed, addr)
		}
		b.adapter.destroy(addr)
	}
	return b.adapter.failed(b.state)
}

// Prestate ends the block where it stands and hands out what its next transaction would run on: for go-ethereum's tracers, which run that
// transaction themselves. Nothing but reads reaches the view, and every later call of the block fails with ErrFinished.
// After an error that wraps ErrState there is no state to hand out.
func (b *Block) Prestate() (*state.StateDB, vm.BlockContext, error) {
	if b.broken != nil {
		return nil, vm.BlockContext{}, b.broken
	}
	b.broken = ErrFinished
	return b.state, b.context, nil
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
	b.state.IntermediateRoot(b.rules)
	err := b.adapter.failed(b.state)
	if err == nil {
		err = b.adapter.stage()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	return nil
}
