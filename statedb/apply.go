package statedb

import (
	"slices"
	"sync"
)

// write is a change of one value; a deleted one is absent afterwards.
type write struct {
	key     Key
	value   [32]byte
	deleted bool
}

const (
	// parallelDepth bounds the goroutines of one apply: two for each inner node above it.
	parallelDepth = 5
	// parallelWrites is how many writes are worth a goroutine.
	parallelWrites = 64
)

// apply returns the tree with the writes, which are sorted by key and distinct. Each node that changes is made once; where nothing
// changes the old node comes back.
func apply(p *Profile, n *node, depth int, writes []write) *node {
	if len(writes) == 0 {
		return n
	}
	first := writes[0].key.stem()
	oneStem := first == writes[len(writes)-1].key.stem()
	switch {
	case n == nil && oneStem:
		return merge(p, &leaf{stem: first}, nil, writes)
	case n != nil && n.leaf != nil && oneStem && n.leaf.stem == first:
		return merge(p, n.leaf, n, writes)
	}
	// Everything splits by the next bit: the writes and what is here.
	at, _ := slices.BinarySearchFunc(writes, 1, func(w write, _ int) int { return int(bit(w.key[:], depth)) - 1 })
	var left, right *node
	switch {
	case n == nil:
	case n.leaf == nil:
		left, right = n.left, n.right
	case bit(n.leaf.stem[:], depth) == 0:
		left = n
	default:
		right = n
	}
	newLeft, newRight := applyBoth(p, left, right, depth+1, writes[:at], writes[at:])
	if n != nil && n.leaf == nil && newLeft == n.left && newRight == n.right {
		return n
	}
	return newInner(p, newLeft, newRight)
}

// applyBoth changes two subtrees, side by side if it is worth it.
func applyBoth(p *Profile, left, right *node, depth int, toLeft, toRight []write) (*node, *node) {
	if depth > parallelDepth || len(toLeft) < parallelWrites || len(toRight) < parallelWrites {
		return apply(p, left, depth, toLeft), apply(p, right, depth, toRight)
	}
	var newLeft *node
	var done sync.WaitGroup
	done.Go(func() { newLeft = apply(p, left, depth, toLeft) })
	newRight := apply(p, right, depth, toRight)
	done.Wait()
	return newLeft, newRight
}

// merge returns a stem with the writes, all of which are its own; n is the node that holds old, or nil.
func merge(p *Profile, old *leaf, n *node, writes []write) *node {
	merged := old.with(p, writes)
	switch {
	case merged == nil:
		return nil
	case merged == old:
		return n
	}
	return newStem(p, merged)
}
