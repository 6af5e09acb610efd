package canonical

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// Item identifies a bundle in every call about its outcome. A number alone is
// not enough: numbers are used again after a failure, and a late call about the
// failed block must not count for its successor.
type Item struct {
	// Number is the number of the rollup block.
	Number uint64
	// Commitment identifies the block. Zero means that the queue has none; the
	// block is then found by number.
	Commitment common.Hash
	// Hash and Root are the hash of the block and the state root after it,
	// according to the bundle. They are used only if the block was not executed
	// here.
	Hash, Root common.Hash
}

// Source is the way in which the block of an item was found.
type Source uint8

const (
	// FromCommitment means that the block has the commitment of the item.
	FromCommitment Source = iota
	// FromNumber means that the block has the number of the item, and one of
	// the two has no commitment.
	FromNumber
	// FromItem means that the block was not executed here, so that the item's
	// hash and root are used.
	FromItem
)

// String returns a short description for logs.
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

// Warning returns a text for the operator if a root from this source is not
// certain, or "".
func (s Source) Warning() string {
	if s == FromItem {
		return "the block was not executed here: its root comes from the bundle and was not checked"
	}
	return ""
}

// find returns the tracked block of an item, by commitment or by number. The
// error wraps ErrUnknownBlock, or ErrConflict if its number belongs to a
// different block.
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

// Lookup returns the block of an item: by commitment, by number, or as the item
// describes it, in this order. The error wraps ErrConflict if the item
// contradicts the executed block of its number, ErrNotNext if it would leave a
// gap after pending, and ErrUnknownBlock if it is no longer retained.
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

// Taken is the result of [Tracker.Accumulate].
type Taken struct {
	// Block is the block of the item, and Source the way in which it was found.
	Block  Head
	Source Source
	// Latest is the head after the call. If Moved is true, the host commits its
	// root, and no root of a block before it.
	Latest Head
	Moved  bool
}

// Accumulate records that the best JAM chain has accumulated an item. If the
// block was not executed here, it becomes pending. Errors are those of
// [Tracker.Lookup].
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
