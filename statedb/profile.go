package statedb

import (
	"crypto/sha256"

	"github.com/ethereum/go-ethereum/common"
)

// hash is a node's hash.
type hash = common.Hash

// Profile fixes how a tree is hashed and how the parts of an account become keys. Two trees of different profiles have nothing
// in common. All its functions must be set and pure; they take values, because a pointer passed through a func value would cost
// a heap allocation per hash.
type Profile struct {
	// Name is for people.
	Name string
	// Leaf hashes a value.
	Leaf func(value [32]byte) common.Hash
	// Inner hashes two children; the hash of an absent one is zero. Two absent ones give zero without asking it.
	Inner func(left, right common.Hash) common.Hash
	// Stem hashes a stem and the root of its 256 values.
	Stem func(stem [StemSize]byte, values common.Hash) common.Hash
	// Embed hashes an address and the tree index of a part of its account to a stem.
	Embed func(address common.Address, treeIndex [32]byte) [StemSize]byte
}

// EIP7864 returns the profile of EIP-7864 as its text was on 2026-03-09, with SHA-256 like go-ethereum's binary trie.
// Deleting is not specified there; go-ethereum stores zeros, and so do the account methods of a [View].
func EIP7864() Profile {
	return Profile{
		Name: "EIP-7864/SHA-256",
		Leaf: func(value [32]byte) common.Hash { return sha256.Sum256(value[:]) },
		Inner: func(left, right common.Hash) common.Hash {
			var data [64]byte
			copy(data[:32], left[:])
			copy(data[32:], right[:])
			return sha256.Sum256(data[:])
		},
		Stem: func(stem [StemSize]byte, values common.Hash) common.Hash {
			var data [64]byte
			copy(data[:], stem[:]) // and a zero byte
			copy(data[32:], values[:])
			return sha256.Sum256(data[:])
		},
		Embed: func(address common.Address, treeIndex [32]byte) [StemSize]byte {
			var data [64]byte
			copy(data[12:], address[:])
			copy(data[32:], treeIndex[:])
			sum := sha256.Sum256(data[:])
			return [StemSize]byte(sum[:StemSize])
		},
	}
}

// inner is Inner with the rule for two absent children.
func (p *Profile) inner(left, right hash) hash {
	if left == (hash{}) && right == (hash{}) {
		return hash{}
	}
	return p.Inner(left, right)
}
