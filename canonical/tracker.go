package canonical

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

var (
	// ErrNotNext: an executed block does not have the number after pending.
	ErrNotNext = errors.New("canonical: not the next block")
	// ErrUnknownBlock: no block of that number is tracked.
	ErrUnknownBlock = errors.New("canonical: unknown block")
	// ErrFinal: the call would take a finalized block back.
	ErrFinal = errors.New("canonical: block is final")
)

// Head is a rollup block.
type Head struct {
	// Number counts from 0, the genesis.
	Number uint64
	// Hash is the block's, Root that of the state after it.
	Hash, Root common.Hash
}

// Heads are the blocks that the tags name.
type Heads struct {
	// Earliest is the block that the tracker began with.
	Earliest Head
	// Pending is the newest executed block.
	Pending Head
	// Latest is the highest that is accumulated without a gap below it on the best JAM chain.
	Latest Head
	// Safe is the same as Finalized.
	Safe Head
	// Finalized is the highest that is accumulated without a gap below it on the finalized JAM chain.
	Finalized Head
}

// entry is a tracked block.
type entry struct {
	head                   Head
	accumulated, finalized bool
}

// Tracker tracks executed blocks. Make one with [New].
type Tracker struct {
	earliest  Head
	blocks    []entry // by number, from base on
	base      uint64
	latest    uint64
	finalized uint64
	keep      uint64
}

// New returns a tracker that begins at a final block: the genesis, or where a host left off. retain is how many finalized blocks
// before the newest can still be resolved by number; the first one always can.
func New(start Head, retain uint64) *Tracker {
	return &Tracker{
		earliest: start, base: start.Number, latest: start.Number, finalized: start.Number, keep: retain,
		blocks: []entry{{head: start, accumulated: true, finalized: true}},
	}
}

// Executed adds the next block. The error wraps ErrNotNext.
func (t *Tracker) Executed(h Head) error {
	if next := t.pending() + 1; h.Number != next {
		return fmt.Errorf("%w: block %d, want %d", ErrNotNext, h.Number, next)
	}
	t.blocks = append(t.blocks, entry{head: h})
	return nil
}

func (t *Tracker) pending() uint64 { return t.base + uint64(len(t.blocks)) - 1 }

// entry returns a tracked block, or nil.
func (t *Tracker) entry(number uint64) *entry {
	if number < t.base || number > t.pending() {
		return nil
	}
	return &t.blocks[number-t.base]
}

// Accumulated says whether the best JAM chain has accumulated a block: true when it does, false when a reorg takes it back. It returns the
// latest head and whether that moved. Errors wrap ErrUnknownBlock, or ErrFinal where a final block would be taken back.
func (t *Tracker) Accumulated(number uint64, done bool) (latest Head, moved bool, err error) {
	e := t.entry(number)
	if e == nil {
		return Head{}, false, fmt.Errorf("%w: %d, tracked are %d to %d", ErrUnknownBlock, number, t.base, t.pending())
	}
	if e.finalized && !done {
		return Head{}, false, fmt.Errorf("%w: %d cannot be taken back", ErrFinal, number)
	}
	e.accumulated = done
	before := t.latest
	if !done && number <= t.latest {
		t.latest = number - 1
	}
	for next := t.entry(t.latest + 1); next != nil && next.accumulated; next = t.entry(t.latest + 1) {
		t.latest++
	}
	return t.entry(t.latest).head, t.latest != before, nil
}

// Finalized says that the finalized JAM chain has accumulated a block. It returns the finalized head and whether that moved; it never moves
// back. The error wraps ErrUnknownBlock.
func (t *Tracker) Finalized(number uint64) (finalized Head, moved bool, err error) {
	if number < t.base {
		return t.entry(t.finalized).head, false, nil
	}
	if _, _, err := t.Accumulated(number, true); err != nil {
		return Head{}, false, err
	}
	t.entry(number).finalized = true
	before := t.finalized
	for next := t.entry(t.finalized + 1); next != nil && next.finalized; next = t.entry(t.finalized + 1) {
		t.finalized++
	}
	moved = t.finalized != before
	for t.finalized-t.base > t.keep {
		t.blocks = t.blocks[1:]
		t.base++
	}
	return t.entry(t.finalized).head, moved, nil
}

// Fail removes a block that can never be accumulated, and all later ones: pending falls back to the one before it. Its number is that of
// the next block to be executed. Errors wrap ErrUnknownBlock or ErrFinal.
func (t *Tracker) Fail(number uint64) error {
	if number <= t.finalized {
		return fmt.Errorf("%w: %d, finalized is %d", ErrFinal, number, t.finalized)
	}
	if t.entry(number) == nil {
		return fmt.Errorf("%w: %d, tracked are %d to %d", ErrUnknownBlock, number, t.base, t.pending())
	}
	t.blocks = t.blocks[:number-t.base]
	t.latest = min(t.latest, number-1)
	return nil
}

// Heads returns the blocks that the tags name.
func (t *Tracker) Heads() Heads {
	finalized := t.entry(t.finalized).head
	return Heads{
		Earliest: t.earliest, Pending: t.entry(t.pending()).head, Latest: t.entry(t.latest).head,
		Safe: finalized, Finalized: finalized,
	}
}
