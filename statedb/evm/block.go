package evm

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	// ErrHeader is returned if a block's header lacks a field that the block's rules need, for
	// example the base fee since London.
	ErrHeader = errors.New("evm: invalid header")
	// ErrFork is returned if the rules of a block are not supported. Amsterdam is
	// not supported, because it counts the gas of a block differently and needs
	// block access lists. Rules with go-ethereum's flag UBT are not supported
	// either, because they price accesses by the tree (EIP-4762). The binary tree
	// of this package works without the flag.
	ErrFork = errors.New("evm: unsupported fork")
	// ErrBlob is returned for a blob transaction.
	ErrBlob = errors.New("evm: blob transactions are not supported")
	// ErrState is returned if the view could not be read or written. The caller
	// must then drop the block.
	ErrState = errors.New("evm: state failed")
	// ErrOverride is returned by Call and Estimate if the overrides contradict each
	// other, or if they move a contract that is not precompiled.
	ErrOverride = errors.New("evm: invalid override")
	// ErrDestroyed is returned if an account with storage destroys itself under
	// rules before Cancun. Such an account loses its storage, but a tree of hashed
	// keys cannot list the slots of an account (EIP-6780). The block notices
	// storage in the first 64 slots and in slots that it reads. Other storage goes
	// unnoticed: it is left behind, and reappears if a later block creates the
	// account again. Chains that start with Cancun have no such accounts.
	ErrDestroyed = errors.New("evm: an account with storage was destroyed")
	// ErrFinished is returned by Apply, Finish and Prestate after Finish or
	// Prestate was called.
	ErrFinished = errors.New("evm: block is finished")
)

// Block executes the transactions of one block one after another on a view of the state. It must be
// used by one goroutine only. Create one with [NewBlock].
type Block struct {
	config    *params.ChainConfig
	rules     params.Rules
	header    *types.Header
	signer    types.Signer
	ownSigner bool // SetSigner replaced the signer
	adapter   *adapter
	state     *state.StateDB
	context   vm.BlockContext
	machine   vm.Config               // tests set a tracer here
	contracts vm.PrecompiledContracts // nil: the contracts of the rules
	gas       *core.GasPool
	receipts  types.Receipts
	logs      uint
	destroyed []common.Address // by the running transaction, before Cancun
	changes   []accessChange   // in the order of transactions
	broken    error
}

// NewBlock starts a block on a view, under the rules that config has for the
// header. It supports chains of [ChainConfig], Osaka, and older forks. A positive
// difficulty in the header means a block before the merge. NewBlock uses these
// fields of the header: number, time, coinbase, gas limit, base fee, difficulty,
// mix digest and parent hash. The caller must not use the view until Finish has
// returned. Errors wrap ErrHeader, ErrFork, ErrHistory or ErrState.
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

// SetSigner replaces the signer that recovers the sender of each transaction, for
// rollups whose signatures differ from Ethereum's. The pool of such a rollup needs
// the same rule in txpool.Config.Sender. With such a signer, accounts with code may
// send transactions. On Ethereum, EIP-3607 forbids this, because an attacker could
// find a key whose address is that of a contract; here the signer must prevent that
// attack. Call SetSigner before Apply, and in each execution of the block.
func (b *Block) SetSigner(signer types.Signer) { b.signer, b.ownSigner = signer, true }

// SetPrecompiles adds precompiled contracts to those of the rules, or replaces some
// of them, for rollups that add contracts written in Go. The addresses of added
// contracts are not warm: the first access in a transaction costs 2,600 gas. Call
// SetPrecompiles before Apply, and in each execution of the block. For calls, use
// [Overrides].Precompiles.
func (b *Block) SetPrecompiles(own vm.PrecompiledContracts) { b.contracts = Precompiles(b.rules, own) }

// Precompiles returns the precompiled contracts of the rules, together with those
// of a rollup. At an address that both have, the rollup's contract is used.
func Precompiles(rules params.Rules, own vm.PrecompiledContracts) vm.PrecompiledContracts {
	contracts := vm.ActivePrecompiledContracts(rules)
	maps.Copy(contracts, own)
	return contracts
}

