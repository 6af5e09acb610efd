package canonical

import "fmt"

// Executed adds the next block. The error wraps ErrNotNext or ErrConflict. A
// host whose blocks may fail during execution uses [Tracker.ExecutedBatch],
// which also checks the parent.
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

// ExecutedBatch adds the blocks of a batch that was executed on the head on,
// all or none. The error wraps ErrStaleParent if on is no longer pending,
// ErrNotNext, or ErrConflict.
func (t *Tracker) ExecutedBatch(on Head, batch []Head) error {
	if pending := t.top(executed); on != pending {
		return fmt.Errorf("%w: executed on block %d %s, pending is %d %s", ErrStaleParent, on.Number, on.Hash, pending.Number, pending.Hash)
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

// checkCommitment refuses a second block with the same commitment, because
// items could not distinguish the two.
func (t *Tracker) checkCommitment(h Head) error {
	if other, taken := t.byCommitment[h.Commitment]; taken {
		return fmt.Errorf("%w: block %d has the commitment %s of block %d", ErrConflict, h.Number, h.Commitment, other)
	}
	return nil
}

// Plan lists the blocks that must be executed again.
type Plan struct {
	// On is the pending head after the call. The next block is executed on it.
	On Head
	// Undone are the removed blocks, oldest first. Their numbers are free,
	// their states can be discarded, and their transactions must be executed
	// again.
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

// Fail removes the block of an item that can never be accumulated, and all
// later blocks. Pending falls back to the block before it. Later blocks are
// removed even if JAM has finalized them, because the state that they were
// executed on never exists. The error wraps ErrUnknownBlock, ErrConflict, or
// ErrFinal if the block itself is final.
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
