package canonical

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// Item is a bundle as the queue knows it: every word about what became of one names it so. A number alone would not do, because it is used again after
// a failure, and a late word about the block that failed must not count for the other.
type Item struct {
	// Number is the rollup block's.
	Number uint64
	// Commitment names the block; zero if the queue has none. Then it is found by number.
	Commitment common.Hash
	// Hash and Root are the block and the state after it as the bundle has them. They count only where the block was not executed here.
	Hash, Root common.Hash
}

// Source says how an item's block was found.
type Source uint8

const (
	// FromCommitment: the item's commitment is that of the block.
	FromCommitment Source = iota
	// FromNumber: the block has the item's number, and one of the two has no commitment.
	FromNumber
	// FromItem: no executed block is the item's: what it says itself counts.
	FromItem
)

// String returns a word or two.
func (s Source) String() string {
	switch s {
	case FromCommitment:
		return "by commitment"
	case FromNumber:
		return "by number"
	case FromItem:
		return "the item's own"
	}
	return fmt.Sprintf("canonical.Source(%d)", uint8(s))
}

// Warning returns what an operator should know about a root from this source, or "".
func (s Source) Warning() string {
	if s == FromItem {
		return "the block was not executed here: its root is the bundle's own word"
	}
	return ""
}

// find returns the tracked block that an item stands for, by commitment or by number. Errors wrap ErrUnknownBlock, or ErrConflict where the block of its
// number is another.
func (t *Tracker) find(it Item) (*entry, error) {
	if number, ok := t.byCommitment[it.Commitment]; ok {
		return t.entry(number), nil
	}
	e, err := t.tracked(it.Number)
	if err == nil && it.Commitment != (common.Hash{}) && e.head.Commitment != (common.Hash{}) {
		return nil, fmt.Errorf("%w: %d is %s here, and the item is %s", ErrConflict, it.Number, e.head.Commitment, it.Commitment)
	}
	return e, err
}

// Lookup returns the block that an item stands for: by commitment, by number, or the item's own word, in this order. An item that contradicts the
// executed block of its number wraps ErrConflict; one that leaves a gap after pending, ErrNotNext; one below what is retained, ErrUnknownBlock.
func (t *Tracker) Lookup(it Item) (Head, Source, error) {
	e, err := t.find(it)
	switch next := t.pending() + 1; {
	case err == nil && it.Commitment != (common.Hash{}) && it.Commitment == e.head.Commitment:
		return e.head, FromCommitment, nil
	case err == nil:
		return e.head, FromNumber, nil
	case it.Number < next:
		return Head{}, 0, err
	case it.Number > next:
		return Head{}, 0, fmt.Errorf("%w: item %d, want at most %d", ErrNotNext, it.Number, next)
	}
	return Head{Number: it.Number, Hash: it.Hash, Root: it.Root, Commitment: it.Commitment}, FromItem, nil
}

// Taken is what became of an accumulated item.
type Taken struct {
	// Block is the item's block, found by Source.
	Block  Head
	Source Source
	// Latest is the head afterwards: if Moved, the host commits its root, and that of no block before it.
	Latest Head
	Moved  bool
}

// Accumulate says that the best JAM chain has accumulated an item. A block that was not executed here becomes pending by it. Errors are those
// of [Tracker.Lookup].
func (t *Tracker) Accumulate(it Item) (Taken, error) {
	block, source, err := t.Lookup(it)
	if err != nil {
		return Taken{}, err
	}
	before := t.top(accumulated)
	if source == FromItem {
		t.add(entry{head: block, stage: accumulated, learned: true})
	} else {
		t.raise(t.entry(block.Number), accumulated)
	}
	latest := t.top(accumulated)
	return Taken{Block: block, Source: source, Latest: latest, Moved: latest != before}, nil
}
