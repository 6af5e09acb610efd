package ubt

import "github.com/ethereum/go-ethereum/common"

// Hash is the hash of a node.
type Hash = common.Hash

// EmptyRoot is the root of a tree without values.
var EmptyRoot = Hash{}

// Hasher says how nodes are hashed. All funcs must be set and pure, and are called by several goroutines at once. They take values, because
// a pointer passed through a func value would cost a heap allocation per hash. None of them may return zero, which means nothing is there.
type Hasher struct {
	// Leaf hashes a value.
	Leaf func(value [32]byte) Hash
	// Inner hashes two children; the hash of an absent one is zero. It is never asked for two absent ones: they give zero.
	Inner func(left, right Hash) Hash
	// Pairs is Inner of each two neighbours of in, into out, which has half as many. It is for hash functions that work faster on many
	// inputs that do not depend on each other; nil means Inner, one by one. Of two zeros it is never asked either.
	Pairs func(out, in [][32]byte)
	// Stem hashes a stem and the root of its 256 values.
	Stem func(stem [StemSize]byte, values Hash) Hash
}

// inner is Inner with the rule for two absent children.
func (h *Hasher) inner(left, right Hash) Hash {
	if left == (Hash{}) && right == (Hash{}) {
		return Hash{}
	}
	return h.Inner(left, right)
}
