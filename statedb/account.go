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

// Account is an account without its storage and code.
type Account struct {
	// Exists is false for an account that was never written or was deleted. All
	// other fields are zero then.
	Exists bool
	// Nonce is the nonce of the next transaction.
	Nonce uint64
	// Balance is in wei, at most 128 bits. View.Account never returns nil; in
	// SetAccount nil means 0.
	Balance *uint256.Int
	// CodeHash is the Keccak-256 hash of the code.
	CodeHash common.Hash
	// CodeSize is the length of the code in bytes, below 2^24.
	CodeSize int
}

// Account returns an account. It logs the basic data and the code hash as read, even if the account
// does not exist, because a witness must prove that too.
func (v *View) Account(a common.Address) Account {
	basicAccess, codeAccess := v.header(a)
	basic, hasBasic := v.read(basicAccess)
	codeHash, hasCode := v.read(codeAccess)
	account := Account{Balance: new(uint256.Int)}
	// A deleted account has zeros in both places.
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

// header returns the accesses of the two header values of an account. Both are in one stem, so one
// hash gives both keys.
func (v *View) header(a common.Address) (basic, codeHash Access) {
	key := basicDataKey(a)
	basic = Access{Kind: BasicDataAccess, Key: key, Address: a}
	key[StemSize] = codeHashIndex
	return basic, Access{Kind: CodeHashAccess, Key: key, Address: a}
}

// SetAccount stages an account's nonce, balance, code hash and code size. It
// ignores Exists. The error wraps ErrBalanceRange or ErrCodeSize, and then
// nothing changes.
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

// DeleteAccount stages zeros for an account's header, as go-ethereum's binary
// trie does. The zeros are stored, and the account's storage stays.
func (v *View) DeleteAccount(a common.Address) { v.setHeader(a, [32]byte{}, common.Hash{}) }

func (v *View) setHeader(a common.Address, basic [32]byte, codeHash common.Hash) {
	basicAccess, codeAccess := v.header(a)
	v.write(basicAccess, basic)
	v.write(codeAccess, codeHash)
}

// Storage returns the value of a storage slot, zero if it was never written.
// The slot is logged as read.
func (v *View) Storage(a common.Address, slot common.Hash) common.Hash {
	value, _ := v.read(v.slot(a, slot))
	return value
}

// SetStorage stages a storage slot.
func (v *View) SetStorage(a common.Address, slot, value common.Hash) { v.write(v.slot(a, slot), value) }

func (v *View) slot(a common.Address, slot common.Hash) Access {
	return Access{Kind: StorageAccess, Key: storageKey(a, slot), Address: a, Slot: slot}
}
