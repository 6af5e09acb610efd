package canonical

import "fmt"

// Retract says that a reorg took an item's block away from the best JAM chain. Latest and safe fall below it; pending stays, since the block can
// be accumulated again, except where the block was known from JAM alone: then it is gone, with all later ones, as the plan says. Errors wrap
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

// Justified says that an item is accumulated at the host's justified point, if it has one. It returns the safe head and whether that
// moved. A reorg may still take the block back: [Tracker.Retract]. Errors wrap ErrUnknownBlock or ErrConflict.
func (t *Tracker) Justified(it Item) (safe Head, moved bool, err error) {
	return t.settle(it, justified)
}

// Finalized says that the finalized JAM chain has accumulated an item. It returns the finalized head and whether that moved; it never moves
// back. Errors wrap ErrUnknownBlock or ErrConflict.
func (t *Tracker) Finalized(it Item) (finalized Head, moved bool, err error) {
	if finalized, moved, err = t.settle(it, final); err == nil {
		t.prune()
	}
	return finalized, moved, err
}

// settle raises an item's block to a stage. One that is no longer retained is old news.
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

// raise puts a block to a stage, if it is not beyond, and moves the heads.
func (t *Tracker) raise(e *entry, to stage) {
	e.stage = max(e.stage, to)
	t.advance()
}

// prune lets go of final blocks that are not retained.
func (t *Tracker) prune() {
	for t.tops[final]-t.base > t.keep {
		t.forget(t.blocks[0].head)
		t.blocks = t.blocks[1:]
		t.base++
	}
}
