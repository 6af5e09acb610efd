package statedb

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// AccessKind is the part of the state that a key belongs to.
type AccessKind uint8

const (
	// RawAccess is a key without metadata.
	RawAccess AccessKind = iota
	// BasicDataAccess is an account's nonce, balance and code size.
	BasicDataAccess
	// CodeHashAccess is an account's code hash.
	CodeHashAccess
	// StorageAccess is a storage slot.
	StorageAccess
	// CodeChunkAccess is a chunk of an account's code.
	CodeChunkAccess
)

// String implements fmt.Stringer.
func (k AccessKind) String() string {
	names := [...]string{"raw", "basic data", "code hash", "storage", "code chunk"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("access kind %d", uint8(k))
}

// Access is a key with the metadata that it is derived from, so that a verifier
// can derive it again.
type Access struct {
	// Kind is the part of the state, and determines which of Address, Slot and
	// Chunk are set. The others are zero.
	Kind AccessKind
	// Key is the position in the tree.
	Key Key
	// Address is the account's address, for all kinds but RawAccess.
	Address common.Address
	// Slot is the storage slot, for StorageAccess.
	Slot common.Hash
	// Chunk is the number of the chunk, from 0, for CodeChunkAccess.
	Chunk uint32
}

// derive sets the key from the metadata; a raw key stays.
func (a Access) derive() Access {
	switch a.Kind {
	case BasicDataAccess:
		a.Key = basicDataKey(a.Address)
	case CodeHashAccess:
		a.Key = codeHashKey(a.Address)
	case StorageAccess:
		a.Key = storageKey(a.Address, a.Slot)
	case CodeChunkAccess:
		a.Key = codeChunkKey(a.Address, a.Chunk)
	}
	return a
}

// plain zeroes the fields that the kind does not have.
func (a Access) plain() Access {
	switch a.Kind {
	case RawAccess:
		return Access{Kind: a.Kind, Key: a.Key}
	case StorageAccess:
		a.Chunk = 0
	case CodeChunkAccess:
		a.Slot = common.Hash{}
	default:
		a.Slot, a.Chunk = common.Hash{}, 0
	}
	return a
}

// String describes the access for error messages.
func (a Access) String() string {
	switch a.Kind {
	case StorageAccess:
		return fmt.Sprintf("%s %s of %s", a.Kind, a.Slot, a.Address)
	case CodeChunkAccess:
		return fmt.Sprintf("%s %d of %s", a.Kind, a.Chunk, a.Address)
	case RawAccess:
		return fmt.Sprintf("%s key %x", a.Kind, a.Key)
	}
	return fmt.Sprintf("%s of %s", a.Kind, a.Address)
}

// Read is a logged read of a key.
type Read struct {
	Access
	// Transaction is the index set by View.SetTransaction at the first read.
	Transaction int
}

// Write is the last write of a key.
type Write struct {
	Access
	// Value is the new value; zero if Deleted.
	Value [32]byte
	// Deleted means that the value is removed.
	Deleted bool
	// Transaction is the index set by View.SetTransaction at this write. Verify
	// ignores it.
	Transaction int
}
