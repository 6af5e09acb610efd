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
	// batchShare is the number of batches into which many writes are divided, so
	// that several goroutines have work. The nodes of a batch are first built and
	// then hashed together.
	batchShare = 16
	// minBatch and maxBatch bound the size of a batch, in writes. Batches that are
	// too small waste time, and batches that are too large leave goroutines without
	// work.
	minBatch, maxBatch = 2 * parallelWrites, 4096
)

// applyAll applies writes to the subtree r at a depth, and returns the new subtree
// with its hash. The writes must be in strictly ascending order of their keys. If
// there are more than batch writes, applyAll divides them along the tree, because
// the nodes of a batch are built and then hashed together.
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

// apply applies one batch of writes to the subtree r and returns the new subtree.
// It creates each changed node only once. It does not hash the new nodes, because
// seal later computes all their hashes at once. If the writes change nothing, apply
// returns r.
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

// oneStem reports whether all writes go to the same stem; want at least one.
func oneStem(writes []Write) bool {
	return string(writes[0].Key.stem()) == string(writes[len(writes)-1].Key.stem())
}

// split returns how many of the sorted writes belong to the left side of a node at
// the given depth: those whose keys have a 0 at that bit. The others belong to the
// right side.
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

// children returns the two sides of the subtree r at a depth, so that writes can
// be divided between them. If r is a stem, which has no sides, children treats it
// as the only child of a new inner node. The error is ErrHidden if a proof does
// not show the sides.
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

// beside returns the two sides of a new inner node above the stem r, so that
// another stem can be added. The bit of name, the stem's name, at depth decides on
// which side r is. The other side is empty.
func beside(r ref, name string, depth int) (left, right ref) {
	if name[depth/8]>>(7-depth%8)&1 == 0 {
		return r, ref{}
	}
	return ref{}, r
}

// join returns the node that replaces old after its children have changed from left
// and right to newLeft and newRight. The hash of a new inner node is not computed
// yet. If only one child remains and it is a stem, join returns the stem itself,
// because a stem is always as near to the root as possible. If the tree comes from
// a proof that does not show whether the last child is a stem, the error is
// ErrHidden.
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
