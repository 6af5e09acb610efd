package ubt

import (
	"errors"
	"fmt"
)

var (
	// ErrHidden is returned by a tree that was opened from a proof if a call needs a part of the
	// tree that the proof does not contain.
	ErrHidden = errors.New("ubt: not in the proof")
	// ErrOrder is returned if the keys of writes, uses or added values are not strictly ascending.
	ErrOrder = errors.New("ubt: keys not in ascending order")
)

// Tree is one version of a tree. It never changes: Apply returns another Tree, and
// the two share all equal parts. The zero value is the empty tree. A Tree is safe
// for concurrent use.
type Tree struct{ root ref }

// Root returns the hash of the tree, or EmptyRoot if it is empty.
func (t Tree) Root() Hash { return t.root.sum }

// Get returns the value of a key and whether it exists. The error is nil unless the
// tree was opened from a proof that does not show the key; it then wraps ErrHidden.
func (t Tree) Get(k Key) (value [32]byte, ok bool, err error) {
	n, sum := t.root.node, &t.root.sum
	for depth := 0; ; depth++ {
		switch at := n.(type) {
		case *inner:
			side := bit(k[:], depth)
			n, sum = at.nodes[side], &at.sums[side]
		case *stem:
			if at.name() != string(k.stem()) {
				return value, false, nil
			}
			value, ok = at.get(k.sub())
			return value, ok, nil
		case *partial:
			return at.get(&k)
		case *chain:
			if !at.leads(&k, depth) {
				return value, false, nil
			}
			n, sum, depth = at.below.node, &at.below.sum, at.end-1
		default:
			if *sum != (Hash{}) {
				err = fmt.Errorf("%w: %x", ErrHidden, k)
			}
			return value, false, err
		}
	}
}

// Apply returns the tree after the writes, which must be in strictly ascending order of their keys.
// It uses up to 32 goroutines for a large batch. The error wraps ErrOrder, or ErrHidden if the tree
// was opened from a proof that does not show a written part.
func (t Tree) Apply(h *Hasher, writes []Write) (Tree, error) {
	for i := 1; i < len(writes); i++ {
		if writes[i-1].Key.Compare(writes[i].Key) >= 0 {
			return Tree{}, fmt.Errorf("%w: %x after %x", ErrOrder, writes[i].Key, writes[i-1].Key)
		}
	}
	root, err := applyAll(h, t.root, 0, writes, min(max(len(writes)/batchShare, minBatch), maxBatch))
	if err != nil {
		return Tree{}, err
	}
	return Tree{root}, nil
}
