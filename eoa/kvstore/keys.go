package kvstore

import (
	"bytes"
	"encoding/hex"
	"strconv"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa"
)

// Keys are text, so that an operator can read a store with the database's own tools.
// Numbers in keys have 20 decimal digits, so that keys sort by them. A key of an
// account begins with
//
//	account:<chain>:<address>:
//
// and continues with its kind and, behind a colon, an id, a number or a name.

// kind is the type of a key of an account.
type kind string

const (
	// kindMeta is the key of the account's meta.
	kindMeta kind = "meta"
	// kindRecord is the key of a record, by id.
	kindRecord kind = "record"
	// kindOpen is the index of records with a nonce that may still change, by
	// id.
	kindOpen kind = "open"
	// kindPending is the index of requests without a nonce, by rank. The values
	// have the numbers of blobs and bytes.
	kindPending kind = "pending"
	// kindKey is the index of ids by the caller's key. Of a dropped record it
	// has more; see dropped.
	kindKey kind = "key"
	// kindHash is the index of ids by an attempt's hash.
	kindHash kind = "hash"
	// kindDigest is the key of the digest of the accepted payload, by id.
	kindDigest kind = "digest"
	// kindOrder is the key of an order, by number.
	kindOrder kind = "order"
	// kindEvent is the key of an event, by number.
	kindEvent kind = "event"
	// kindOrdered is the key of the names of the last orders' steps.
	kindOrdered kind = "ordered"
)

// The first words of keys: those of accounts, of the index of accounts that are due,
// by time in Unix nanoseconds, and of the index of accounts with unacknowledged events.
const (
	accounts    = "account:"
	due         = "due:"
	undelivered = "undelivered:"
)

const (
	numberSize  = 20 // digits
	accountSize = numberSize + len(":0x") + 2*common.AddressLength
	restAt      = len(accounts) + accountSize + len(":")
)

// Indexed reports whether key is an entry of one of the two indexes of accounts.
// These are the only keys that belong to no account. In a shared store the
// entries are hints. An entry that a step adds must be there before the step's
// other writes and after them; an entry that it deletes may stay.
func Indexed(key []byte) bool { return len(key) > 0 && !bytes.HasPrefix(key, []byte(accounts)) }

// Split returns the account that key belongs to, and the rest of the key, which is
// text. It returns false for an entry of an index.
func Split(key []byte) (a eoa.Account, rest []byte, ok bool) {
	if len(key) < restAt || !bytes.HasPrefix(key, []byte(accounts)) {
		return a, nil, false
	}
	a, ok = parseAccount(key[len(accounts) : restAt-len(":")])
	return a, key[restAt:], ok
}

// Join is the inverse of Split.
func Join(a eoa.Account, rest []byte) []byte { return append(begin(a, len(rest)), rest...) }

// Scanned reports whether Scan may be called for key. All other keys are only
// read with Get.
func Scanned(key []byte) bool {
	if len(key) <= restAt || !bytes.HasPrefix(key, []byte(accounts)) {
		return true
	}
	word, _, _ := bytes.Cut(key[restAt:], []byte(":"))
	switch kind(word) {
	case kindMeta, kindKey, kindHash, kindDigest, kindOrdered:
		return false
	}
	return true
}

// begin returns the beginning of the keys of an account, with room for more.
func begin(a eoa.Account, more int) []byte {
	key := append(make([]byte, 0, restAt+more), accounts...)
	return append(appendAccount(key, a), ':')
}

func appendAccount(key []byte, a eoa.Account) []byte {
	key = append(appendNumber(key, a.ChainID), ":0x"...)
	return hex.AppendEncode(key, a.Address[:])
}

func appendNumber(key []byte, n uint64) []byte {
	var digits [numberSize]byte
	for i := len(digits) - 1; i >= 0; i, n = i-1, n/10 {
		digits[i] = '0' + byte(n%10)
	}
	return append(key, digits[:]...)
}

// single returns the only key of an account and a kind.
func single(a eoa.Account, k kind) []byte { return append(begin(a, len(k)), k...) }

// prefix returns the prefix of all keys of an account and a kind.
func prefix(a eoa.Account, k kind) []byte {
	const usual = 64 // bytes of a hash
	return append(append(begin(a, len(k)+1+usual), k...), ':')
}

// numbered returns the key of a kind with a number.
func numbered(a eoa.Account, k kind, number uint64) []byte { return appendNumber(prefix(a, k), number) }

// named returns the key of a kind with a name.
func named(a eoa.Account, k kind, name string) []byte { return append(prefix(a, k), name...) }

// hashed returns the key of a kind with a hash.
func hashed(a eoa.Account, k kind, hash common.Hash) []byte {
	return hex.AppendEncode(prefix(a, k), hash[:])
}

// ranked returns the key of a pending request in the index.
func ranked(a eoa.Account, r eoa.Rank) []byte {
	key := append(appendNumber(prefix(a, kindPending), uint64(r.Priority)), ':')
	return appendNumber(key, r.ID)
}

// numberOf returns the number at the end of a key.
func numberOf(key []byte) uint64 {
	digits := key[max(len(key)-numberSize, 0):]
	n, _ := strconv.ParseUint(string(digits), 10, 64) // this package wrote them
	return n
}

// dueKey returns the due index key of an account at a time in nanoseconds. With
// a nil account it returns the lowest key of that time.
func dueKey(at uint64, a *eoa.Account) []byte {
	key := append(appendNumber([]byte(due), at), ':')
	if a != nil {
		key = appendAccount(key, *a)
	}
	return key
}

// undeliveredKey returns an account's key in the index of accounts with
// unacknowledged events. entry tells the entries of different times apart.
func undeliveredKey(a eoa.Account, entry uint64) []byte {
	return appendNumber(append(appendAccount([]byte(undelivered), a), ':'), entry)
}

// parseIndexed returns the account of an entry of an index.
func parseIndexed(key []byte) (a eoa.Account, ok bool) {
	rest, isDue := bytes.CutPrefix(key, []byte(due))
	if isDue && len(rest) > numberSize {
		rest = rest[numberSize+len(":"):]
	} else if rest, ok = bytes.CutPrefix(key, []byte(undelivered)); ok && len(rest) > accountSize {
		rest = rest[:accountSize]
	}
	return parseAccount(rest)
}

// parseAccount is the inverse of appendAccount.
func parseAccount(text []byte) (a eoa.Account, ok bool) {
	if len(text) != accountSize {
		return a, false
	}
	var err error
	if a.ChainID, err = strconv.ParseUint(string(text[:numberSize]), 10, 64); err != nil {
		return a, false
	}
	_, err = hex.Decode(a.Address[:], text[numberSize+len(":0x"):])
	return a, err == nil
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
