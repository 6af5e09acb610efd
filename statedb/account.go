package statedb

import (
	"encoding/binary"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"golang.org/x/crypto/sha3"
)

// Layout of an account's basic data, big-endian (EIP-7864, "Header values").
const (
	codeSizeOffset = 5 // 3 bytes
	nonceOffset    = 8 // 8 bytes
	balanceOffset  = 16
	maxBalanceBits = 128
	maxCodeSize    = 1<<24 - 1
)

// Account is what an account holds besides storage and code.
type Account struct {
	// Exists is false for an account that was never written, or was deleted; then the rest is zero.
	Exists bool
	// Nonce is the next transaction's.
	Nonce uint64
	// Balance is in wei, never nil, at most 128 bits.
	Balance *uint256.Int
	// CodeHash is the Keccak-256 hash of the code.
	CodeHash common.Hash
	// CodeSize is the length of the code, in bytes, below 2^24.
	CodeSize int
}

// Account returns an account. Both its values are logged as read.
func (v *View) Account(a common.Address) Account {
	p := &v.store.profile
	basic, hasBasic := v.read(Access{Kind: BasicDataAccess, Key: p.BasicDataKey(a), Address: a})
	codeHash, hasCode := v.read(Access{Kind: CodeHashAccess, Key: p.CodeHashKey(a), Address: a})
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

// SetAccount stages an account's nonce, balance, code hash and code size; Exists is not looked at. Errors wrap ErrBalanceRange or
// ErrCodeSize and change nothing.
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
	p := &v.store.profile
	v.Set(p.BasicDataKey(a), basic)
	v.Set(p.CodeHashKey(a), account.CodeHash)
	return nil
}

// DeleteAccount stages zeros for an account, which is how go-ethereum's binary trie deletes. Its storage stays.
func (v *View) DeleteAccount(a common.Address) {
	p := &v.store.profile
	v.Set(p.BasicDataKey(a), [32]byte{})
	v.Set(p.CodeHashKey(a), [32]byte{})
}

// Storage returns a storage slot; zero for one that was never written. It is logged as read.
func (v *View) Storage(a common.Address, slot common.Hash) common.Hash {
	value, _ := v.read(Access{Kind: StorageAccess, Key: v.store.profile.StorageKey(a, slot), Address: a, Slot: slot})
	return value
}

// SetStorage stages a storage slot.
func (v *View) SetStorage(a common.Address, slot, value common.Hash) {
	v.Set(v.store.profile.StorageKey(a, slot), value)
}

// Code returns the code with the given hash as staged or published; nil if there is none. It is not logged: the account's code hash
// binds it.
func (v *View) Code(codeHash common.Hash) []byte {
	if code, ok := v.code[codeHash]; ok {
		return code
	}
	return v.store.codeOf(codeHash)
}

// SetCode stages an account's code as chunks and returns its hash, which belongs into the account together with the size. The error
// wraps ErrCodeSize and changes nothing.
func (v *View) SetCode(a common.Address, code []byte) (common.Hash, error) {
	if len(code) > maxCodeSize {
		return common.Hash{}, fmt.Errorf("%w: %s has %d bytes, want at most %d", ErrCodeSize, a, len(code), maxCodeSize)
	}
	for i, chunk := range chunks(code) {
		v.Set(v.store.profile.CodeChunkKey(a, uint32(i)), chunk)
	}
	h := keccak(code)
	v.stageCode(h, code)
	return h, nil
}

func keccak(data []byte) (h common.Hash) {
	k := sha3.NewLegacyKeccak256()
	k.Write(data)
	k.Sum(h[:0])
	return h
}

const (
	chunkSize = 31
	push1     = 0x60
	push32    = 0x7f
)

// chunks splits code into pieces of 31 bytes, each behind a byte that says how many of its first bytes are data of a PUSH that
// began before it (EIP-7864, "Code").
func chunks(code []byte) [][32]byte {
	out := make([][32]byte, (len(code)+chunkSize-1)/chunkSize)
	next := 0 // where the next instruction begins
	for i := range out {
		start := i * chunkSize
		end := min(start+chunkSize, len(code))
		copy(out[i][1:], code[start:end])
		out[i][0] = byte(min(max(next-start, 0), chunkSize))
		for next < end {
			if op := code[next]; op >= push1 && op <= push32 {
				next += int(op-push1) + 1
			}
			next++
		}
	}
	return out
}
