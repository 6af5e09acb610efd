package ubt

import (
	"fmt"
	"sync"
)

const (
	// parallelDepth bounds the goroutines of one apply: two for each inner node above it.
	parallelDepth = 5
	// parallelWrites is how many writes are worth a goroutine.
	parallelWrites = 16
)

// apply returns the tree under r, which stands at depth, with the writes, which are sorted by key and distinct. Each node that changes is
// made once; where nothing changes the old node comes back.
func apply(h *Hasher, r ref, depth int, writes []Write) (ref, error) {
	if len(writes) == 0 {
		return r, nil
	}
	if r.hidden() {
		return ref{}, fmt.Errorf("%w: write at %x", ErrHidden, writes[0].Key)
	}
	first := writes[0].Key.stem()
	oneStem := string(first) == string(writes[len(writes)-1].Key.stem())
	var left, right ref
	switch old := r.node.(type) {
	case nil:
		if oneStem {
			return newStem(h, writes), nil
		}
	case *stem:
		if oneStem && old.name() == string(first) {
			return old.with(h, r.sum, writes), nil
		}
		left, right = beside(r, old.name(), depth)
	case *partial:
		if oneStem && old.name == string(first) {
			return old.with(h, r.sum, writes)
		}
		left, right = beside(r, old.name, depth)
	case *inner:
		left, right = old.left(), old.right()
	}
	// Everything splits by the next bit: the writes and what is here.
	at := split(writes, depth)
	newLeft, newRight, err := applyBoth(h, left, right, depth+1, writes[:at], writes[at:])
	if err != nil {
		return ref{}, err
	}
	if _, was := r.node.(*inner); was && newLeft.sum == left.sum && newRight.sum == right.sum {
		return r, nil
	}
	return join(h, newLeft, newRight)
}

// split returns how many writes go left at a depth.
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

// beside returns the children of a place that a stem has to itself, once others come there too.
func beside(r ref, name string, depth int) (left, right ref) {
	if name[depth/8]>>(7-depth%8)&1 == 0 {
		return r, ref{}
	}
	return ref{}, r
}

// applyBoth changes two subtrees, side by side if it is worth it.
func applyBoth(h *Hasher, left, right ref, depth int, toLeft, toRight []Write) (newLeft, newRight ref, err error) {
	if depth > parallelDepth || len(toLeft) < parallelWrites || len(toRight) < parallelWrites {
		if newLeft, err = apply(h, left, depth, toLeft); err != nil {
			return ref{}, ref{}, err
		}
		newRight, err = apply(h, right, depth, toRight)
		return newLeft, newRight, err
	}
	var leftErr error
	var done sync.WaitGroup
	done.Go(func() { newLeft, leftErr = apply(h, left, depth, toLeft) })
	newRight, err = apply(h, right, depth, toRight)
	done.Wait()
	if leftErr != nil {
		err = leftErr
	}
	return newLeft, newRight, err
}
