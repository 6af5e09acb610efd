package ubt

import (
	"fmt"
	"sync"
)

const (
	// parallelDepth bounds the goroutines of one apply, or of one seal: two for each inner node above it.
	parallelDepth = 5
	// parallelWrites is how many writes are worth a goroutine.
	parallelWrites = 16
	// A batch is what is built first and then sealed together: a share of the writes, so that there is work for several goroutines.
	batchShare         = 16
	minBatch, maxBatch = 2 * parallelWrites, 4096
)

// applyAll returns the tree under r, which stands at depth, with the writes, which are sorted by key and distinct. It builds and seals in batches
// of at most so many writes.
func applyAll(h *Hasher, r ref, depth int, writes []Write, batch int) (ref, error) {
	if len(writes) <= batch || oneStem(writes) {
		warm(r, depth, writes)
		changed, err := apply(h, r, depth, writes)
		if err == nil {
			changed.sum = seal(h, changed)
		}
		return changed, err
	}
	left, right, err := children(r, depth)
	if err != nil {
		return ref{}, err
	}
	at := split(writes, depth)
	var newLeft, newRight ref
	var leftErr error
	goLeft := func() { newLeft, leftErr = applyAll(h, left, depth+1, writes[:at], batch) }
	if depth > parallelDepth || at < parallelWrites || len(writes)-at < parallelWrites {
		goLeft()
		newRight, err = applyAll(h, right, depth+1, writes[at:], batch)
	} else {
		var done sync.WaitGroup
		done.Go(goLeft)
		newRight, err = applyAll(h, right, depth+1, writes[at:], batch)
		done.Wait()
	}
	if leftErr != nil || err != nil {
		return ref{}, either(leftErr, err)
	}
	joined, err := join(r, left, right, newLeft, newRight)
	if joined.sum == unsealed {
		joined.sum = h.Inner(newLeft.sum, newRight.sum)
	}
	return joined, err
}

func either(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// apply is applyAll of one batch, without hashing: new nodes are unsealed. Each node that changes is made once; where nothing changes the old
// one comes back.
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
	// Everything splits by the next bit: the writes and what is here.
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

// oneStem reports whether all writes, of which there is at least one, are of the same stem.
func oneStem(writes []Write) bool {
	return string(writes[0].Key.stem()) == string(writes[len(writes)-1].Key.stem())
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

// children returns what stands below a place at a depth, where a stem alone stands below its own. The error is ErrHidden.
func children(r ref, depth int) (left, right ref, err error) {
	switch n := r.node.(type) {
	case *inner:
		return n.left(), n.right(), nil
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

// beside returns the children of a place that a stem has to itself, once others come there too.
func beside(r ref, name string, depth int) (left, right ref) {
	if name[depth/8]>>(7-depth%8)&1 == 0 {
		return r, ref{}
	}
	return ref{}, r
}

// join returns what stands at the place of old, whose children were left and right, and are new now; an inner node is unsealed. One stem alone
// takes the place of its parent: a stem is as shallow as it can be. The error is ErrHidden.
func join(old, left, right, newLeft, newRight ref) (ref, error) {
	if _, was := old.node.(*inner); was && newLeft == left && newRight == right {
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
