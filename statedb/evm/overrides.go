package evm

import (
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// Overrides change the state and the block for a call, as clients of eth_call
// expect. They do not change the view. They may therefore contain values that do
// not fit into the tree, such as a balance of 256 bits, and may replace the whole
// storage of an account. The zero value changes nothing.
type Overrides struct {
	// Accounts are the changed accounts.
	Accounts map[common.Address]AccountOverride
	// Block holds the changed fields of the block.
	Block BlockOverride
	// Precompiles are the precompiled contracts of this chain in addition to Ethereum's: those
	// that its blocks get with [Block.SetPrecompiles]. The field Accounts can move a
	// precompiled contract to another address, or replace it by ordinary code.
	Precompiles vm.PrecompiledContracts
}

// AccountOverride changes one account for a call. A field that is nil changes nothing. If the
// account is a precompiled contract, it becomes an ordinary account.
type AccountOverride struct {
	// Nonce is the new nonce.
	Nonce *uint64
	// Balance is the new balance, in wei.
	Balance *uint256.Int
	// Code is the new code. An empty slice that is not nil removes the code.
	Code []byte
	// State replaces the whole storage: all other slots are zero. StateDiff changes only the slots
	// that it contains. At most one of the two may be set.
	State, StateDiff map[common.Hash]common.Hash
	// MovePrecompileTo is the address to which the precompiled contract at this
	// account moves.
	MovePrecompileTo *common.Address
}

// BlockOverride changes fields of the block for a call. A field that is nil changes nothing.
type BlockOverride struct {
	// Number is the block's number. BaseFee and BlobBaseFee are its prices, in wei
	// per gas.
	Number, BaseFee, BlobBaseFee *big.Int
	// Time is the time of the block, in seconds since 1970.
	Time *uint64
	// GasLimit is the gas limit of the block.
	GasLimit *uint64
	// Coinbase is the receiver of the fees.
	Coinbase *common.Address
	// Random is the value of the PREVRANDAO instruction.
	Random *common.Hash
}

// header returns a copy of a header with the changes.
func (o *BlockOverride) header(h *types.Header) *types.Header {
	h = types.CopyHeader(h)
	if o.Number != nil {
		h.Number = o.Number
	}
	if o.BaseFee != nil {
		h.BaseFee = o.BaseFee
	}
	if o.Time != nil {
		h.Time = *o.Time
	}
	if o.GasLimit != nil {
		h.GasLimit = *o.GasLimit
	}
	if o.Coinbase != nil {
		h.Coinbase = *o.Coinbase
	}
	if o.Random != nil {
		h.MixDigest = *o.Random
	}
	return h
}

// blobBaseFee returns the price of blob gas.
func (o *BlockOverride) blobBaseFee() *big.Int {
	if o.BlobBaseFee != nil {
		return o.BlobBaseFee
	}
	// A rollup has no blobs, but the instruction BLOBBASEFEE reads the price.
	return big.NewInt(params.BlobTxMinBlobGasprice)
}

// Apply makes the changes of Accounts in a state and in the precompiled contracts
// of a block, as if a transaction before the call had made them. It is for hosts
// that run the EVM themselves on a state from [Block.Prestate]. It ignores the
// field Block. The accounts are changed in the order of their addresses. The error
// wraps ErrOverride, and a part of the changes may then have been made.
func (o *Overrides) Apply(sdb *state.StateDB, contracts vm.PrecompiledContracts) error {
	moved := make(map[common.Address]bool)
	for _, addr := range slices.SortedFunc(maps.Keys(o.Accounts), common.Address.Cmp) {
		account := o.Accounts[addr]
		if moved[addr] {
			return fmt.Errorf("%w: account %s has already been overridden by a precompile", ErrOverride, addr)
		}
		contract, precompiled := contracts[addr]
		if to := account.MovePrecompileTo; to != nil {
			if !precompiled {
				return fmt.Errorf("%w: account %s is not a precompile", ErrOverride, addr)
			}
			if _, changed := o.Accounts[*to]; changed {
				return fmt.Errorf("%w: account %s is already overridden", ErrOverride, to)
			}
			contracts[*to], moved[*to] = contract, true
		}
		delete(contracts, addr)
		if account.State != nil && account.StateDiff != nil {
			return fmt.Errorf("%w: account %s has both 'state' and 'stateDiff'", ErrOverride, addr)
		}
		account.apply(sdb, addr)
	}
	sdb.Finalise(params.Rules{})
	return nil
}

func (o *AccountOverride) apply(sdb *state.StateDB, addr common.Address) {
	if o.Nonce != nil {
		sdb.SetNonce(addr, *o.Nonce, tracing.NonceChangeUnspecified)
	}
	if o.Code != nil {
		sdb.SetCode(addr, o.Code, tracing.CodeChangeUnspecified)
	}
	if o.Balance != nil {
		sdb.SetBalance(addr, o.Balance, tracing.BalanceChangeUnspecified)
	}
	if o.State != nil {
		sdb.SetStorage(addr, o.State)
	}
	for slot, value := range o.StateDiff {
		sdb.SetState(addr, slot, value)
	}
}
