package proof

import (
	"bytes"

	"github.com/ethereum/go-ethereum/common"
)

// StateTrie is a JAM state: keys with values under a root (GP D). It never changes: [StateTrie.Set] returns another one, which shares all
// nodes but those on the way to the key. So a host may keep the state after each block. The zero value, and nil, is the empty state.
type StateTrie struct{ top *trieNode }

// trieNode is a branch or, where it has no children, a leaf. An empty place is a nil pointer.
type trieNode struct {
	children [2]*trieNode
	key      StateKey
	value    []byte
	node     StateNode
	hash     common.Hash
}

func newLeaf(key StateKey, value []byte) *trieNode {
	n := &trieNode{key: key, value: value, node: leaf(key, value)}
	n.hash = n.node.hash()
	return n
}

func newBranch(children [2]*trieNode) *trieNode {
	n := &trieNode{children: children, node: branch(children[0].root(), children[1].root())}
	n.hash = n.node.hash()
	return n
}

func (n *trieNode) isLeaf() bool { return n.children == [2]*trieNode{} }

func (n *trieNode) root() common.Hash {
	if n == nil {
		return common.Hash{}
	}
	return n.hash
}

// Root returns the state root; zero for the empty state.
func (t *StateTrie) Root() common.Hash { return t.node().root() }

func (t *StateTrie) node() *trieNode {
	if t == nil {
		return nil
	}
	return t.top
}

// Set returns the state in which a key has a value, which may be empty: that is not an absent key. The value is copied.
func (t *StateTrie) Set(key StateKey, value []byte) *StateTrie {
	return &StateTrie{top: t.node().set(newLeaf(key, bytes.Clone(value)), 0)}
}

// set returns the subtrie at a depth with a leaf put into it.
func (n *trieNode) set(l *trieNode, depth int) *trieNode {
	if n == nil || n.isLeaf() && n.key == l.key {
		return l
	}
	var children [2]*trieNode
	if n.isLeaf() {
		children[n.key.bit(depth)] = n
	} else {
		children = n.children
	}
	side := l.key.bit(depth)
	children[side] = children[side].set(l, depth+1)
	return newBranch(children)
}

// Get returns a copy of a key's value, and whether it has one.
func (t *StateTrie) Get(key StateKey) (value []byte, ok bool) {
	n := t.node()
	for depth := 0; n != nil && !n.isLeaf(); depth++ {
		n = n.children[key.bit(depth)]
	}
	if n == nil || n.key != key {
		return nil, false
	}
	return bytes.Clone(n.value), true
}

// Prove returns the nodes from the root down to the key's leaf; or, for an absent key, to the empty place or the other key's leaf
// that shows it.
func (t *StateTrie) Prove(key StateKey) []StateNode {
	var nodes []StateNode
	n := t.node()
	for depth := 0; n != nil; depth++ {
		nodes = append(nodes, n.node)
		if n.isLeaf() {
			break
		}
		n = n.children[key.bit(depth)]
	}
	return nodes
}
