package statedb

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"
)

// Positions in an account's header (EIP-7864, "Tree embedding").
const (
	basicDataIndex     = 0
	codeHashIndex      = 1
	headerStorageIndex = 64  // slots 0 to 63
	codeIndex          = 128 // code chunks
	headerSlots        = 64
)

// BasicDataKey returns the key of an account's nonce, balance and code size.
func (p *Profile) BasicDataKey(a common.Address) Key { return p.headerKey(a, basicDataIndex) }

// CodeHashKey returns the key of an account's code hash.
func (p *Profile) CodeHashKey(a common.Address) Key { return p.headerKey(a, codeHashIndex) }

func (p *Profile) headerKey(a common.Address, sub byte) Key { return p.key(a, [32]byte{}, sub) }

func (p *Profile) key(a common.Address, treeIndex [32]byte, sub byte) (k Key) {
	stem := p.Embed(a, treeIndex)
	copy(k[:], stem[:])
	k[StemSize] = sub
	return k
}

// StorageKey returns the key of a storage slot. The first 64 slots are in the
// account's header. The others are at 256^31 + slot. For slots from 0xff00… on,
// that sum has 33 bytes. Its top byte must not be lost; otherwise, those slots
// would be parts of the header, and a contract could write its balance.
func (p *Profile) StorageKey(a common.Address, slot common.Hash) Key {
	if slot == (common.Hash{31: slot[31]}) && slot[31] < headerSlots {
		return p.headerKey(a, headerStorageIndex+slot[31])
	}
	// The tree index is the sum without its last byte: the slot shifted right
	// by one byte, plus 256^30.
	var index [32]byte
	copy(index[1:], slot[:StemSize])
	index[1]++
	if index[1] == 0 {
		index[0] = 1
	}
	return p.key(a, index, slot[31])
}

// CodeChunkKey returns the key of the n-th chunk of an account's code, from 0.
func (p *Profile) CodeChunkKey(a common.Address, n uint32) Key {
	var index [32]byte
	at := uint64(n) + codeIndex
	binary.BigEndian.PutUint64(index[24:], at>>8)
	return p.key(a, index, byte(at))
}
