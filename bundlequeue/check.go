package bundlequeue

import (
	"fmt"
	"slices"
)

// Check returns an error that wraps [ErrInvariant] if the queue is in a state that no sequence of
// events can produce, which means a bug or damaged memory. A driver may call Check after each step,
// before it carries out the effects. The cost is proportional to the number of bundles.
func (q *Queue) Check() error {
	if err := q.checkPlaces(); err != nil {
		return err
	}
	var counts [NumStates]int
	versions, requests := 0, 0
	for i, it := range q.items {
		counts[it.state]++
		if err := q.checkItem(it, i); err != nil {
			return fmt.Errorf("%w: %w", ErrInvariant, err)
		}
		versions += len(it.versions)
		if it.request != nil {
			requests++
		}
	}
	if err := q.checkCores(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvariant, err)
	}
	switch {
	case counts != q.counts:
		return fmt.Errorf("%w: %v bundles counted, want %v", ErrInvariant, q.counts, counts)
	case versions != len(q.versions):
		return fmt.Errorf("%w: B6: %d versions are known, want %d", ErrInvariant, len(q.versions), versions)
	case requests != len(q.builds) || len(q.sends) > versions:
		return fmt.Errorf("%w: B6: %d builds and %d sends open, want %d and at most %d", ErrInvariant, len(q.builds), len(q.sends), requests, versions)
	case q.active-q.firstPlace > uint64(q.cfg.RetentionWindow):
		return fmt.Errorf("%w: B6: %d finalized bundles kept, want at most %d", ErrInvariant, q.active-q.firstPlace, q.cfg.RetentionWindow)
	case len(q.touched) > 0 || len(q.out) > 0:
		return fmt.Errorf("%w: %d bundles to review and %d effects remain after the step", ErrInvariant, len(q.touched), len(q.out))
	}
	return nil
}

// checkPlaces checks that bundles are sorted by number, for binary search.
func (q *Queue) checkPlaces() error {
	if q.active < q.firstPlace || q.active > q.end() || q.frontier > q.end() {
		return fmt.Errorf("%w: places %d and %d, want %d to %d", ErrInvariant, q.active, q.frontier, q.firstPlace, q.end())
	}
	for i, it := range q.items {
		if it.number >= q.next || i > 0 && it.number <= q.items[i-1].number {
			return fmt.Errorf("%w: bundle %d is out of order, and the next one is %d", ErrInvariant, it.number, q.next)
		}
	}
	return nil
}

// checkCores checks promise B4: no two bundles share a core.
func (q *Queue) checkCores() error {
	free := 0
	for i := range q.cores.list {
		k := &q.cores.list[i]
		switch it := k.holder; {
		case it == nil && k.leaving:
			return fmt.Errorf("B4: core %d is held by no bundle and not in the set", k.index)
		case it == nil:
			free++
		case !it.holdsCore || it.core != k.index || q.at(it.place) != it:
			return fmt.Errorf("B4: core %d is held by bundle %d, which has core %d: %v", k.index, it.number, it.core, it.holdsCore)
		}
	}
	if free != q.cores.free {
		return fmt.Errorf("B4: %d cores counted as free, want %d", q.cores.free, free)
	}
	for _, it := range q.items {
		if it.holdsCore && !slices.ContainsFunc(q.cores.list, func(k core) bool { return k.holder == it }) {
			return fmt.Errorf("B4: bundle %d shares core %d", it.number, it.core)
		}
	}
	return nil
}

func (q *Queue) checkItem(it *item, i int) error {
	if it.place != q.firstPlace+uint64(i) || q.find(it.number) != it {
		return fmt.Errorf("bundle %d has place %d, want %d after %d", it.number, it.place, i, q.firstPlace)
	}
	if (it.state == Finalized) != (it.place < q.active) {
		return fmt.Errorf("bundle %d at %d is %v, and all before %d are final", it.number, it.place, it.state, q.active)
	}
	if it.state < Guaranteed && it.place < q.frontier {
		return fmt.Errorf("bundle %d at %d is %v, before the frontier %d", it.number, it.place, it.state, q.frontier)
	}
	if to, _, _ := it.derive(); it.state != to && it.state != Finalized {
		return fmt.Errorf("bundle %d is %v, want %v", it.number, it.state, to)
	}
	if it.holdsCore && (it.state < Building || it.state > Submitted) {
		return fmt.Errorf("B4: bundle %d is %v and holds core %d", it.number, it.state, it.core)
	}
	if r := it.request; r != nil && (q.builds[r.ticket] != it || it.live() != nil) {
		return fmt.Errorf("B1: bundle %d has open build %d and a package that is not dead", it.number, r.ticket)
	}
	if err := q.checkTurn(it); err != nil {
		return err
	}
	for _, v := range it.versions {
		if q.versions[v.pkg] != v || v.item != it {
			return fmt.Errorf("version %dv%d is not known by its hash", it.number, v.number)
		}
		if v.sent && i > 0 && !q.items[i-1].everSent() {
			return fmt.Errorf("B3: bundle %d was sent before %d", it.number, q.items[i-1].number)
		}
		if v.ticket != 0 && q.sends[v.ticket] != v {
			return fmt.Errorf("version %dv%d: its send %d is not open", it.number, v.number, v.ticket)
		}
	}
	return nil
}

// checkTurn checks that a bundle is in the right heap and at the right position. A
// bundle in the wrong heap would be built or sent at the wrong time.
func (q *Queue) checkTurn(it *item) error {
	if it.waiting != (it.state < Guaranteed && !it.holdsCore) || it.waiting && !it.turn.Queued() {
		return fmt.Errorf("bundle %d is %v, holds a core: %v, waits for one: %v", it.number, it.state, it.holdsCore, it.waiting)
	}
	if it.waiting {
		return nil
	}
	v := it.live()
	due := it.holdsCore && v != nil && q.maySend(v)
	if it.turn.Queued() != due || due && it.turn.Key() != int64(v.nextSend) {
		return fmt.Errorf("bundle %d is due: %v at %d, want %v", it.number, it.turn.Queued(), it.turn.Key(), due)
	}
	return nil
}

// everSent reports whether a package of a bundle was ever sent.
func (it *item) everSent() bool {
	return it.deadSince != nil || slices.ContainsFunc(it.versions, func(v *version) bool { return v.sent })
}
