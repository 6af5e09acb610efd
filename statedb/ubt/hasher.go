package ubt

import (
	"crypto/sha256"

	"github.com/ethereum/go-ethereum/common"
)

// Hash is the hash of a node.
type Hash = common.Hash

// EmptyRoot is the root of a tree without values.
var EmptyRoot = Hash{}

// Hasher holds the hash functions of a tree. All functions except Pairs must be set. They must be
// pure and safe for concurrent use. They must not return zero, which is the hash of an empty
// subtree. They take values instead of pointers, because a pointer that is passed through a
// function value would cost an allocation for each hash.
type Hasher struct {
	// Leaf hashes a value.
	Leaf func(value [32]byte) Hash
	// Inner hashes the hashes of two children. The hash of an empty child is zero. At most one
	// child is empty.
	Inner func(left, right Hash) Hash
	// Pairs does the same as many calls of Inner: it hashes each two neighbors in in, and writes
	// the results to out, which is half as long. Hash functions that process several inputs at once
	// are faster this way. If Pairs is nil, Inner is called for each pair. A pair never has two
	// zeros.
	Pairs func(out, in [][32]byte)
	// Stem hashes a stem together with the root of its 256 values.
	Stem func(stem [StemSize]byte, values Hash) Hash
	// StemsArePairs means that Stem(stem, values) equals Inner(stem with a zero byte appended,
	// values). Stems are then hashed with Pairs too.
	StemsArePairs bool
}

// SHA256 returns the hash functions of EIP-7864 in its version of 2026-03-09,
// with SHA-256 like go-ethereum's binary trie.
func SHA256() Hasher {
	return Hasher{
		Leaf:  func(value [32]byte) Hash { return sha256.Sum256(value[:]) },
		Inner: func(left, right Hash) Hash { return sha256Pair(left, right) },
		Pairs: sha256Pairs,
		Stem: func(stem [StemSize]byte, values Hash) Hash {
			var whole Hash // the stem with a zero byte appended
			copy(whole[:], stem[:])
			return sha256Pair(whole, values)
		},
		StemsArePairs: true,
	}
}

func sha256Pair(left, right Hash) Hash {
	var data [2 * len(left)]byte
	copy(data[:], left[:])
	copy(data[len(left):], right[:])
	return sha256.Sum256(data[:])
}

// inner is Inner, and returns zero if both children are empty.
func (h *Hasher) inner(left, right Hash) Hash {
	if left == (Hash{}) && right == (Hash{}) {
		return Hash{}
	}
	return h.Inner(left, right)
}
