package ubt

import (
	"cmp"
	"fmt"

	"golang.org/x/sync/errgroup"
)

const (
	// parallelDepth limits how many goroutines one call uses. Only inner nodes down to this depth
	// can give one of their two sides to another goroutine.
	parallelDepth = 5
	// parallelWrites is the least number of writes that a subtree must have to get its own
	// goroutine.
	parallelWrites = 16
	// batchShare is the number of batches into which the writes are divided, so that several
	// goroutines have work. Each batch is first built and then hashed as a whole.
	batchShare = 16
	// minBatch and maxBatch are the bounds between which applyAll chooses the greatest size of a
	// batch, in writes.
	minBatch, maxBatch = 2 * parallelWrites, 4096
)

// applyAll applies writes to the subtree r at a depth, and returns the result with its hash. The
// writes must be in strictly ascending order of their keys. batch is the maximum number of writes
// in a batch, which is built and then hashed as a whole. applyAll divides the writes into such
// batches along the tree.
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

// apply applies one batch of writes to the subtree r, as applyAll does, but hashes nothing: the new
// nodes are unsealed, which means that their hashes are not computed yet. apply creates each
// changed node once. If the writes change nothing, it returns r.
func apply(h *Hasher, r ref, depth int, writes []Write) (ref, error) {
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
	// The next bit of the keys splits the writes and the subtree into two sides.
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

// oneStem reports whether all writes are to keys of the same stem. There must be at least one
// write.
func oneStem(writes []Write) bool {
	return string(writes[0].Key.stem()) == string(writes[len(writes)-1].Key.stem())
}

// split returns how many of the sorted writes belong to the left side of a node at the given depth.
// The others belong to the right side.
func split(writes []Write, depth int) int {
	from, to := 0, len(writes)
	for from < to {
		if middle := (from + to) / 2; bit(writes[middle].Key[:], depth) == 0 {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from
}

// children returns the two children of the subtree r at a depth. If r is a single stem, the stem
// itself is one of the children, as if an inner node were above it. If a proof does not show the
// children, the error is ErrHidden.
func children(r ref, depth int) (left, right ref, err error) {
	switch n := r.node.(type) {
	case *inner:
		return n.left(), n.right(), nil
	case *chain:
		left, right = n.children(depth)
	case *stem:
		left, right = beside(r, n.name(), depth)
	case *partial:
		left, right = beside(r, n.name, depth)
	case nil:
		if r.hidden() {
			err = ErrHidden
		}
	}
	return left, right, err
}

// beside returns the children of an inner node that is put above a single stem r, so that another
// stem can be added beside it. One child is r, on the side that its name selects, and the other is
// empty.
func beside(r ref, name string, depth int) (left, right ref) {
	if name[depth/8]>>(7-depth%8)&1 == 0 {
		return r, ref{}
	}
	return ref{}, r
}

// join returns the node that replaces old after its children have changed from left and right to
// newLeft and newRight. A new inner node is unsealed. If the only remaining child is a stem, join
// returns this stem, because a stem is always as near to the root as possible. If a proof does not
// show whether the remaining child is a stem, the error is ErrHidden.
func join(old, left, right, newLeft, newRight ref) (ref, error) {
	if newLeft == left && newRight == right && !old.empty() && !isStem(old.node) {
		return old, nil
	}
	if alone, is := onlyChild(newLeft, newRight); is {
		if alone.empty() || isStem(alone.node) {
			return alone, nil
		}
		if alone.hidden() {
			return ref{}, ErrHidden // it may be a stem
		}
	}
	return ref{newInner(newLeft, newRight), unsealed}, nil
}
