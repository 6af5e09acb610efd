package ubt

import (
	"crypto/sha256"

	"github.com/ethereum/go-ethereum/common"
)

// Hash is the hash of a node.
type Hash = common.Hash

// EmptyRoot is the root of a tree without values.
var EmptyRoot = Hash{}

// Hasher contains the hash functions of a tree. All functions except Pairs must be
// set. They must be pure and safe for concurrent use. They must not return zero,
// which is the hash of an empty subtree. The functions take values and not
// pointers, because a pointer that is passed through a function value would cost an
// allocation for each hash.
type Hasher struct {
	// Leaf hashes a value.
	Leaf func(value [32]byte) Hash
	// Inner hashes an inner node, given the hashes of its two children. The hash of an empty child
	// is zero. At most one child is empty.
	Inner func(left, right Hash) Hash
	// Pairs computes Inner for many pairs at once, because some hash functions are
	// faster if they process several inputs together. Each two consecutive elements
	// of in are a pair, and the results go to out, which is half as long. No pair
	// consists of two zeros. If Pairs is nil, Inner is called for each pair.
	Pairs func(out, in [][32]byte)
	// Stem hashes a stem: its name together with the root of the tree over its 256 values.
	Stem func(stem [StemSize]byte, values Hash) Hash
	// StemsArePairs is true if the hash of a stem is computed like that of an inner node: if
	// Stem(stem, values) equals Inner(stem with a zero byte appended, values). The tree then
	// also hashes stems in batches, with Pairs.
	StemsArePairs bool
}

// SHA256 returns the hash functions of EIP-7864 in its version of 2026-03-09, with
// SHA-256. go-ethereum's binary trie uses the same functions.
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

// inner returns the hash of an inner node, or zero without children.
func (h *Hasher) inner(left, right Hash) Hash {
	if left == (Hash{}) && right == (Hash{}) {
		return Hash{}
	}
	return h.Inner(left, right)
}
