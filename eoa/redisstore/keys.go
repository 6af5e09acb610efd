// Package redisstore fixes under which keys the records of package eoa stand in Redis. The store itself is not here yet.
//
// All keys of an account carry its name in braces, {chain:address}, so that Redis Cluster keeps them in one slot and one script can
// change them in one atomic step.
package redisstore

import (
	"fmt"
	"strconv"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa"
)

// Keys gives the keys of one account. Make one with [For].
type Keys struct{ prefix string }

// For returns the keys of an account below a prefix, "jamq" for example. The prefix must not hold a brace, which would move the hash tag.
func For(prefix string, a eoa.Account) (Keys, error) {
	for _, c := range prefix {
		if c == '{' || c == '}' {
			return Keys{}, fmt.Errorf("redisstore: prefix %q holds a brace, want none: it would move the hash tag", prefix)
		}
	}
	return Keys{fmt.Sprintf("%s:{%d:%s}", prefix, a.ChainID, a.Address.Hex())}, nil
}

// Pending is a sorted set of request ids by the time of acceptance.
func (k Keys) Pending() string { return k.prefix + ":pending" }

// Borrowed is a hash from nonce to the id of a prepared request.
func (k Keys) Borrowed() string { return k.prefix + ":borrowed" }

// Submitted is a sorted set of request ids by nonce.
func (k Keys) Submitted() string { return k.prefix + ":submitted" }

// Recycled is a sorted set of nonces that must be filled.
func (k Keys) Recycled() string { return k.prefix + ":recycled" }

// Nonce is the next nonce to assign.
func (k Keys) Nonce() string { return k.prefix + ":nonce" }

// Lease is a hash of the epoch and the owner of the account's lease.
func (k Keys) Lease() string { return k.prefix + ":lease" }

// Record is the record of a request.
func (k Keys) Record(id uint64) string { return k.prefix + ":record:" + strconv.FormatUint(id, 10) }

// ByHash is the id of the request that a transaction belongs to.
func (k Keys) ByHash(tx common.Hash) string { return k.prefix + ":hash:" + tx.Hex() }

// ByKey is the id of the request with the caller's key.
func (k Keys) ByKey(key string) string { return k.prefix + ":key:" + key }