// checkHeader returns an error if the block's header or rules are not supported.
func checkHeader(config *params.ChainConfig, header *types.Header) error {
	switch {
	case header.Number == nil || header.Number.Sign() < 0 || !header.Number.IsUint64():
		return fmt.Errorf("%w: number is %v, want 64 bits", ErrHeader, header.Number)
	case header.BaseFee == nil && config.IsLondon(header.Number):
		return fmt.Errorf("%w: no base fee, want one since London (EIP-1559)", ErrHeader)
	case header.BaseFee != nil && (header.BaseFee.Sign() < 0 || header.BaseFee.BitLen() > 256):
		return fmt.Errorf("%w: base fee is %v, want 256 bits", ErrHeader, header.BaseFee)
	}
	switch rules := config.Rules(header.Number, true, header.Time); {
	case rules.IsAmsterdam:
		return fmt.Errorf("%w: Amsterdam at time %d, want Osaka or older", ErrFork, header.Time)
	case rules.IsUBT:
		return fmt.Errorf("%w: UBT at time %d, want a config without it", ErrFork, header.Time)
	}
	return nil
}

// blockContext returns the facts about a block that EVM instructions can read.
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
	if header.BaseFee != nil { // since London
		c.BaseFee = new(big.Int).Set(header.BaseFee)
	}
	// A positive difficulty means that the block was mined. It has no random
	// number, and the rules before the merge apply to it.
	if header.Difficulty != nil && header.Difficulty.Sign() > 0 {
		c.Difficulty.Set(header.Difficulty)
	} else {
		random := header.MixDigest
		c.Random = &random
	}
	return c
}

// Apply executes the next transaction of the block and returns its receipt. The receipt lacks the
// block's hash, which is unknown until the block is sealed. Before Byzantium the receipt's state
// root is that of an empty Merkle Patricia trie.
//
// If the transaction cannot be in the block at this position, the error wraps
// ErrBlob or one of go-ethereum's errors (core.ErrNonceTooLow,
// core.ErrInsufficientFunds, core.ErrGasLimitReached, …). The state is then
// unchanged, and the witness contains none of the transaction's reads. A
// transaction that runs and fails is not an error: its receipt shows the failure.
// After an error that wraps ErrState, the caller must drop the block.
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
	if b.ownSigner {
		msg.SkipEOACheck()
	}
	touched := newTouched()
	machine := vm.NewEVM(b.context, &machineState{b.state, b.adapter, touched}, b.config, b.watched())
	defer machine.Release()
	if b.contracts != nil {
		machine.SetPrecompiles(b.contracts)
	}
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
	b.changes = append(b.changes, touched.changes(uint32(len(b.receipts)), b.state)...)
	return receipt, nil
}

// forget removes the reads of a refused transaction from the log of reads.
func (b *Block) forget(mark statedb.ReadMark) error {
	if !b.adapter.rewind(mark) {
		return nil
	}
	// The removed reads are still in the cache of StateDB, so a later transaction could use
	// them without a new entry in the log. Move the changes to the adapter, and continue with
	// a StateDB whose cache is empty.
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

// watched returns the configuration with which the EVM runs a transaction.
func (b *Block) watched() vm.Config {
	b.destroyed = nil
	if b.rules.IsCancun {
		return b.machine
	}
	// Before Cancun, a hook records the accounts that destroy themselves.
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

// failed returns the first error of the state during a transaction, or nil.
func (b *Block) failed() error {
	// Before Cancun, the removal of accounts that destroyed themselves is completed
	// here.
	for _, addr := range b.destroyed {
		if b.state.Exist(addr) {
			continue // reverted
		}
		if b.adapter.stored(addr) {
			return fmt.Errorf("%w: %s", ErrDestroyed, addr)
		}
		b.adapter.destroy(addr)
	}
	return b.adapter.failed(b.state)
}

// Prestate returns the state and the block context before the next transaction of the block. It is
// for go-ethereum's tracers, which run that transaction themselves. Prestate ends the block: the
// changes so far are not written to the view, and every later call returns ErrFinished. If the
// block has already failed, Prestate returns that error.
func (b *Block) Prestate() (*state.StateDB, vm.BlockContext, error) {
	if b.broken != nil {
		return nil, vm.BlockContext{}, b.broken
	}
	b.broken = ErrFinished
	return b.state, b.context, nil
}

// Receipts returns the receipts of the transactions applied so far.
func (b *Block) Receipts() types.Receipts { return b.receipts }

// GasUsed returns the total gas used by the transactions applied so far.
func (b *Block) GasUsed() uint64 {
	if n := len(b.receipts); n > 0 {
		return b.receipts[n-1].CumulativeGasUsed
	}
	return 0
}

// Finish ends the block and stages all its changes in the view. It must be the last
// call. The error wraps ErrFinished, or ErrState, for example if a balance does not
// fit into 128 bits. After an error, the caller must drop the view.
func (b *Block) Finish() error {
	if b.broken != nil {
		return b.broken
	}
	b.broken = ErrFinished
	b.state.IntermediateRoot(b.rules)
	err := b.adapter.failed(b.state)
	if err == nil {
		err = b.adapter.stage(b.changes)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	return nil
}
