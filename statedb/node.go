package statedb

import "math/bits"

// node is a node of the tree: with a leaf it is a stem, else an inner node. A nil node is empty. Nodes are hashed when they are
// made and never change, so that readers need no lock.
type node struct {
	hash        hash
	left, right *node
	leaf        *leaf
}

// leaf holds the values under one stem: those whose bit is set in present, packed in the order of their index.
type leaf struct {
	stem    [StemSize]byte
	present [4]uint64
	values  [][32]byte
}

func hashOf(n *node) hash {
	if n == nil {
		return hash{}
	}
	return n.hash
}

// bit returns the i-th bit of a stem, the most significant first.
func bit(stem []byte, i int) byte { return stem[i/8] >> (7 - i%8) & 1 }

// rank returns how many values stand before index i, and whether i holds one.
func (l *leaf) rank(i byte) (int, bool) {
	word, shift := i/64, i%64
	n := bits.OnesCount64(l.present[word] & (1<<shift - 1))
	for _, w := range l.present[:word] {
		n += bits.OnesCount64(w)
	}
	return n, l.present[word]>>shift&1 == 1
}

func (l *leaf) get(i byte) (value [32]byte, ok bool) {
	if n, ok := l.rank(i); ok {
		return l.values[n], true
	}
	return value, false
}

// root hashes the values from index lo on, size of them, as a binary tree.
func (l *leaf) root(p *Profile, lo, size int) hash {
	from, to := l.count(lo), l.count(lo+size)
	if from == to {
		return hash{}
	}
	if size == 1 {
		return p.Leaf(&l.values[from])
	}
	left, right := l.root(p, lo, size/2), l.root(p, lo+size/2, size/2)
	return p.inner(&left, &right)
}

// count returns how many values stand before index i, from 0 to 256.
func (l *leaf) count(i int) int {
	if i > 255 {
		return len(l.values)
	}
	n, _ := l.rank(byte(i))
	return n
}

func newInner(p *Profile, left, right *node) *node {
	// One stem alone stands at the place of its parent: a stem is as shallow as it can be.
	switch {
	case left == nil && (right == nil || right.leaf != nil):
		return right
	case right == nil && left.leaf != nil:
		return left
	}
	l, r := hashOf(left), hashOf(right)
	return &node{left: left, right: right, hash: p.inner(&l, &r)}
}

func newStem(p *Profile, l *leaf) *node {
	if len(l.values) == 0 {
		return nil
	}
	values := l.root(p, 0, 256)
	return &node{leaf: l, hash: p.Stem(&l.stem, &values)}
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
	for i := range 256 {
		if value, ok := n.leaf.get(byte(i)); ok {
			var k Key
			copy(k[:], n.leaf.stem[:])
			k[StemSize] = byte(i)
			if !f(k, value) {
				return false
			}
		}
	}
	return true
}
