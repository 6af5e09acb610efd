package evm

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/statedb"
)

// AccessList returns the access list of the block so far (EIP-7928): the accounts
// and slots that were read, and each change with its new value. The index of a
// change is 0 for the start of the block, and i+1 for transaction i, counted from
// 0. The result can be encoded in RLP. Refused transactions leave nothing in it.
//
// The list contains the accesses according to the rules of the block's fork. Before
// Cancun, it lacks the slots that an account loses when it is destroyed. The error
// wraps statedb.ErrNoReadLog if the view does not log reads.
func (b *Block) AccessList() (*bal.ConstructionBlockAccessList, error) {
	b.adapter.mu.Lock()
	defer b.adapter.mu.Unlock()
	if !b.adapter.view.LogsReads() {
		return nil, fmt.Errorf("evm: access list: %w", statedb.ErrNoReadLog)
	}
	list := bal.NewConstructionBlockAccessList()
	for _, c := range b.changes {
		c.add(list)
	}
	for _, r := range b.adapter.view.Reads() {
		switch r.Kind {
		case statedb.BasicDataAccess, statedb.CodeHashAccess:
			list.AccountRead(r.Address)
		case statedb.StorageAccess:
			list.StorageRead(r.Address, r.Slot)
		}
	}
	return list, nil
}

// accessChange is one entry in a block's access list: the new value of a slot,
// balance, nonce or code that a transaction has changed. index is the index of the
// transaction, counted from 1; 0 stands for the start of the block.
type accessChange struct {
	index uint32
	slotOf
	kind  changeKind
	value common.Hash // of a slot, balance or nonce; zero for code
	code  []byte
}

type changeKind uint8

const (
	slotChange changeKind = iota
	balanceChange
	nonceChange
	codeChange
)

func (c *accessChange) add(list *bal.ConstructionBlockAccessList) {
	number := new(uint256.Int).SetBytes(c.value[:])
	switch c.kind {
	case slotChange:
		list.StorageWrite(c.index, c.address, c.slot, c.value)
	case balanceChange:
		list.BalanceChange(c.index, c.address, number)
	case nonceChange:
		list.NonceChange(c.address, c.index, number.Uint64())
	case codeChange:
		list.CodeChange(c.address, c.index, c.code)
	}
}

// touched contains values that a transaction has written, as they were before it.
// Only values that differ afterwards go into the access list.
type touched struct {
	accounts map[common.Address]accountBefore
	slots    map[slotOf]common.Hash
}

type accountBefore struct {
	balance  uint256.Int
	nonce    uint64
	codeHash common.Hash
}

func newTouched() *touched {
	return &touched{make(map[common.Address]accountBefore), make(map[slotOf]common.Hash)}
}

// changes returns the values in sdb that differ from those before the transaction.
func (t *touched) changes(index uint32, sdb *state.StateDB) (out []accessChange) {
	for at, before := range t.slots {
		if now := sdb.GetState(at.address, at.slot); now != before {
			out = append(out, accessChange{index: index, slotOf: at, kind: slotChange, value: now})
		}
	}
	for addr, before := range t.accounts {
		at := slotOf{address: addr}
		if now := sdb.GetBalance(addr); !now.Eq(&before.balance) {
			out = append(out, accessChange{index: index, slotOf: at, kind: balanceChange, value: now.Bytes32()})
		}
		if now := sdb.GetNonce(addr); now != before.nonce {
			out = append(out, accessChange{index: index, slotOf: at, kind: nonceChange, value: uint256.NewInt(now).Bytes32()})
		}
		// For a missing account, the code counts as empty.
		if now := codeHashOf(sdb, addr); now != before.codeHash {
			out = append(out, accessChange{index: index, slotOf: at, kind: codeChange, code: sdb.GetCode(addr)})
		}
	}
	return out
}

// lastTransactions returns the last transaction that changed each slot and each
// account.
func lastTransactions(changes []accessChange) (slots map[slotOf]int, accounts map[common.Address]int) {
	slots, accounts = make(map[slotOf]int), make(map[common.Address]int)
	for i := range changes { // in the order of transactions
		c := &changes[i]
		// Changes at the start of the block have index 0, but the view stores them as writes of
		// transaction 0, as it does for the first transaction.
		if transaction := max(int(c.index), 1) - 1; c.kind == slotChange {
			slots[c.slotOf] = transaction
		} else {
			accounts[c.address] = transaction
		}
	}
	return slots, accounts
}

// account remembers the values of an account before a transaction first changes it.
func (s *machineState) account(addr common.Address) {
	// The access list contains only values that differ afterwards.
	if _, known := s.touched.accounts[addr]; !known {
		s.touched.accounts[addr] = accountBefore{*s.StateDB.GetBalance(addr), s.StateDB.GetNonce(addr), codeHashOf(s.StateDB, addr)}
	}
}

// codeHashOf returns the code hash of an account, or zero without code.
func codeHashOf(sdb *state.StateDB, addr common.Address) common.Hash {
	// go-ethereum returns either zero or the hash of no bytes for an account without code.
	// Both must count as the same.
	if h := sdb.GetCodeHash(addr); h != types.EmptyCodeHash {
		return h
	}
	return common.Hash{}
}

// SubBalance implements vm.StateDB.
func (s *machineState) SubBalance(addr common.Address, amount *uint256.Int, reason tracing.BalanceChangeReason) uint256.Int {
	s.account(addr)
	return s.StateDB.SubBalance(addr, amount, reason)
}

// AddBalance implements vm.StateDB.
func (s *machineState) AddBalance(addr common.Address, amount *uint256.Int, reason tracing.BalanceChangeReason) uint256.Int {
	s.account(addr)
	return s.StateDB.AddBalance(addr, amount, reason)
}

// SetNonce implements vm.StateDB.
func (s *machineState) SetNonce(addr common.Address, nonce uint64, reason tracing.NonceChangeReason) {
	s.account(addr)
	s.StateDB.SetNonce(addr, nonce, reason)
}

// SetCode implements vm.StateDB.
func (s *machineState) SetCode(addr common.Address, code []byte, reason tracing.CodeChangeReason) []byte {
	s.account(addr)
	return s.StateDB.SetCode(addr, code, reason)
}

// SelfDestruct implements vm.StateDB.
func (s *machineState) SelfDestruct(addr common.Address) {
	s.account(addr)
	s.StateDB.SelfDestruct(addr)
}

// SetState implements vm.StateDB.
func (s *machineState) SetState(addr common.Address, slot, value common.Hash) common.Hash {
	before := s.StateDB.SetState(addr, slot, value)
	if _, known := s.touched.slots[slotOf{addr, slot}]; !known {
		s.touched.slots[slotOf{addr, slot}] = before
	}
	return before
}
