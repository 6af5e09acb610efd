package ubt

import (
	"cmp"
	"fmt"

	"golang.org/x/sync/errgroup"
)

const (
	// parallelDepth limits the number of goroutines in one call: only inner nodes
	// down to this depth may hand one of their two sides to another goroutine.
	parallelDepth = 5
	// parallelWrites is the minimum number of writes in a subtree that gets its own
	// goroutine.
	parallelWrites = 16
	// batchShare is how many batches a large set of writes is divided into, so that several
	// goroutines have work. Each batch changes a part of the tree, and then hashes all its new
	// nodes together.
	batchShare = 16
	// minBatch and maxBatch bound the size of a batch, in writes. Batches that are
	// too small waste time, and batches that are too large leave goroutines without
	// work.
	minBatch, maxBatch = 2 * parallelWrites, 4096
)

// applyAll applies writes, in ascending order of keys, to the subtree r.
func applyAll(h *Hasher, r ref, depth int, writes []Write, batch int) (ref, error) {
	if len(writes) <= batch || oneStem(writes) {
		warm(r, depth, writes)
		changed, err := apply(h, r, depth, writes)
		if err == nil {
			changed.sum = seal(h, changed, depth)
		}
		return changed, err
	}
	left, right, err := children(r, depth)
	if err != nil {
		return ref{}, err
	}
	// The nodes of a batch are built first and then hashed together. There are too many writes
	// for one batch, so divide them into the two sides of the tree.
	at := split(writes, depth)
	var newLeft, newRight ref
	goLeft := func() (err error) {
		newLeft, err = applyAll(h, left, depth+1, writes[:at], batch)
		return err
	}
	var group errgroup.Group
	if depth > parallelDepth || at < parallelWrites || len(writes)-at < parallelWrites {
		err = goLeft()
	} else {
		group.Go(goLeft)
	}
	if err == nil {
		newRight, err = applyAll(h, right, depth+1, writes[at:], batch)
	}
	if err = cmp.Or(group.Wait(), err); err != nil {
		return ref{}, err
	}
	joined, err := join(r, left, right, newLeft, newRight)
	if joined.sum == unsealed {
		joined.sum = h.Inner(newLeft.sum, newRight.sum)
	}
	return joined, err
}

// apply applies one batch of writes to r without hashing the new nodes.
func apply(h *Hasher, r ref, depth int, writes []Write) (ref, error) {
	// Without a change, the subtree stays the same node.
	if len(writes) == 0 {
		return r, nil
	}
	if first := writes[0].Key.stem(); oneStem(writes) {
		switch old := r.node.(type) {
		case nil:
			if r.empty() {
				return newStem(h, writes), nil
			}
		case *stem:
			if old.name() == string(first) {
				return old.with(h, r.sum, writes), nil
			}
		case *partial:
			if old.name == string(first) {
				return old.with(r.sum, writes)
			}
		}
	}
	// The next bit of the key decides whether a write goes to the left or to the right child.
	left, right, err := children(r, depth)
	if err != nil {
		return ref{}, fmt.Errorf("%w: write at %x", err, writes[0].Key)
	}
	at := split(writes, depth)
	newLeft, err := apply(h, left, depth+1, writes[:at])
	if err != nil {
		return ref{}, err
	}
	newRight, err := apply(h, right, depth+1, writes[at:])
	if err != nil {
		return ref{}, err
	}
	return join(r, left, right, newLeft, newRight)
}

// oneStem reports whether all writes go to the same stem; want at least one.
func oneStem(writes []Write) bool {
	return string(writes[0].Key.stem()) == string(writes[len(writes)-1].Key.stem())
}

// split returns how many of the sorted writes go to the left child of an inner node at the
// given depth, because that bit of their keys is 0.
func split(writes []Write, depth int) int {
	from, to := 0, len(writes)
	for from < to {
		// A key goes to the left if its bit at depth is 0.
		if middle := (from + to) / 2; bit(writes[middle].Key[:], depth) == 0 {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from
}

// children returns the left and the right child of a node, so that the writes can be
// divided between them. A stem first gets an inner node above it.
func children(r ref, depth int) (left, right ref, err error) {
	switch n := r.node.(type) {
	case *inner:
		return n.left(), n.right(), nil
	case *chain:
		left, right = n.children(depth)
	// A stem has no children. It becomes the only child of a new inner node.
	case *stem:
		left, right = beside(r, n.name(), depth)
	case *partial:
		left, right = beside(r, n.name, depth)
	case nil:
		// The proof does not show the sides.
		if r.hidden() {
			err = ErrHidden
		}
	}
	return left, right, err
}

// beside returns the two sides of a new inner node above the stem r.
func beside(r ref, name string, depth int) (left, right ref) {
	// The stem is in one of the two subtrees below the new inner node, and the other one is
	// empty. The bit of the stem's name at this depth decides: 0 is left, and 1 is right.
	if name[depth/8]>>(7-depth%8)&1 == 0 {
		return r, ref{}
	}
	return ref{}, r
}

// join returns the node that replaces old after its children have changed.
func join(old, left, right, newLeft, newRight ref) (ref, error) {
	if newLeft == left && newRight == right && !old.empty() && !isStem(old.node) {
		return old, nil
	}
	if alone, is := onlyChild(newLeft, newRight); is {
		// If only one stem is left below an inner node, the stem takes the place of that node,
		// because every stem is as near to the root as possible.
		if alone.empty() || isStem(alone.node) {
			return alone, nil
		}
		if alone.hidden() {
			return ref{}, ErrHidden // it may be a stem
		}
	}
	return ref{newInner(newLeft, newRight), unsealed}, nil
}
