package statetrie

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"golang.org/x/crypto/blake2b"
)

// Node is an encoded node of the JAM state trie: a branch or a leaf (GP D.3 to
// D.5). A proof is a list of nodes.
type Node [64]byte

const (
	keyBits     = 8 * len(Key{})
	leafBit     = 0x80 // set in the first byte of a leaf, clear in that of a branch
	hashedBit   = 0x40 // set in a leaf that holds its value's hash
	maxEmbedded = 32   // bytes of the longest value that lies in the leaf itself
)

// leaf returns the node of one entry.
func leaf(key Key, value []byte) (n Node) {
	copy(n[1:], key[:])
	if len(value) <= maxEmbedded {
		n[0] = leafBit | byte(len(value))
		copy(n[32:], value)
		return n
	}
	// A longer value does not fit into the node, which contains its hash instead.
	n[0] = leafBit | hashedBit
	hash := blake2b.Sum256(value)
	copy(n[32:], hash[:])
	return n
}

// branch returns the node above two subtries with the given hashes.
func branch(left, right common.Hash) (n Node) {
	copy(n[:32], left[:])
	// A clear first bit marks a node as a branch, so the first bit of the left hash is
	// lost.
	n[0] &^= leafBit
	copy(n[32:], right[:])
	return n
}

func (n *Node) hash() common.Hash { return blake2b.Sum256(n[:]) }

// MarshalText returns the node in hexadecimal. The error is always nil.
func (n Node) MarshalText() ([]byte, error) { return hexutil.Bytes(n[:]).MarshalText() }

// UnmarshalText reads the node from hexadecimal with 0x.
func (n *Node) UnmarshalText(text []byte) error {
	return hexutil.UnmarshalFixedText("Node", text, n[:])
}

// Verify checks that the state with the given root has the value under the key.
// nodes must be the nodes from the root to the leaf of the key. The error wraps
// ErrProof.
func Verify(root common.Hash, key Key, value []byte, nodes []Node) error {
	end, err := walk(root, key, nodes)
	switch {
	case err != nil:
		return err
	case end == nil || *end != leaf(key, value):
		return fmt.Errorf("%w: the state does not have this value of %d bytes under %x", ErrProof, len(value), key)
	}
	return nil
}

// VerifyAbsent checks that the state with the given root has no value under the
// key. nodes must be the nodes from the root to an empty subtrie, or to the leaf of
// a different key. The error wraps ErrProof.
func VerifyAbsent(root common.Hash, key Key, nodes []Node) error {
	end, err := walk(root, key, nodes)
	switch {
	case err != nil:
		return err
	case end != nil && Key(end[1:32]) == key:
		return fmt.Errorf("%w: the state has a value under %x", ErrProof, key)
	}
	return nil
}

// walk follows a proof from the root, branch by branch as the bits of the key say, and
// checks the hash of each node. It returns the leaf at the end, or nil if the proof ends
// at an empty subtrie.
func walk(root common.Hash, key Key, nodes []Node) (*Node, error) {
	want, masked := root, false
	for depth := range nodes {
		n := &nodes[depth]
		have := n.hash()
		if masked { // A branch does not store the first bit of its left hash.
			have[0] &^= leafBit
		}
		switch {
		case have != want:
			return nil, fmt.Errorf("%w: node %d hashes to %s, want %s", ErrProof, depth, have, want)
		case n[0]&leafBit != 0 && depth != len(nodes)-1:
			return nil, fmt.Errorf("%w: %d nodes follow the leaf at %d", ErrProof, len(nodes)-1-depth, depth)
		case n[0]&leafBit != 0:
			return n, nil
		case depth >= keyBits:
			return nil, fmt.Errorf("%w: a branch below %d bits", ErrProof, keyBits)
		}
		masked = key.bit(depth) == 0
		if want = common.Hash(n[32:]); masked {
			want = common.Hash(n[:32])
		}
	}
	if want != (common.Hash{}) {
		return nil, fmt.Errorf("%w: it ends after %d nodes, above %s", ErrProof, len(nodes), want)
	}
	return nil, nil
}

// Collect finds the proof of a value among the nodes of a peer's answer to a state
// request (JAMNP-S CE 129). The nodes may be in any order and may include unrelated
// nodes, and the leaf may be missing. The error wraps ErrProof if the nodes do not
// lead from the root to the value.
func Collect(root common.Hash, key Key, value []byte, nodes []Node) ([]Node, error) {
	byHash := make(map[common.Hash]*Node, len(nodes)+1)
	put := func(n *Node) {
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
	var path []Node
	for want := root; ; {
		n := byHash[want]
		if n == nil {
			return nil, fmt.Errorf("%w: node %d on the way to %x, %s, is missing", ErrProof, len(path), key, want)
		}
		path = append(path, *n)
		if n[0]&leafBit != 0 || len(path) > keyBits {
			break
		}
		if want = common.Hash(n[:32]); key.bit(len(path)-1) == 1 {
			want = common.Hash(n[32:])
		}
	}
	if err := Verify(root, key, value, path); err != nil {
		return nil, err
	}
	return path, nil
}
