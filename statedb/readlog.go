package statedb

import (
	"bytes"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/btree"
)

// AccessKind says which part of the state a key belongs to.
type AccessKind uint8

const (
	// RawAccess is a key that was given as such.
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

// Access is a key that was read, with what it was derived from, so that a verifier can derive it again.
type Access struct {
	// Kind says what the key stands for, and which of the fields below are set.
	Kind AccessKind
	// Key is where it stands in the tree.
	Key Key
	// Address is the account's, for all kinds but RawAccess.
	Address common.Address
	// Slot is the storage slot, for StorageAccess.
	Slot common.Hash
	// Chunk is the chunk's number, for CodeChunkAccess.
	Chunk uint32
}

// logged is an access with its place in the order of first accesses.
type logged struct {
	Access
	seq int
}

// readLog keeps each key that was read once.
type readLog struct{ byKey *btree.BTreeG[logged] }

func newReadLog() readLog {
	return readLog{btree.NewG(btreeDegree, func(a, b logged) bool { return bytes.Compare(a.Key[:], b.Key[:]) < 0 })}
}

func (r *readLog) clone() readLog { return readLog{r.byKey.Clone()} }

func (r *readLog) add(a Access) {
	if !r.byKey.Has(logged{Access: a}) {
		r.byKey.ReplaceOrInsert(logged{a, r.byKey.Len()})
	}
}

func (r *readLog) list() []Access {
	out := make([]Access, r.byKey.Len())
	r.byKey.Ascend(func(l logged) bool {
		out[l.seq] = l.Access
		return true
	})
	return slices.Clip(out)
}
