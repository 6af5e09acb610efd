// Package pebblestore fixes under which keys the records of package eoa stand in an ordered key-value store. The store itself is not here
// yet.
//
// Numbers are big-endian, so that keys sort as what they stand for: an account's nonces can be scanned in order.
package pebblestore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa"
)

// ErrMalformed: bytes that are no key of this package.
var ErrMalformed = errors.New("pebblestore: malformed key")

// Kind says what a key leads to. It is the byte after the account.
type Kind byte

const (
	// ByID leads to a record, by its id.
	ByID Kind = iota + 1
	// ByNonce leads to the id of the request that holds a nonce.
	ByNonce
	// PendingByID marks requests without a nonce, by id.
	PendingByID

	numKinds
)

const (
	accountSize = 8 + common.AddressLength
	keySize     = accountSize + 1 + 8
)

// Key returns the key of a number, an id or a nonce, of a kind.
func Key(a eoa.Account, kind Kind, number uint64) []byte {
	return binary.BigEndian.AppendUint64(Prefix(a, kind), number)
}

// Prefix returns what all keys of an account and a kind begin with.
func Prefix(a eoa.Account, kind Kind) []byte {
	key := make([]byte, 0, keySize)
	key = binary.BigEndian.AppendUint64(key, a.ChainID)
	key = append(key, a.Address[:]...)
	return append(key, byte(kind))
}

// Parse is the inverse of Key. The error wraps ErrMalformed.
func Parse(key []byte) (a eoa.Account, kind Kind, number uint64, err error) {
	if len(key) != keySize {
		return a, 0, 0, fmt.Errorf("%w: %d bytes, want %d", ErrMalformed, len(key), keySize)
	}
	kind = Kind(key[accountSize])
	if kind < ByID || kind >= numKinds {
		return a, 0, 0, fmt.Errorf("%w: kind %d, want %d to %d", ErrMalformed, kind, ByID, numKinds-1)
	}
	a.ChainID = binary.BigEndian.Uint64(key)
	copy(a.Address[:], key[8:])
	return a, kind, binary.BigEndian.Uint64(key[accountSize+1:]), nil
}
