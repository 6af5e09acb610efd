package ubt

import (
	"fmt"
	"slices"
	"sync"
)

const (
	// parallelDepth bounds the goroutines of one apply: two for each inner node above it.
	parallelDepth = 5
	// parallelWrites is how many writes are worth a goroutine.
	parallelWrites = 16
)

// apply returns the tree under n, which stands at depth, with the writes, which are sorted by key and distinct. Each node that changes is
// made once; where nothing changes the old node comes back.
func apply(h *Hasher, n node, depth int, writes []Write) (node, error) {
	if len(writes) == 0 {
		return n, nil
	}
	first := writes[0].Key.stem()
	oneStem := string(first) == string(writes[len(writes)-1].Key.stem())
	var left, right node
	switch old := n.(type) {
	case nil:
		if oneStem {
			return newStem(h, writes), nil
		}
	case *stem:
		if oneStem && old.name() == string(first) {
			return old.with(h, writes), nil
		}
		left, right = beside(n, old.name(), depth)
	case *partial:
		if oneStem && old.name == string(first) {
			return old.with(h, writes)
		}
		left, right = beside(n, old.name, depth)
	case *hidden:
		return nil, fmt.Errorf("%w: write at %x", ErrHidden, writes[0].Key)
	case *inner:
		left, right = old.left, old.right
	}
	// Everything splits by the next bit: the writes and what is here.
	at, _ := slices.BinarySearchFunc(writes, 1, func(w Write, _ int) int { return int(bit(w.Key[:], depth)) - 1 })
	newLeft, newRight, err := applyBoth(h, left, right, depth+1, writes[:at], writes[at:])
	if err != nil {
		return nil, err
	}
	if _, was := n.(*inner); was && newLeft == left && newRight == right {
		return n, nil
	}
	return join(h, newLeft, newRight)
}

// beside returns the children of a place that a stem has to itself, once others come there too.
func beside(n node, name string, depth int) (left, right node) {
	if bit([]byte(name), depth) == 0 {
		return n, nil
	}
	return nil, n
}

// applyBoth changes two subtrees, side by side if it is worth it.
func applyBoth(h *Hasher, left, right node, depth int, toLeft, toRight []Write) (newLeft, newRight node, err error) {
	if depth > parallelDepth || len(toLeft) < parallelWrites || len(toRight) < parallelWrites {
		if newLeft, err = apply(h, left, depth, toLeft); err != nil {
			return nil, nil, err
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
