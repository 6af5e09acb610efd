package canonical

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// Head is a rollup block as the tracker knows it: its number, its hashes and its
// state root.
type Head struct {
	// Number is the number of the block. The genesis has number 0.
	Number uint64
	// Hash is the hash of the block, and Root the state root after it.
	Hash, Root common.Hash
	// Commitment identifies the block in the queue and is the same for all its packages. Zero means
	// that the block has no commitment, so that it is found by its number.
	Commitment common.Hash
}

// Heads are the rollup blocks that the tags of Ethereum's JSON-RPC stand for, such as "latest" and
// "finalized".
type Heads struct {
	// Pending is the newest executed block.
	Pending Head
	// Latest is the highest block such that this block and all earlier ones are
	// accumulated on the best JAM chain.
	Latest Head
	// Safe is the same block as Finalized, because JAM has no justified block between the best and
	// the final one.
	Safe Head
	// Finalized is the highest block such that this block and all earlier ones are
	// accumulated on the finalized JAM chain.
	Finalized Head
}

// Item identifies a rollup block in every call about the outcome of its bundle. A number alone is
// not enough: numbers are used again after a failure, and a late call about the failed block must
// not count for the block that has its number now.
type Item struct {
	// Number is the number of the rollup block.
	Number uint64
	// Commitment identifies the block. Zero means that the queue has no commitment for it; the
	// block is then found by its number.
	Commitment common.Hash
}

// stage is how far a block has come on JAM: executed, accumulated or final. Each stage
// includes the earlier ones.
type stage uint8

const (
	executed stage = iota
	accumulated
	final
)

// entry is a block in the tracker.
type entry struct {
	head  Head
	stage stage
}

// Tracker records how far JAM has come with each executed block, and computes the heads of the
// rollup from that. Create one with [New].
type Tracker struct {
	// blocks are the newest final block and all later ones, in order.
	blocks []entry
	// tops[s] is the number of the highest block up to which every block has reached stage s.
	// For example, tops[final] is the number of the finalized head.
	tops         [final + 1]uint64
	byCommitment map[common.Hash]uint64
}

// New returns a tracker that begins at a final block: the genesis, or the last
// final block of an earlier run.
func New(start Head) *Tracker {
	t := &Tracker{byCommitment: make(map[common.Hash]uint64)}
	for s := range t.tops {
		t.tops[s] = start.Number
	}
	t.add(entry{head: start, stage: final})
	return t
}

// Heads returns the present heads of the rollup.
func (t *Tracker) Heads() Heads {
	return Heads{Pending: t.top(executed), Latest: t.top(accumulated), Safe: t.top(final), Finalized: t.top(final)}
}

// Executed adds the next block, which the host has executed on top of pending. The error
// wraps ErrNotNext if the number is not the next one. It wraps ErrConflict if another
// block has the same commitment, because the tracker could not tell which of the two
// blocks a later call is about.
func (t *Tracker) Executed(h Head) error {
	if next := t.pending() + 1; h.Number != next {
		return fmt.Errorf("%w: block %d, want %d", ErrNotNext, h.Number, next)
	}
	if other, taken := t.byCommitment[h.Commitment]; taken {
		return fmt.Errorf("%w: block %d has the commitment %s of block %d", ErrConflict, h.Number, h.Commitment, other)
	}
	t.add(entry{head: h})
	return nil
}

// Accumulate records that the best JAM chain has accumulated the block of an item. It returns the
// latest head. If that head has moved, the host commits the root of the new head only, not the
// roots of blocks before it. The error wraps ErrUnknownBlock or ErrConflict.
func (t *Tracker) Accumulate(it Item) (latest Head, err error) {
	e, err := t.find(it)
	if err != nil {
		return Head{}, err
	}
	t.raise(e, accumulated)
	return t.top(accumulated), nil
}

// Retract records that a reorg has removed the block of an item from the best JAM chain. It returns
// the latest head, which is then below that block. Retract does nothing for a block that was never
// accumulated. Pending does not change, because the block can be accumulated again. The error wraps
// ErrUnknownBlock, ErrConflict or ErrFinal.
func (t *Tracker) Retract(it Item) (latest Head, err error) {
	e, err := t.find(it)
	if err != nil {
		return Head{}, err
	}
	if e.stage == final {
		return Head{}, fmt.Errorf("%w: %d cannot be taken back", ErrFinal, e.head.Number)
	}
	e.stage = executed
	t.tops[accumulated] = min(t.tops[accumulated], e.head.Number-1)
	return t.top(accumulated), nil
}

