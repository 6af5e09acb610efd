package statetrie

import (
	"bytes"

	"github.com/ethereum/go-ethereum/common"
)

// Trie is a JAM state: entries, and a root hash over all of them (GP D). It is
// immutable: [Trie.Set] and [Trie.Delete] return a new trie, which shares all nodes
// except those on the path to the key. A host can therefore afford to keep the
// state after every block. The zero value, and nil, are the empty state.
type Trie struct{ top *trieNode }

// trieNode is a leaf if it has an entry, and otherwise a branch. A nil pointer is an
// empty subtrie. The type is small, because a host that keeps the state after each
// block stores some tens of nodes per block.
type trieNode struct {
	hash     common.Hash
	children [2]*trieNode
	entry    *trieEntry
}

// trieEntry is a key with its value.
type trieEntry struct {
	key   Key
	value []byte
}

func newLeaf(e *trieEntry) *trieNode {
	node := leaf(e.key, e.value)
	return &trieNode{hash: node.hash(), entry: e}
}

func newBranch(children [2]*trieNode) *trieNode {
	node := branch(children[0].root(), children[1].root())
	return &trieNode{hash: node.hash(), children: children}
}

// encoded returns the node as it appears in proofs.
func (n *trieNode) encoded() Node {
	if n.entry != nil {
		return leaf(n.entry.key, n.entry.value)
	}
	return branch(n.children[0].root(), n.children[1].root())
}

func (n *trieNode) root() common.Hash {
	if n == nil {
		return common.Hash{}
	}
	return n.hash
}

// Root returns the state root. It is zero for the empty state.
func (t *Trie) Root() common.Hash { return t.node().root() }

func (t *Trie) node() *trieNode {
	if t == nil {
		return nil
	}
	return t.top
}

// Set returns a copy of the state in which the key has the given value. The receiver
// does not change. An empty value is different from an absent key. Set copies the
// value.
func (t *Trie) Set(key Key, value []byte) *Trie {
	return &Trie{top: t.node().set(newLeaf(&trieEntry{key, bytes.Clone(value)}), 0)}
}

// set returns a copy of the subtrie that contains the leaf l. If the subtrie has a leaf
// with the same key, l replaces it.
func (n *trieNode) set(l *trieNode, depth int) *trieNode {
	if n == nil || n.entry != nil && n.entry.key == l.entry.key {
		return l
	}
	children := n.children
	if n.entry != nil {
		children[n.entry.key.bit(depth)] = n
	}
	side := l.entry.key.bit(depth)
	children[side] = children[side].set(l, depth+1)
	return newBranch(children)
}

// Delete returns the state without the key. The key may be absent.
func (t *Trie) Delete(key Key) *Trie { return &Trie{top: t.node().delete(key, 0)} }

// delete returns the subtrie at the given depth without the leaf of the key.
func (n *trieNode) delete(key Key, depth int) *trieNode {
	if n == nil || n.entry != nil {
		if n != nil && n.entry.key == key {
			return nil
		}
		return n
	}
	children := n.children
	side := key.bit(depth)
	children[side] = children[side].delete(key, depth+1)
	for i, child := range children {
		// A single leaf below a branch replaces the branch, so that the root depends
		// only on the entries and not on their history.
		if child == nil && (children[1-i] == nil || children[1-i].entry != nil) {
			return children[1-i]
		}
	}
	return newBranch(children)
}

// Get returns a copy of the value of a key, and reports whether the key is
// present.
func (t *Trie) Get(key Key) (value []byte, ok bool) {
	n := t.node()
	for depth := 0; n != nil && n.entry == nil; depth++ {
		n = n.children[key.bit(depth)]
	}
	if n == nil || n.entry.key != key {
		return nil, false
	}
	return bytes.Clone(n.entry.value), true
}

// Prove returns the nodes from the root to the leaf of the key, which [Verify]
// checks. If the key is absent, the nodes end at an empty subtrie or at the leaf of
// a different key, which [VerifyAbsent] checks.
func (t *Trie) Prove(key Key) []Node {
	var nodes []Node
	n := t.node()
	for depth := 0; n != nil; depth++ {
		nodes = append(nodes, n.encoded())
		if n.entry != nil {
			break
		}
		n = n.children[key.bit(depth)]
	}
	return nodes
}
