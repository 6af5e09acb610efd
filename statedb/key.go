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

// embed returns the first 31 bytes of all keys of one part of an account.
func embed(a common.Address, treeIndex [32]byte) [StemSize]byte {
	// A part is, for example, the header or a group of 256 storage slots, and the
	// tree index is its number. The hash covers twelve zero bytes, the address and
	// the tree index.
	sum := hasher.Inner(common.BytesToHash(a[:]), treeIndex)
	return [StemSize]byte(sum[:StemSize])
}

// storageKey returns the key of a storage slot.
func storageKey(a common.Address, slot common.Hash) Key {
	// The first 64 slots are in the header of the account.
	if slot == (common.Hash{31: slot[31]}) && slot[31] < headerSlots {
		return headerKey(a, headerStorageIndex+slot[31])
	}
	// Every other slot is at the position 256^31 + slot. The tree index is this sum
	// without its last byte.
	var index [32]byte
	copy(index[1:], slot[:StemSize])
	index[1]++
	// For slots from 0xff00… on, the sum has 33 bytes. If its top byte were lost,
	// the slot would be a part of the header, and a contract could write its own
	// balance.
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
