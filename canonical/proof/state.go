package proof

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"
)

// StateNode is a node of the JAM state trie: a branch or a leaf (GP D.3 to
// D.5).
type StateNode [64]byte

const (
	keyBits     = 8 * len(StateKey{})
	leafBit     = 0x80 // set in the first byte of a leaf, clear in that of a branch
	hashedBit   = 0x40 // set in a leaf that holds its value's hash
	maxEmbedded = 32   // bytes of the longest value that lies in the leaf itself
)

// leaf returns the node of one entry. It contains a short value itself, and the
// hash of a longer one.
func leaf(key StateKey, value []byte) (n StateNode) {
	copy(n[1:], key[:])
	if len(value) <= maxEmbedded {
		n[0] = leafBit | byte(len(value))
		copy(n[32:], value)
		return n
	}
	n[0] = leafBit | hashedBit
	hash := blake2b.Sum256(value)
	copy(n[32:], hash[:])
	return n
}

// branch returns the node of two subtries. The left hash loses its first bit,
// which marks the node as a branch.
func branch(left, right common.Hash) (n StateNode) {
	copy(n[:32], left[:])
	n[0] &^= leafBit
	copy(n[32:], right[:])
	return n
}

func (n *StateNode) hash() common.Hash { return blake2b.Sum256(n[:]) }

// VerifyState checks that the state with the given root has the value under the
// key. nodes lead from the root to the leaf. The error wraps ErrState.
func VerifyState(root common.Hash, key StateKey, value []byte, nodes []StateNode) error {
	end, err := walk(root, key, nodes)
	switch {
	case err != nil:
		return err
	case end == nil || *end != leaf(key, value):
		return fmt.Errorf("%w: the state does not have this value of %d bytes under %x", ErrState, len(value), key)
	}
	return nil
}

// VerifyStateAbsent checks that the state with the given root has no value
// under the key. nodes lead from the root to an empty subtrie or to the leaf of
// a different key. The error wraps ErrState.
func VerifyStateAbsent(root common.Hash, key StateKey, nodes []StateNode) error {
	end, err := walk(root, key, nodes)
	switch {
	case err != nil:
		return err
	case end != nil && StateKey(end[1:32]) == key:
		return fmt.Errorf("%w: the state has a value under %x", ErrState, key)
	}
	return nil
}

// walk follows the nodes along the key's bits. It returns the leaf at the end,
// or nil if the subtrie is empty.
func walk(root common.Hash, key StateKey, nodes []StateNode) (*StateNode, error) {
	want, masked := root, false
	for depth := range nodes {
		n := &nodes[depth]
		have := n.hash()
		if masked { // the bit that a branch omits
			have[0] &^= leafBit
		}
		switch {
		case have != want:
			return nil, fmt.Errorf("%w: node %d hashes to %s, want %s", ErrState, depth, have, want)
		case n[0]&leafBit != 0 && depth != len(nodes)-1:
			return nil, fmt.Errorf("%w: %d nodes follow the leaf at %d", ErrState, len(nodes)-1-depth, depth)
		case n[0]&leafBit != 0:
			return n, nil
		case depth >= keyBits:
			return nil, fmt.Errorf("%w: a branch below %d bits", ErrState, keyBits)
		}
		masked = key.bit(depth) == 0
		if want = common.Hash(n[32:]); masked {
			want = common.Hash(n[:32])
		}
	}
	if want != (common.Hash{}) {
		return nil, fmt.Errorf("%w: it ends after %d nodes, above %s", ErrState, len(nodes), want)
	}
	return nil, nil
}

// CollectState selects the proof of a key's value from the nodes of a JAM
// node's answer to a state request (JAMNP-S CE 129). The nodes may be in any
// order, with unrelated ones among them, and the leaf may be missing. The error
// wraps ErrState if they do not lead from the root to the value.
func CollectState(root common.Hash, key StateKey, value []byte, nodes []StateNode) ([]StateNode, error) {
	byHash := make(map[common.Hash]*StateNode, len(nodes)+1)
	put := func(n *StateNode) {
		hash := n.hash()
		byHash[hash] = n
		hash[0] &^= leafBit
		byHash[hash] = n
	}
	end := leaf(key, value)
	put(&end)
	for i := range nodes {
		put(&nodes[i])
	}
	var path []StateNode
	for want := root; ; {
		n := byHash[want]
		if n == nil {
			return nil, fmt.Errorf("%w: node %d on the way to %x, %s, is missing", ErrState, len(path), key, want)
		}
		path = append(path, *n)
		if n[0]&leafBit != 0 || len(path) > keyBits {
			break
		}
		if want = common.Hash(n[:32]); key.bit(len(path)-1) == 1 {
			want = common.Hash(n[32:])
		}
	}
	if err := VerifyState(root, key, value, path); err != nil {
		return nil, err
	}
	return path, nil
}
