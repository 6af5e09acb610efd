package canonical

import "fmt"

// Executed adds the next block. The error wraps ErrNotNext. A host that executes while blocks may fail wants [Tracker.ExecutedBatch].
func (t *Tracker) Executed(h Head) error {
	if next := t.pending() + 1; h.Number != next {
		return fmt.Errorf("%w: block %d, want %d", ErrNotNext, h.Number, next)
	}
	if err := t.checkCommitment(h); err != nil {
		return err
	}
	t.add(entry{head: h})
	return nil
}

// ExecutedBatch adds the blocks of a batch that was executed on a head, all or none. Errors wrap ErrStaleParent, where that is not pending any
// more, or ErrNotNext or ErrConflict.
func (t *Tracker) ExecutedBatch(on Head, batch []Head) error {
	if pending := t.top(executed); on != pending {
		return fmt.Errorf("%w: on block %d %s, and pending is %d %s", ErrStaleParent, on.Number, on.Hash, pending.Number, pending.Hash)
	}
	before := len(t.blocks)
	for _, h := range batch {
		if err := t.Executed(h); err != nil {
			t.truncate(t.base + uint64(before))
			return err
		}
	}
	return nil
}

// checkCommitment refuses a second block of one commitment: it could not be told from the first.
func (t *Tracker) checkCommitment(h Head) error {
	if other, taken := t.byCommitment[h.Commitment]; taken {
		return fmt.Errorf("%w: block %d has the commitment %s of block %d", ErrConflict, h.Number, h.Commitment, other)
	}
	return nil
}

// Plan says what to execute anew.
type Plan struct {
	// On is pending after the fall: what the next block is executed on.
	On Head
	// Undone are the blocks that are gone, oldest first. Their numbers are free, their states can be discarded, and their transactions are to
	// be executed again.
	Undone []Head
}

// truncate removes the blocks from a number on.
func (t *Tracker) truncate(number uint64) Plan {
	var p Plan
	for _, e := range t.blocks[number-t.base:] {
		p.Undone = append(p.Undone, e.head)
		t.forget(e.head)
	}
	t.blocks = t.blocks[:number-t.base]
	for s := range t.tops {
		t.tops[s] = min(t.tops[s], number-1)
	}
	p.On = t.top(executed)
	return p
}

// Fail removes an item's block, which can never be accumulated, and all later ones: pending falls back to the one before it. Later ones go even where
// JAM has finalized them, because no state that they could continue comes to be. Errors wrap ErrUnknownBlock, ErrConflict, or ErrFinal where the block
// itself is final.
func (t *Tracker) Fail(it Item) (Plan, error) {
	e, err := t.find(it)
	switch {
	case err != nil && it.Number < t.base:
		return Plan{}, fmt.Errorf("%w: %d, finalized is %d", ErrFinal, it.Number, t.tops[final])
	case err != nil:
		return Plan{}, err
	case e.stage == final:
		return Plan{}, fmt.Errorf("%w: %d has not failed", ErrFinal, e.head.Number)
	}
	return t.truncate(e.head.Number), nil
}
