package statedb

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// StemSize is the length of a stem, in bytes.
const StemSize = ubt.StemSize

// Key is the position of one value in the tree: a stem, followed by the index of the value among
// the 256 values of the stem.
type Key = ubt.Key

// layout names the hash functions and the key derivation of the tree. Disks and
// exports contain it, so that a store refuses data of another layout.
const layout = "EIP-7864/SHA-256"

// hasher hashes the nodes of all trees.
var hasher = ubt.SHA256()

// Positions of values in the header of an account (EIP-7864, "Tree embedding").
const (
	basicDataIndex     = 0
	codeHashIndex      = 1
	headerStorageIndex = 64  // slots 0 to 63
	codeIndex          = 128 // code chunks
	headerSlots        = 64
)

// basicDataKey returns the key of an account's nonce, balance and code size.
func basicDataKey(a common.Address) Key { return headerKey(a, basicDataIndex) }

// codeHashKey returns the key of an account's code hash.
func codeHashKey(a common.Address) Key { return headerKey(a, codeHashIndex) }

func headerKey(a common.Address, sub byte) Key { return treeKey(a, [32]byte{}, sub) }

func treeKey(a common.Address, treeIndex [32]byte, sub byte) (k Key) {
	stem := embed(a, treeIndex)
	copy(k[:], stem[:])
	k[StemSize] = sub
	return k
}

// embed returns the stem (EIP-7864) for one part of an account: the first 31 bytes that
// all keys of this part have in common.
func embed(a common.Address, treeIndex [32]byte) [StemSize]byte {
	// A part is, for example, the account's header or a group of 256 storage slots; the tree
	// index is the number of the part. The stem is a hash over twelve zero bytes, the address
	// and this number.
	sum := hasher.Inner(common.BytesToHash(a[:]), treeIndex)
	return [StemSize]byte(sum[:StemSize])
}

// storageKey returns the key of a storage slot.
func storageKey(a common.Address, slot common.Hash) Key {
	// The first 64 slots are in the header of the account.
	if slot == (common.Hash{31: slot[31]}) && slot[31] < headerSlots {
		return headerKey(a, headerStorageIndex+slot[31])
	}
	// All other storage slots begin at position 256^31 of the account (EIP-7864). The tree
	// index of a slot is that position plus the slot, without the last byte.
	var index [32]byte
	copy(index[1:], slot[:StemSize])
	index[1]++
	// The sum has 33 bytes for slots from 0xff00… on. Without its first byte, such a slot
	// would be a part of the account's header, and a contract could write its own balance.
	if index[1] == 0 {
		index[0] = 1
	}
	return treeKey(a, index, slot[31])
}

// codeChunkKey returns the key of chunk n of an account's code, counted from 0.
func codeChunkKey(a common.Address, n uint32) Key {
	var index [32]byte
	at := uint64(n) + codeIndex
	binary.BigEndian.PutUint64(index[24:], at>>8)
	return treeKey(a, index, byte(at))
}
