package ubt

import (
	"errors"
	"fmt"
)

var (
	// ErrHidden: the proof that the tree was opened from does not show this part of it.
	ErrHidden = errors.New("ubt: not in the proof")
	// ErrOrder: writes or keys are not sorted by key, or one of them occurs twice.
	ErrOrder = errors.New("ubt: keys not in ascending order")
)

// Tree is one state of a tree. It never changes: Apply returns another one, which shares with it what they have in common. The zero value
// is the empty tree. Any number of goroutines may use a Tree at once.
type Tree struct{ root ref }

// Root returns the hash of the tree; EmptyRoot if it is empty.
func (t Tree) Root() Hash { return t.root.sum }

// Get returns the value of a key and whether there is one. The error wraps ErrHidden, which only a tree from a proof can give.
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
		default:
			if *sum != (Hash{}) {
				err = fmt.Errorf("%w: %x", ErrHidden, k)
			}
			return value, false, err
		}
	}
}

// Apply returns the tree with the writes, which must be sorted by key and distinct. Large batches are hashed by several goroutines, at most
// 2⁵. The error wraps ErrOrder, or ErrHidden, which only a tree from a proof can give.
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
