package canonical

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// Head is a rollup block.
type Head struct {
	// Number counts from 0, the genesis.
	Number uint64
	// Hash is the block's, Root that of the state after it.
	Hash, Root common.Hash
	// Commitment is the name of the block in the queue, which stays the same from package to package. Zero: it has none, and is found
	// by number.
	Commitment common.Hash
}

// Heads are the blocks that the tags name.
type Heads struct {
	// Earliest is the block that the tracker began with.
	Earliest Head
	// Pending is the newest executed block.
	Pending Head
	// Latest is the highest that is accumulated without a gap below it on the best JAM chain.
	Latest Head
	// Safe is the same at the host's justified point; Finalized where it has none.
	Safe Head
	// Finalized is the same on the finalized JAM chain.
	Finalized Head
}

// stage is how far JAM has come with a block. Each includes those before it.
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
	// learned says that the block was not executed here: it is known from JAM alone.
	learned bool
}

// Tracker tracks executed blocks. Make one with [New].
type Tracker struct {
	earliest Head
	blocks   []entry // by number, from base on
	base     uint64
	keep     uint64
	// tops are the highest blocks up to which all are at a stage; tops[executed] is pending.
	tops         [final + 1]uint64
	byCommitment map[common.Hash]uint64
}

// New returns a tracker that begins at a final block: the genesis, or where a host left off. retain is how many finalized blocks
// before the newest can still be resolved by number; the first one always can.
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

// forget drops the index of a block that leaves.
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

// Heads returns the blocks that the tags name.
func (t *Tracker) Heads() Heads {
	return Heads{Earliest: t.earliest, Pending: t.top(executed), Latest: t.top(accumulated), Safe: t.top(justified), Finalized: t.top(final)}
}
