package ubt

import "github.com/ethereum/go-ethereum/common"

// Hash is the hash of a node.
type Hash = common.Hash

// EmptyRoot is the root of a tree without values.
var EmptyRoot = Hash{}

// Hasher has the hash functions of a tree. All functions except Pairs must be
// set. They must be pure and safe for concurrent use, and must not return zero,
// which means an empty place. They take values, because a pointer passed
// through a function value would cost an allocation per hash.
type Hasher struct {
	// Leaf hashes a value.
	Leaf func(value [32]byte) Hash
	// Inner hashes two children. The hash of an empty child is zero; at most
	// one is empty.
	Inner func(left, right Hash) Hash
	// Pairs writes Inner of each two neighbors of in to out, which is half as
	// long. It is for hash functions that process many independent inputs
	// faster in one call. nil means that Inner is called for each pair. A pair
	// never has two zeros.
	Pairs func(out, in [][32]byte)
	// Stem hashes a stem and the root of its 256 values.
	Stem func(stem [StemSize]byte, values Hash) Hash
	// StemsArePairs means that Stem returns the same as Inner of the stem with
	// a zero byte appended, and values. Stems are hashed with Pairs then.
	StemsArePairs bool
}

// inner is Inner extended to two empty children.
func (h *Hasher) inner(left, right Hash) Hash {
	if left == (Hash{}) && right == (Hash{}) {
		return Hash{}
	}
	return h.Inner(left, right)
}
