package statedb

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// AccessKind is the part of the state to which a key belongs, such as storage or code.
type AccessKind uint8

const (
	// RawAccess is the kind of a key that the host has computed itself and passed
	// to View.Get or View.Set. The package does not know which account or slot
	// such a key belongs to.
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

// Access is a key of the tree, together with the address, slot or chunk from which
// the key was derived. A verifier derives the key again and compares. Otherwise an
// attacker could, for example, present a storage slot as an account's balance.
type Access struct {
	// Kind is the part of the state. It determines which of the fields Address,
	// Slot and Chunk are set; the others are zero.
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

// derive returns the access with its key computed from the address, slot or chunk.
func (a Access) derive() Access {
	// A witness could present a wrong key, so the key is computed again. A raw key
	// stays, because there is nothing to compute it from.
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

// plain clears the fields that do not belong to the kind of the access.
func (a Access) plain() Access {
	// Two accesses to the same key are then equal with ==.
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

// Read is an entry in a view's log of reads: a key that the execution has read.
type Read struct {
	Access
	// Transaction is the index of the transaction that read the key first, as set by
	// View.SetTransaction.
	Transaction int
}

// Write is a view's last write to a key. View.Writes returns the staged writes in
// this form, and Verify checks them against a witness.
type Write struct {
	Access
	// Value is the new value. It is zero if Deleted is true.
	Value [32]byte
	// Deleted means that the value is removed.
	Deleted bool
	// Transaction is the index of the transaction that wrote the key, as set by
	// View.SetTransaction. Verify ignores it.
	Transaction int
}
