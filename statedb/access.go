package statedb

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// AccessKind names the part of the state that a key belongs to.
type AccessKind uint8

const (
	// RawAccess is the kind of a key that a host has chosen itself, with View.Get or View.Set.
	// Nothing is known about how it was derived.
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

// Access is a key together with the address, slot or chunk that it was derived from. A verifier
// derives the key again, so that a key for one purpose cannot pass for another.
type Access struct {
	// Kind is the part of the state. It determines which of Address, Slot and Chunk are set; the
	// other fields are zero.
	Kind AccessKind
	// Key is the position of the value in the tree.
	Key Key
	// Address is the account's address, for all kinds but RawAccess.
	Address common.Address
	// Slot is the storage slot, for StorageAccess.
	Slot common.Hash
	// Chunk is the number of the chunk, from 0, for CodeChunkAccess.
	Chunk uint32
}

// derive returns the access with the key that its other fields lead to. A raw key stays as it is.
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

// plain returns the access without the fields that its kind does not have. Two accesses of the same
// key are equal in this form.
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

// String describes the access in a few words, for error messages.
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

// Read is an entry in the log of reads: a key that the execution has read.
type Read struct {
	Access
	// Transaction is the index that View.SetTransaction had set when the key was first read.
	Transaction int
}

// Write is the last write of a key, staged in a view or checked against a witness.
type Write struct {
	Access
	// Value is the new value. It is zero if Deleted is true.
	Value [32]byte
	// Deleted means that the value is removed.
	Deleted bool
	// Transaction is the index that View.SetTransaction had set at this write. Verify ignores it.
	Transaction int
}
