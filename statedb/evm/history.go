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

// ErrHistory is returned if BlockHashes is nil and the state does not store
// block hashes.
var ErrHistory = errors.New("evm: no history contract in the state")

// BlockHashes returns the hash of an ancestor block for the BLOCKHASH
// instruction; zero if there is no such block. It is called only for the last
// 256 blocks.
//
// If it is nil, the hashes come from the state, from EIP-2935's history
// contract. NewBlock then first stores the parent's hash there, with the system
// call of that proposal, and BLOCKHASH reads the contract's storage (EIP-7709,
// except for the gas, which does not change). This needs the rules of Shanghai
// or later. A witness then proves the hashes that the block has read. The
// results of a function are in no witness: a verifier must have the same
// function. [Call] and [Estimate] do not change the state, so they take the
// parent's hash from the header.
type BlockHashes func(number uint64) common.Hash

// HistoryContract returns the address and the account that a genesis needs if
// [BlockHashes] is nil (EIP-2935).
func HistoryContract() (common.Address, types.Account) {
	return params.HistoryStorageAddress, types.Account{Nonce: 1, Code: common.CopyBytes(params.HistoryStorageCode), Balance: new(big.Int)}
}

// history returns a BlockHashes that reads EIP-2935's contract.
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
		return fmt.Errorf("%w: want HistoryContract at %s in genesis, or BlockHashes", ErrHistory, params.HistoryStorageAddress)
	}
	if b.header.Number.Sign() == 0 {
		return nil
	}
	touched := newTouched()
	machine := vm.NewEVM(b.context, &machineState{b.state, b.adapter, touched}, b.config, b.machine)
	defer machine.Release()
	core.ProcessParentBlockHash(b.header.ParentHash, machine, nil)
	b.changes = touched.changes(0, b.state)
	kept := history(b.state.GetState)(b.header.Number.Uint64() - 1)
	if err := b.adapter.failed(b.state); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	// The call fails silently before Shanghai, which lacks PUSH0, and on
	// another contract.
	if kept != b.header.ParentHash {
		return fmt.Errorf("%w: %s has %s as the parent's hash, want %s: use HistoryContract's code and Shanghai or later, or set BlockHashes",
			ErrHistory, params.HistoryStorageAddress, kept, b.header.ParentHash)
	}
	return nil
}
