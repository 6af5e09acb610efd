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

// Overrides change the state and the block that a call runs on, as clients of
// eth_call expect. They lie above the view. So they may have values for which
// the tree has no room, such as a balance of 256 bits, and they may replace the
// whole storage of an account. The zero value changes nothing.
type Overrides struct {
	// Accounts are the changed accounts.
	Accounts map[common.Address]AccountOverride
	// Block holds the changed fields of the block.
	Block BlockOverride
	// Precompiles are those of [Block.SetPrecompiles], to which Accounts apply too.
	Precompiles vm.PrecompiledContracts
}

// AccountOverride changes one account. A nil field changes nothing. A changed
// account that is a precompiled contract becomes an ordinary account.
type AccountOverride struct {
	// Nonce is the new nonce.
	Nonce *uint64
	// Balance is the new balance, in wei.
	Balance *uint256.Int
	// Code is the new code. A slice of length 0 that is not nil removes it.
	Code []byte
	// State is the new storage: all other slots are zero. StateDiff changes
	// only its own slots. At most one of them may be set.
	State, StateDiff map[common.Hash]common.Hash
	// MovePrecompileTo is the new address of the precompiled contract.
	MovePrecompileTo *common.Address
}

// BlockOverride changes fields of the block. A nil field changes nothing.
type BlockOverride struct {
	// Number, BaseFee and BlobBaseFee are the block's number and its prices, in
	// wei per gas.
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

// blobBaseFee returns the price of blob gas. There are no blobs, but the
// BLOBBASEFEE instruction exists.
func (o *BlockOverride) blobBaseFee() *big.Int {
	if o.BlobBaseFee != nil {
		return o.BlobBaseFee
	}
	return big.NewInt(params.BlobTxMinBlobGasprice)
}

// Apply changes a state and the precompiled contracts of a block, as if by a
// transaction before the call. It is for hosts that run the EVM themselves, on
// a state of [Block.Prestate]. The fields of Block change nothing here. The
// accounts are changed in the order of their addresses. The error wraps
// ErrOverride; the state may have a part of the changes then.
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
