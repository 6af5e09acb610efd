package statedb

// node is a node of the tree: with a leaf it is a stem, else an inner node. A nil node is empty. Nodes are hashed when they are
// made and never change, so that readers need no lock.
type node struct {
	hash        hash
	left, right *node
	leaf        *leaf
}

func hashOf(n *node) hash {
	if n == nil {
		return hash{}
	}
	return n.hash
}

// bit returns the i-th bit of a stem, the most significant first.
func bit(stem []byte, i int) byte { return stem[i/8] >> (7 - i%8) & 1 }

func newInner(p *Profile, left, right *node) *node {
	// One stem alone stands at the place of its parent: a stem is as shallow as it can be.
	switch {
	case left == nil && (right == nil || right.leaf != nil):
		return right
	case right == nil && left.leaf != nil:
		return left
	}
	return &node{left: left, right: right, hash: p.inner(hashOf(left), hashOf(right))}
}

func newStem(p *Profile, l *leaf) *node {
	return &node{leaf: l, hash: p.Stem(l.stem, l.root)}
}

// get returns the value of a key.
func (n *node) get(k *Key) (value [32]byte, ok bool) {
	for depth := 0; n != nil; depth++ {
		if n.leaf != nil {
			if n.leaf.stem != k.stem() {
				return value, false
			}
			return n.leaf.get(k[StemSize])
		}
		if bit(k[:], depth) == 0 {
			n = n.left
		} else {
			n = n.right
		}
	}
	return value, false
}

// walk calls f for every value in the order of keys, until it returns false.
func (n *node) walk(f func(Key, [32]byte) bool) bool {
	if n == nil {
		return true
	}
	if n.leaf == nil {
		return n.left.walk(f) && n.right.walk(f)
	}
	var k Key
	copy(k[:], n.leaf.stem[:])
	for rank := range n.leaf.values {
		k[StemSize] = n.leaf.index(rank)
		if !f(k, n.leaf.values[rank]) {
			return false
		}
	}
	return true
}
