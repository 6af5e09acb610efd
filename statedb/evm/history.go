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

// ErrHistory is returned if BlockHashes is nil and the state has no history
// contract to store block hashes in; see [HistoryContract].
var ErrHistory = errors.New("evm: no history contract in the state")

// BlockHashes returns the hash of an ancestor block for the instruction BLOCKHASH,
// or zero if there is no such block. It is called only for the last 256 blocks. A
// witness does not contain the results of this function, so a verifier needs the
// same function.
//
// If BlockHashes is nil, block hashes come from the state instead, from the history
// contract of EIP-2935. At the start of a block, NewBlock stores the parent's hash
// there with the system call of that EIP. BLOCKHASH then reads the contract's
// storage, as in EIP-7709, but at an unchanged gas price. This needs the rules of
// Shanghai or later. A witness then proves the hashes that the block has read.
// [Call] and [Estimate] do not change the state, so they take the parent's hash
// from the header.
type BlockHashes func(number uint64) common.Hash

// HistoryContract returns the address and the account of the contract that stores
// block hashes (EIP-2935). The genesis must contain this account if [BlockHashes]
// is nil.
func HistoryContract() (common.Address, types.Account) {
	return params.HistoryStorageAddress, types.Account{Nonce: 1, Code: common.CopyBytes(params.HistoryStorageCode), Balance: new(big.Int)}
}

// history returns a BlockHashes that reads the hashes from the storage of EIP-2935's contract.
func history(storage func(common.Address, common.Hash) common.Hash) BlockHashes {
	return func(number uint64) common.Hash {
		var slot common.Hash
		binary.BigEndian.PutUint64(slot[24:], number%params.HistoryServeWindow)
		return storage(params.HistoryStorageAddress, slot)
	}
}

// keepParentHash stores the parent's hash in the history contract (EIP-2935).
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
	// The contract has stored no hash, without an error. Either the rules are older than
	// Shanghai, whose instruction PUSH0 it needs, or the address has another contract.
	if kept != b.header.ParentHash {
		return fmt.Errorf("%w: %s has %s as the parent's hash, want %s: use HistoryContract's code and Shanghai or later, or set BlockHashes",
			ErrHistory, params.HistoryStorageAddress, kept, b.header.ParentHash)
	}
	return nil
}
