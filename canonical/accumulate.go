package canonical

import "fmt"

// Retract records that a reorg removed the item's block from the best JAM
// chain. It does nothing for a block that was never accumulated. Latest and
// safe move below it. Pending stays, because the block can be accumulated
// again. The exception is a block that was learned from JAM only: it and all
// later blocks are removed, and the plan lists them. The error wraps
// ErrUnknownBlock, ErrConflict or ErrFinal.
func (t *Tracker) Retract(it Item) (Plan, error) {
	e, err := t.find(it)
	if err != nil {
		return Plan{}, err
	}
	number := e.head.Number
	if e.stage == final {
		return Plan{}, fmt.Errorf("%w: %d cannot be taken back", ErrFinal, number)
	}
	if e.learned && e.stage >= accumulated {
		return t.truncate(number), nil
	}
	e.stage = executed
	for _, s := range []stage{accumulated, justified} {
		t.tops[s] = min(t.tops[s], number-1)
	}
	return Plan{On: t.top(executed)}, nil
}

// Justified records that an item is accumulated at the host's justified point,
// for hosts that have one. It returns the safe head and reports whether the
// head moved. A reorg can still remove the block; see [Tracker.Retract]. The
// error wraps ErrUnknownBlock or ErrConflict.
func (t *Tracker) Justified(it Item) (safe Head, moved bool, err error) {
	return t.settle(it, justified)
}

// Finalized records that the finalized JAM chain has accumulated an item, which
// implies Accumulate. It returns the finalized head and reports whether the head
// moved; it never moves back. The error wraps ErrUnknownBlock or ErrConflict.
func (t *Tracker) Finalized(it Item) (finalized Head, moved bool, err error) {
	if finalized, moved, err = t.settle(it, final); err == nil {
		t.prune()
	}
	return finalized, moved, err
}

// settle raises an item's block to a stage. It ignores a block that is no
// longer retained.
func (t *Tracker) settle(it Item, to stage) (top Head, moved bool, err error) {
	before := t.top(to)
	e, err := t.find(it)
	switch {
	case err == nil:
		t.raise(e, to)
	case it.Number >= t.base:
		return Head{}, false, err
	}
	top = t.top(to)
	return top, top != before, nil
}

// raise sets a block to a stage, unless it has a later one, and moves the
// heads.
func (t *Tracker) raise(e *entry, to stage) {
	e.stage = max(e.stage, to)
	t.advance()
}

// prune removes final blocks that are no longer retained.
func (t *Tracker) prune() {
	for t.tops[final]-t.base > t.keep {
		t.forget(t.blocks[0].head)
		t.blocks = t.blocks[1:]
		t.base++
	}
}
