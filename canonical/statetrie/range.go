package statetrie

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// Entry is one entry of a state: a Key with its Value.
type Entry struct {
	Key   Key
	Value []byte
}

// VerifyRange checks that the state with the given root has exactly the given
// entries from first to last, both included: none is added, changed or omitted. The
// entries must be in ascending order of their keys. nodes must include the nodes on
// the paths to the keys first and last, in any order; the boundary of a peer's
// answer to a state request consists of these nodes (JAMNP-S CE 129). The error
// wraps ErrProof.
func VerifyRange(root common.Hash, first, last Key, entries []Entry, nodes []Node) error {
	for i := range entries {
		key := entries[i].Key[:]
		if bytes.Compare(key, first[:]) < 0 || bytes.Compare(key, last[:]) > 0 || i > 0 && bytes.Compare(entries[i-1].Key[:], key) >= 0 {
			return fmt.Errorf("%w: key %x is out of order or not between %x and %x", ErrProof, key, first, last)
		}
	}
	r := stateRange{first: first, last: last, nodes: make(map[common.Hash]*Node, len(nodes))}
	for i := range nodes {
		r.nodes[short(nodes[i].hash())] = &nodes[i]
	}
	return r.verify(root, false, Key{}, 0, entries)
}

// short clears the first bit of a hash. A branch stores the hash of its left child
// without that bit.
func short(hash common.Hash) common.Hash {
	hash[0] &^= leafBit
	return hash
}

// stateRange verifies the entries between two keys. It finds the nodes of the answer by
// their hashes, whose first bit is cleared, because a branch does not store that bit of
// its left hash.
type stateRange struct {
	first, last Key
	nodes       map[common.Hash]*Node
}

// verify checks the subtrie whose keys begin with the first depth bits of prefix. want
// is its hash; if left is true, the hash lacks its first bit.
func (r *stateRange) verify(want common.Hash, left bool, prefix Key, depth int, entries []Entry) error {
	if bytes.Compare(prefix.fill(depth), r.first[:]) < 0 || bytes.Compare(prefix[:], r.last[:]) > 0 {
		// The subtrie is outside the range.
		return nil
	}
	known := func(hash common.Hash) common.Hash {
		if left {
			return short(hash)
		}
		return hash
	}
	n := r.nodes[short(want)]
	switch {
	case n == nil || known(n.hash()) != want, n[0]&leafBit != 0, depth >= keyBits:
		// The answer contains no branch at this position, so the given entries must be all
		// entries below it.
		return r.verifyWhole(want, known, n, depth, entries)
	}
	// A node occurs only once in a state, because each leaf contains its key. The node is
	// removed, so that a forged answer cannot make this function run in a circle.
	delete(r.nodes, short(want))
	right := prefix
	right[depth/8] |= 1 << (7 - depth%8)
	middle, _ := slices.BinarySearchFunc(entries, right, func(e Entry, key Key) int { return bytes.Compare(e.Key[:], key[:]) })
	if err := r.verify(common.Hash(n[:32]), true, prefix, depth+1, entries[:middle]); err != nil {
		return err
	}
	return r.verify(common.Hash(n[32:]), false, right, depth+1, entries[middle:])
}

// verifyWhole checks a subtrie for which the answer has no branch.
func (r *stateRange) verifyWhole(want common.Hash, known func(common.Hash) common.Hash, n *Node, depth int, entries []Entry) error {
	if n != nil && n[0]&leafBit != 0 && known(n.hash()) == want && len(entries) == 0 &&
		(bytes.Compare(n[1:32], r.first[:]) < 0 || bytes.Compare(n[1:32], r.last[:]) > 0) {
		// The subtrie is a leaf outside the range.
		return nil
	}
	// All entries of this subtrie must be among the given ones. Build it from them, and
	// compare the hashes.
	var subtrie *trieNode
	for _, e := range entries {
		subtrie = subtrie.set(newLeaf(&trieEntry{e.Key, e.Value}), depth)
	}
	if have := known(subtrie.root()); have != want {
		return fmt.Errorf("%w: the %d entries below bit %d make %s, want %s", ErrProof, len(entries), depth, have, want)
	}
	return nil
}

// fill returns the greatest key that begins with the first depth bits of k.
func (k Key) fill(depth int) []byte {
	for bit := depth; bit < keyBits; bit++ {
		k[bit/8] |= 1 << (7 - bit%8)
	}
	return k[:]
}
