package canonical

import "fmt"

// Accumulated says whether the best JAM chain has accumulated a block: true when it does, false when a reorg takes it back, which is
// [Tracker.Retract]. It returns the latest head and whether that moved. Errors wrap ErrUnknownBlock, or ErrFinal where a final block would be
// taken back.
func (t *Tracker) Accumulated(number uint64, done bool) (latest Head, moved bool, err error) {
	before := t.top(accumulated)
	if done {
		err = t.raise(number, accumulated)
	} else {
		_, err = t.Retract(number)
	}
	if err != nil {
		return Head{}, false, err
	}
	latest = t.top(accumulated)
	return latest, latest != before, nil
}

// raise puts a block to a stage, if it is not beyond, and moves the heads.
func (t *Tracker) raise(number uint64, to stage) error {
	e, err := t.tracked(number)
	if err != nil {
		return err
	}
	e.stage = max(e.stage, to)
	t.advance()
	return nil
}

// Retract says that a reorg took a block away from the best JAM chain. Latest and safe fall below it; pending stays, since the block can
// be accumulated again, except where the block was known from JAM alone: then it is gone, with all later ones, as the plan says. Errors wrap
// ErrUnknownBlock, or ErrFinal.
func (t *Tracker) Retract(number uint64) (Plan, error) {
	e, err := t.tracked(number)
	if err != nil {
		return Plan{}, err
	}
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

// Justified says that a block is accumulated at the host's justified point, if it has one. It returns the safe head and whether that
// moved. A reorg may still take the block back: [Tracker.Retract]. The error wraps ErrUnknownBlock.
func (t *Tracker) Justified(number uint64) (safe Head, moved bool, err error) {
	return t.settle(number, justified)
}

// Finalized says that the finalized JAM chain has accumulated a block. It returns the finalized head and whether that moved; it never moves
// back. The error wraps ErrUnknownBlock.
func (t *Tracker) Finalized(number uint64) (finalized Head, moved bool, err error) {
	if finalized, moved, err = t.settle(number, final); err == nil {
		t.prune()
	}
	return finalized, moved, err
}

// settle raises a block. One that is no longer retained is old news.
func (t *Tracker) settle(number uint64, to stage) (top Head, moved bool, err error) {
	before := t.top(to)
	if number >= t.base {
		if err := t.raise(number, to); err != nil {
			return Head{}, false, err
		}
	}
	top = t.top(to)
	return top, top != before, nil
}

// prune lets go of final blocks that are not retained.
func (t *Tracker) prune() {
	for t.tops[final]-t.base > t.keep {
		t.forget(t.blocks[0].head)
		t.blocks = t.blocks[1:]
		t.base++
	}
}
