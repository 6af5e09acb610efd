package ubt

import (
	"cmp"
	"fmt"

	"golang.org/x/sync/errgroup"
)

const (
	// parallelDepth limits the goroutines of one apply or seal: at most two for
	// each inner node above this depth.
	parallelDepth = 5
	// parallelWrites is the minimum number of writes for another goroutine.
	parallelWrites = 16
	// batchShare is the inverse of the share of the writes that is built first
	// and then sealed together, so that several goroutines have work.
	batchShare = 16
	// minBatch and maxBatch limit the number of writes of such a batch.
	minBatch, maxBatch = 2 * parallelWrites, 4096
)

// applyAll returns the tree under r, which is at the given depth, with writes,
// which are strictly ascending. It builds and seals batches of at most batch
// writes.
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

// apply is applyAll of one batch without hashing: new nodes are unsealed. It
// creates each changed node once, and returns r if nothing changes.
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
	// The writes and the subtree are split by the next bit.
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

// oneStem reports whether all writes have the same stem. There must be at least
// one write.
func oneStem(writes []Write) bool {
	return string(writes[0].Key.stem()) == string(writes[len(writes)-1].Key.stem())
}

// split returns the number of writes in the left subtree of a node at the given
// depth.
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

// children returns the children of the place r at the given depth. A stem that
// has r to itself is one of the children. The error is ErrHidden.
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

// beside returns the children of a place that only one stem occupied, when
// another stem is added.
func beside(r ref, name string, depth int) (left, right ref) {
	if name[depth/8]>>(7-depth%8)&1 == 0 {
		return r, ref{}
	}
	return ref{}, r
}

// join returns the node at the place of old after its children changed from
// left and right to newLeft and newRight. A new inner node is unsealed. A
// single stem replaces its parent, because a stem is at the shallowest possible
// place. The error is ErrHidden.
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
