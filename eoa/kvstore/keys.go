package kvstore

import (
	"bytes"
	"encoding/hex"
	"math"
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
	// kindOpen lists the ids of the records that have a nonce and may still change. With this
	// list, a worker that takes over an account need not read the records that have ended.
	kindOpen kind = "open"
	// kindPending is the index of requests without a nonce; see ranked. The values
	// have the sizes of the records.
	kindPending kind = "pending"
	// kindKey finds a record by the key that the user has given to the request: the value is
	// the id of the record. If the record was deleted, the value also has its state and a
	// digest of the request: see parseDropped.
	kindKey kind = "key"
	// kindHash is the index of ids by an attempt's hash.
	kindHash kind = "hash"
	// kindDigest is the key of the digest of the accepted payload, by id.
	kindDigest kind = "digest"
	// kindOrder is the key of an order, by number.
	kindOrder kind = "order"
	// kindEvent is the key of an event, by number.
	kindEvent kind = "event"
	// kindOrdered is the key of a list with the random names of the last steps
	// that stored orders. Store.Order checks the list, so that a step that is
	// tried again does not store its order twice.
	kindOrdered kind = "ordered"
)

// Every key begins with one of these words. accounts is for the keys of an
// account, due for the index of accounts by the time in Unix nanoseconds from
// which they need a worker, and undelivered for the index of accounts with
// unacknowledged events.
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

// Indexed reports whether a key is an entry of one of the two indexes of accounts. All other
// keys belong to an account.
//
// A KV that keeps index entries apart from the accounts need not write them
// atomically with the rest of a step. If a step adds an entry, the entry must exist
// both before and after the step's other writes. If a step deletes an entry, the
// entry may stay, because an outdated entry does no harm.
func Indexed(key []byte) bool { return len(key) > 0 && !bytes.HasPrefix(key, []byte(accounts)) }

// Split returns the account that a key belongs to, and the rest of the key, which is text. It
// returns false if the key is an entry of an index.
func Split(key []byte) (a eoa.Account, rest []byte, ok bool) {
	if len(key) < restAt || !bytes.HasPrefix(key, []byte(accounts)) {
		return a, nil, false
	}
	a, ok = parseAccount(key[len(accounts) : restAt-len(":")])
	return a, key[restAt:], ok
}

// Join is the inverse of Split.
func Join(a eoa.Account, rest []byte) []byte { return append(begin(a, len(rest)), rest...) }

// Scanned reports whether Scan is ever called for a range that contains this key.
// All other keys are read only with Get, so a KV need not keep them in order.
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

// begin returns the prefix of all keys of an account, with capacity for more bytes.
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

// single returns the key under which an account has the only entry of a kind, for example
// its "meta". Other kinds have many entries, whose keys end with an id.
func single(a eoa.Account, k kind) []byte { return append(begin(a, len(k)), k...) }

// prefix returns the prefix of all keys of an account and a kind.
func prefix(a eoa.Account, k kind) []byte {
	const usual = 64 // bytes of a hash
	return append(append(begin(a, len(k)+1+usual), k...), ':')
}

// numbered returns the account's key of a kind that is followed by a number.
func numbered(a eoa.Account, k kind, number uint64) []byte { return appendNumber(prefix(a, k), number) }

// named returns the account's key of a kind that is followed by a name.
func named(a eoa.Account, k kind, name string) []byte { return append(prefix(a, k), name...) }

// hashed returns the account's key of a kind that is followed by a hash.
func hashed(a eoa.Account, k kind, hash common.Hash) []byte {
	return hex.AppendEncode(prefix(a, k), hash[:])
}

// ranked returns the key of a pending request in the index of pending requests.
func ranked(a eoa.Account, r *eoa.Record) []byte {
	// Requests are sent in the order of this index: higher priority first and, for equal
	// priorities, lower id first.
	key := appendNumber(prefix(a, kindPending), uint64(math.MaxInt32-int64(r.Priority)))
	return appendNumber(append(key, ':'), r.ID)
}

// numberOf returns the number at the end of a key.
func numberOf(key []byte) uint64 {
	digits := key[max(len(key)-numberSize, 0):]
	n, _ := strconv.ParseUint(string(digits), 10, 64) // this package wrote them
	return n
}

// dueKey returns the key of an account in the index of due times.
func dueKey(at uint64, a *eoa.Account) []byte {
	key := append(appendNumber([]byte(due), at), ':')
	// Without an account, the key is the lowest one of that time.
	if a != nil {
		key = appendAccount(key, *a)
	}
	return key
}

// undeliveredKey returns the key of an account in the index of undelivered events.
// entry differs between entries made at different times; see step.undelivered.
func undeliveredKey(a eoa.Account, entry uint64) []byte {
	return appendNumber(append(appendAccount([]byte(undelivered), a), ':'), entry)
}

// parseIndexed returns the account of a key in one of the two indexes.
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

// after returns the lowest key above all keys that begin with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	// All bytes are 255, which is true of no prefix of this package.
	return nil
}
