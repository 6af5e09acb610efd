package kvstore

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa"
)

// kind is the type of a key. It is the byte after the account. Numbers in keys
// are big-endian, so that keys sort by them.
type kind byte

const (
	// kindMeta is the key of the account's meta.
	kindMeta kind = iota + 1
	// kindRecord is the key of a record, by id.
	kindRecord
	// kindOpen is the index of records with a nonce that may still change, by
	// id.
	kindOpen
	// kindPending is the index of requests without a nonce, by rank. The values
	// have the numbers of blobs and bytes.
	kindPending
	// kindKey is the index of ids by the caller's key. Of a dropped record it
	// has more; see dropped.
	kindKey
	// kindHash is the index of ids by an attempt's hash.
	kindHash
	// kindDigest is the key of the digest of the accepted payload, by id.
	kindDigest
	// kindOrder is the key of an order, by number.
	kindOrder
	// kindEvent is the key of an event, by number.
	kindEvent
	// kindOrdered is the key of the names of the last orders' steps.
	kindOrdered
)

const (
	accountSize = 8 + common.AddressLength

	// accounts is the first byte of the keys of accounts, due that of the index
	// of accounts that are due, and undelivered that of the index of accounts
	// with unacknowledged events.
	accounts    byte = 1
	due         byte = 2
	undelivered byte = 3
)

// Indexed reports whether key is an entry of one of the two indexes of accounts.
// These are the only keys that belong to no account. In a shared store the
// entries are hints. An entry that a step adds must be there before the step's
// other writes and after them; an entry that it deletes may stay.
func Indexed(key []byte) bool { return len(key) > 0 && key[0] != accounts }

// Split returns the account that key belongs to, and the rest of the key. It
// returns false for an entry of an index.
func Split(key []byte) (a eoa.Account, rest []byte, ok bool) {
	if len(key) < 1+accountSize || key[0] != accounts {
		return a, nil, false
	}
	a.ChainID = binary.BigEndian.Uint64(key[1:])
	copy(a.Address[:], key[1+8:])
	return a, key[1+accountSize:], true
}

// Join is the inverse of Split.
func Join(a eoa.Account, rest []byte) []byte {
	return append(appendAccount([]byte{accounts}, a), rest...)
}

// Scanned reports whether Scan may be called for key. All other keys are only
// read with Get.
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

// prefix returns the prefix of all keys of an account and a kind.
func prefix(a eoa.Account, k kind) []byte {
	key := append(make([]byte, 0, 1+accountSize+1+32), accounts)
	return append(appendAccount(key, a), byte(k))
}

// numbered returns the key of a kind with a number.
func numbered(a eoa.Account, k kind, number uint64) []byte {
	return binary.BigEndian.AppendUint64(prefix(a, k), number)
}

// named returns the key of a kind with a name.
func named(a eoa.Account, k kind, name []byte) []byte { return append(prefix(a, k), name...) }

// ranked returns the key of a pending request in the index.
func ranked(a eoa.Account, r eoa.Rank) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(prefix(a, kindPending), r.Priority), r.ID)
}

// dueKey returns the due index key of an account at a time in nanoseconds. With
// a nil account it returns the lowest key of that time.
func dueKey(at uint64, a *eoa.Account) []byte {
	key := binary.BigEndian.AppendUint64([]byte{due}, at)
	if a != nil {
		key = appendAccount(key, *a)
	}
	return key
}

// undeliveredKey returns an account's key in the index of accounts with
// unacknowledged events. entry tells the entries of different times apart.
func undeliveredKey(a eoa.Account, entry uint64) []byte {
	return binary.BigEndian.AppendUint64(appendAccount([]byte{undelivered}, a), entry)
}

// parseIndexed returns the account of an entry of an index.
func parseIndexed(key []byte) (a eoa.Account, ok bool) {
	const number = 8
	if len(key) != 1+number+accountSize || !Indexed(key) {
		return a, false
	}
	at := key[1:]
	if key[0] == due {
		at = key[1+number:]
	}
	a.ChainID = binary.BigEndian.Uint64(at)
	copy(a.Address[:], at[8:])
	return a, true
}

// after returns the lowest key above all keys that begin with prefix. prefix
// must have a byte below 255.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
