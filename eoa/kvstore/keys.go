package kvstore

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa"
)

// kind says what a key leads to. It is the byte after the account; numbers after it are big-endian, so that keys sort as what they stand for.
type kind byte

const (
	// kindMeta leads to the account's meta.
	kindMeta kind = iota + 1
	// kindRecord leads to a record, by id.
	kindRecord
	// kindOpen marks records with a nonce that may still change, by id.
	kindOpen
	// kindPending marks requests without a nonce, by rank, and says how many blobs and bytes they have.
	kindPending
	// kindKey leads to an id, by the caller's key, and kindHash by an attempt's hash.
	kindKey
	kindHash
	// kindDigest leads to the digest of the payload as it was accepted, by id.
	kindDigest
	// kindOrder leads to an order and kindEvent to an event, by number.
	kindOrder
	kindEvent
	// kindOrdered leads to the names of the last orders.
	kindOrdered
)

const (
	accountSize = 8 + common.AddressLength

	// accounts and due begin all keys of accounts, and all of the index of what is due.
	accounts byte = 1
	due      byte = 2
)

// DuePrefix begins the keys of the index of what is due, the only ones that are of no account. In a shared store they are hints: an entry that is
// written must be there before the account's step and after it; one that is deleted may stay.
const DuePrefix = due

// AccountOf returns the account whose key it is, or false for one of the index.
func AccountOf(key []byte) (a eoa.Account, ok bool) {
	if len(key) < 1+accountSize || key[0] != accounts {
		return a, false
	}
	a.ChainID = binary.BigEndian.Uint64(key[1:])
	copy(a.Address[:], key[1+8:])
	return a, true
}

// Scanned reports whether a key may be asked for by Scan; others are only ever asked for by Get.
func Scanned(key []byte) bool {
	if len(key) <= 1+accountSize || key[0] != accounts {
		return true
	}
	switch kind(key[1+accountSize]) {
	case kindMeta, kindKey, kindHash, kindDigest, kindOrdered:
		return false
	}
	return true
}

func appendAccount(key []byte, a eoa.Account) []byte {
	key = binary.BigEndian.AppendUint64(key, a.ChainID)
	return append(key, a.Address[:]...)
}

// prefix returns what all keys of an account and a kind begin with.
func prefix(a eoa.Account, k kind) []byte {
	key := append(make([]byte, 0, 1+accountSize+1+32), accounts)
	return append(appendAccount(key, a), byte(k))
}

// numbered returns the key of a number of a kind.
func numbered(a eoa.Account, k kind, number uint64) []byte {
	return binary.BigEndian.AppendUint64(prefix(a, k), number)
}

// named returns the key of a name of a kind.
func named(a eoa.Account, k kind, name []byte) []byte { return append(prefix(a, k), name...) }

// ranked returns the key of a pending request.
func ranked(a eoa.Account, r eoa.Rank) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(prefix(a, kindPending), r.Priority), r.ID)
}

// dueKey returns the key of an account in the index of what is due, by time in nanoseconds; with no account, where that time begins.
func dueKey(at uint64, a *eoa.Account) []byte {
	key := binary.BigEndian.AppendUint64([]byte{due}, at)
	if a != nil {
		key = appendAccount(key, *a)
	}
	return key
}

// parseDue is the inverse of dueKey.
func parseDue(key []byte) (a eoa.Account, ok bool) {
	const before = 1 + 8
	if len(key) != before+accountSize || key[0] != due {
		return a, false
	}
	a.ChainID = binary.BigEndian.Uint64(key[before:])
	copy(a.Address[:], key[before+8:])
	return a, true
}

// after returns the least key above all that begin with prefix, which has a byte below 255.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
