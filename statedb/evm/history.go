package evm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

// ErrHistory: hashes of blocks are to come from a state that does not keep them.
var ErrHistory = errors.New("evm: no history contract in the state")

// BlockHashes returns the hash of an ancestor block, for the BLOCKHASH instruction; zero for one that does not exist. It is asked for the last
// 256 only.
//
// Nil means that the state itself has them, in EIP-2935's history contract: NewBlock puts the parent's hash there first, as the system call of that
// proposal does, and BLOCKHASH reads it (EIP-7709, but for the gas, which stays). That needs Shanghai's rules or later. Then a witness proves the hashes that a block has seen like everything else. What a func answers
// is in no witness: who executes again must have the same. Call and Estimate change no state, so they take the parent's hash from the header.
type BlockHashes func(number uint64) common.Hash

// HistoryContract returns the account that a genesis needs for nil [BlockHashes], and its address (EIP-2935).
func HistoryContract() (common.Address, types.Account) {
	return params.HistoryStorageAddress, types.Account{Nonce: 1, Code: common.CopyBytes(params.HistoryStorageCode), Balance: new(big.Int)}
}

// history reads hashes of blocks where EIP-2935 keeps them.
func history(storage func(common.Address, common.Hash) common.Hash) BlockHashes {
	return func(number uint64) common.Hash {
		var slot common.Hash
		binary.BigEndian.PutUint64(slot[24:], number%params.HistoryServeWindow)
		return storage(params.HistoryStorageAddress, slot)
	}
}

// keepParentHash makes the system call of EIP-2935.
func (b *Block) keepParentHash() error {
	if b.state.GetCodeSize(params.HistoryStorageAddress) == 0 {
		if err := b.adapter.failed(b.state); err != nil {
			return fmt.Errorf("%w: %w", ErrState, err)
		}
		return fmt.Errorf("%w, want HistoryContract at %s from genesis on, or BlockHashes", ErrHistory, params.HistoryStorageAddress)
	}
	if b.header.Number.Sign() == 0 {
		return nil
	}
	machine := vm.NewEVM(b.context, b.state, b.config, b.machine)
	defer machine.Release()
	core.ProcessParentBlockHash(b.header.ParentHash, machine, nil)
	kept := history(b.state.GetState)(b.header.Number.Uint64() - 1)
	if err := b.adapter.failed(b.state); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if kept != b.header.ParentHash { // the call fails silently: without PUSH0, before Shanghai, or on another contract
		return fmt.Errorf("%w: %s keeps %s as the parent's hash, want %s: HistoryContract's code, under Shanghai's rules or later, or BlockHashes",
			ErrHistory, params.HistoryStorageAddress, kept, b.header.ParentHash)
	}
	return nil
}
