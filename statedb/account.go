package statedb

import (
	"encoding/binary"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// Layout of an account's basic data, big-endian (EIP-7864, "Header values").
const (
	codeSizeOffset = 5 // 3 bytes
	nonceOffset    = 8 // 8 bytes
	balanceOffset  = 16
	maxBalanceBits = 128
	maxCodeSize    = 1<<24 - 1
)

// Account has the values of an account except its storage and code.
type Account struct {
	// Exists is false if the account was never written or was deleted. All other
	// fields are then zero.
	Exists bool
	// Nonce is the nonce of the next transaction.
	Nonce uint64
	// Balance is the balance in wei. It has at most 128 bits. View.Account never returns nil here;
	// in SetAccount nil means 0.
	Balance *uint256.Int
	// CodeHash is the Keccak-256 hash of the code.
	CodeHash common.Hash
	// CodeSize is the length of the code in bytes, below 2^24.
	CodeSize int
}

// Account returns an account. It logs the basic data and the code hash as read, even if the account
// does not exist, because a witness must also prove that an account does not exist.
func (v *View) Account(a common.Address) Account {
	basicAccess, codeAccess := v.header(a)
	basic, hasBasic := v.read(basicAccess)
	codeHash, hasCode := v.read(codeAccess)
	account := Account{Balance: new(uint256.Int)}
	// A deleted account has zeros in both values.
	if !hasBasic && !hasCode || basic == ([32]byte{}) && codeHash == ([32]byte{}) {
		return account
	}
	account.Exists = true
	account.Nonce = binary.BigEndian.Uint64(basic[nonceOffset:])
	account.Balance.SetBytes(basic[balanceOffset:])
	account.CodeSize = int(basic[codeSizeOffset])<<16 | int(basic[codeSizeOffset+1])<<8 | int(basic[codeSizeOffset+2])
	account.CodeHash = codeHash
	return account
}

// header returns the accesses to an account's basic data and code hash.
func (v *View) header(a common.Address) (basic, codeHash Access) {
	key := basicDataKey(a)
	basic = Access{Kind: BasicDataAccess, Key: key, Address: a}
	// The two keys differ only in the last byte, so one hash is enough.
	key[StemSize] = codeHashIndex
	return basic, Access{Kind: CodeHashAccess, Key: key, Address: a}
}

// SetAccount stages the nonce, balance, code hash and code size of an account. It ignores the field
// Exists. If the error wraps ErrBalanceRange or ErrCodeSize, nothing has changed.
func (v *View) SetAccount(a common.Address, account Account) error {
	var basic [32]byte
	if account.Balance != nil {
		if n := account.Balance.BitLen(); n > maxBalanceBits {
			return fmt.Errorf("%w: %s has a balance of %d bits", ErrBalanceRange, a, n)
		}
		account.Balance.WriteToSlice(basic[balanceOffset:])
	}
	if account.CodeSize < 0 || account.CodeSize > maxCodeSize {
		return fmt.Errorf("%w: %s has %d bytes, want at most %d", ErrCodeSize, a, account.CodeSize, maxCodeSize)
	}
	binary.BigEndian.PutUint32(basic[codeSizeOffset-1:], uint32(account.CodeSize))
	binary.BigEndian.PutUint64(basic[nonceOffset:], account.Nonce)
	v.setHeader(a, basic, account.CodeHash)
	return nil
}

// DeleteAccount stages zeros for the header of an account, as go-ethereum's binary
// trie does. The zeros are stored as values, and the account's storage stays.
func (v *View) DeleteAccount(a common.Address) { v.setHeader(a, [32]byte{}, common.Hash{}) }

func (v *View) setHeader(a common.Address, basic [32]byte, codeHash common.Hash) {
	basicAccess, codeAccess := v.header(a)
	v.write(basicAccess, basic)
	v.write(codeAccess, codeHash)
}

// Storage returns the value of a storage slot, or zero if the slot was never written. It logs the
// slot as read.
func (v *View) Storage(a common.Address, slot common.Hash) common.Hash {
	value, _ := v.read(v.slot(a, slot))
	return value
}

// SetStorage stages a storage slot.
func (v *View) SetStorage(a common.Address, slot, value common.Hash) { v.write(v.slot(a, slot), value) }

func (v *View) slot(a common.Address, slot common.Hash) Access {
	return Access{Kind: StorageAccess, Key: storageKey(a, slot), Address: a, Slot: slot}
}
