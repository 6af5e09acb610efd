package canonical

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// Head is a rollup block.
type Head struct {
	// Number is the number of the block. The genesis has number 0.
	Number uint64
	// Hash is the hash of the block, and Root the state root after it.
	Hash, Root common.Hash
	// Commitment identifies the block in the queue and stays the same for all
	// its packages. Zero means that it has none and is found by number.
	Commitment common.Hash
}

// Heads are the blocks that the named tags resolve to.
type Heads struct {
	// Earliest is the block that the tracker began with.
	Earliest Head
	// Pending is the newest executed block.
	Pending Head
	// Latest is the highest block up to which all blocks are accumulated on the
	// best JAM chain.
	Latest Head
	// Safe is the same at the host's justified point. It equals Finalized if
	// the host has none.
	Safe Head
	// Finalized is the same on the finalized JAM chain.
	Finalized Head
}

// stage is the progress of a block on JAM. Each stage includes the earlier
// ones.
type stage uint8

const (
	executed stage = iota
	accumulated
	justified
	final
)

// entry is a tracked block.
type entry struct {
	head  Head
	stage stage
	// learned marks a block that was not executed here and is known from JAM
	// only.
	learned bool
}

// Tracker tracks executed blocks and their heads. Create one with [New].
type Tracker struct {
	earliest Head
	blocks   []entry // by number, from base on
	base     uint64
	keep     uint64
	// tops has, for each stage, the highest block up to which all blocks have
	// reached it. tops[executed] is pending.
	tops         [final + 1]uint64
	byCommitment map[common.Hash]uint64
}

// New returns a tracker that begins at a final block: the genesis, or the last
// final block of an earlier run. retain is the number of finalized blocks
// before the newest one that can still be resolved by number. The first block
// always can.
func New(start Head, retain uint64) *Tracker {
	t := &Tracker{earliest: start, base: start.Number, keep: retain, byCommitment: make(map[common.Hash]uint64)}
	t.add(entry{head: start, stage: final})
	for s := range t.tops {
		t.tops[s] = start.Number
	}
	return t
}

// add appends the next block.
func (t *Tracker) add(e entry) {
	t.blocks = append(t.blocks, e)
	t.tops[executed] = e.head.Number
	if e.head.Commitment != (common.Hash{}) {
		t.byCommitment[e.head.Commitment] = e.head.Number
	}
	t.advance()
}

// forget removes a block from the index.
func (t *Tracker) forget(h Head) {
	if t.byCommitment[h.Commitment] == h.Number {
		delete(t.byCommitment, h.Commitment)
	}
}

func (t *Tracker) pending() uint64 { return t.tops[executed] }

// entry returns a tracked block, or nil.
func (t *Tracker) entry(number uint64) *entry {
	if number < t.base || number > t.pending() {
		return nil
	}
	return &t.blocks[number-t.base]
}

// tracked returns a tracked block. The error wraps ErrUnknownBlock.
func (t *Tracker) tracked(number uint64) (*entry, error) {
	if e := t.entry(number); e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("%w: %d, tracked are %d to %d", ErrUnknownBlock, number, t.base, t.pending())
}

// advance moves the heads over everything that is contiguous.
func (t *Tracker) advance() {
	for s := accumulated; s <= final; s++ {
		for next := t.entry(t.tops[s] + 1); next != nil && next.stage >= s; next = t.entry(t.tops[s] + 1) {
			t.tops[s]++
		}
	}
}

// top returns the block that a stage has reached.
func (t *Tracker) top(s stage) Head { return t.entry(t.tops[s]).head }

// Heads returns the blocks that the named tags resolve to.
func (t *Tracker) Heads() Heads {
	return Heads{Earliest: t.earliest, Pending: t.top(executed), Latest: t.top(accumulated), Safe: t.top(justified), Finalized: t.top(final)}
}