// Finalized records that the finalized JAM chain has accumulated the block of an item, which
// implies Accumulate. It returns the finalized head and whether that head has moved; it never moves
// back. The tracker forgets the blocks before the finalized head, and ignores later calls about
// them. The error wraps ErrUnknownBlock or ErrConflict.
func (t *Tracker) Finalized(it Item) (finalized Head, moved bool, err error) {
	oldest := t.oldest()
	if e, err := t.find(it); err == nil {
		t.raise(e, final)
	} else if it.Number >= oldest {
		return Head{}, false, err
	}
	moved = t.tops[final] > oldest
	for t.oldest() < t.tops[final] {
		t.forget(t.blocks[0].head)
		t.blocks = t.blocks[1:]
	}
	return t.blocks[0].head, moved, nil
}

// Fail removes the block of an item, because the block can never be accumulated, together with all
// later blocks. It returns the removed blocks, oldest first. Pending falls back to the block before
// them.
//
// Later blocks are removed even if JAM has finalized them, because the state that they were
// executed on never exists. Their numbers can be used again, and their transactions must be
// executed again. The error wraps ErrUnknownBlock, ErrConflict, or ErrFinal if the block itself is
// final.
func (t *Tracker) Fail(it Item) (undone []Head, err error) {
	e, err := t.find(it)
	switch {
	case err != nil && it.Number < t.oldest():
		return nil, fmt.Errorf("%w: %d, finalized is %d", ErrFinal, it.Number, t.tops[final])
	case err != nil:
		return nil, err
	case e.stage == final:
		return nil, fmt.Errorf("%w: %d has not failed", ErrFinal, e.head.Number)
	}
	number := e.head.Number
	kept := number - t.oldest()
	for _, later := range t.blocks[kept:] {
		undone = append(undone, later.head)
		t.forget(later.head)
	}
	t.blocks = t.blocks[:kept]
	for s := range t.tops {
		t.tops[s] = min(t.tops[s], number-1)
	}
	return undone, nil
}

// find returns the block of an item, by its commitment or otherwise by its number.
func (t *Tracker) find(it Item) (*entry, error) {
	if number, ok := t.byCommitment[it.Commitment]; ok {
		return t.entry(number), nil
	}
	e := t.entry(it.Number)
	if e == nil {
		return nil, fmt.Errorf("%w: %d, tracked are %d to %d", ErrUnknownBlock, it.Number, t.oldest(), t.pending())
	}
	// After a failure the same number is used again. The item then names the failed block, and
	// the tracker has its successor.
	if it.Commitment != (common.Hash{}) && e.head.Commitment != (common.Hash{}) {
		return nil, fmt.Errorf("%w: %d is %s here, and the item is %s", ErrConflict, it.Number, e.head.Commitment, it.Commitment)
	}
	return e, nil
}

// raise moves a block to a stage, unless it has a later one already.
func (t *Tracker) raise(e *entry, to stage) {
	e.stage = max(e.stage, to)
	for s := accumulated; s <= final; s++ {
		// A head moves forward as far as all blocks have reached its stage.
		for next := t.entry(t.tops[s] + 1); next != nil && next.stage >= s; next = t.entry(t.tops[s] + 1) {
			t.tops[s]++
		}
	}
}

// add appends the next block to the chain.
func (t *Tracker) add(e entry) {
	t.blocks = append(t.blocks, e)
	t.tops[executed] = e.head.Number
	if e.head.Commitment != (common.Hash{}) {
		t.byCommitment[e.head.Commitment] = e.head.Number
	}
}

// forget removes a block from the index of commitments.
func (t *Tracker) forget(h Head) {
	if t.byCommitment[h.Commitment] == h.Number {
		delete(t.byCommitment, h.Commitment)
	}
}

// oldest returns the number of the newest final block, the first in t.blocks.
func (t *Tracker) oldest() uint64 { return t.blocks[0].head.Number }

func (t *Tracker) pending() uint64 { return t.tops[executed] }

// entry returns a tracked block, or nil.
func (t *Tracker) entry(number uint64) *entry {
	if number < t.oldest() || number > t.pending() {
		return nil
	}
	return &t.blocks[number-t.oldest()]
}

// top returns the highest block up to which all blocks have reached a stage.
func (t *Tracker) top(s stage) Head { return t.entry(t.tops[s]).head }
