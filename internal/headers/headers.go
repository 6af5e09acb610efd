// Package headers keeps the tree of the blocks that a feed has delivered: the
// finalized block and all blocks after it, and the blocks before it that can
// still be anchors. The feeds of submit/jip2 and submit/jamnps share it. It is
// not safe for concurrent use.
package headers

import (
	"fmt"
	"iter"
	"maps"
	"time"

	"github.com/jamq/jamq"
)

// maxAhead is the maximum number of slots that a block may be ahead of the
// host's clock. Without it, a node could invent a chain of any length, and the
// feed would fetch all of it.
const maxAhead = 100

// CheckAhead returns an error if a block of the given slot lies too far ahead of
// the host's clock, whose time is now.
func CheckAhead(clock jamq.SlotClock, now time.Time, slot jamq.Slot) error {
	if at := clock.SlotAt(now); slot > at.Add(maxAhead) {
		return fmt.Errorf("slot %d is ahead of the host's clock, which is at slot %d; want at most %d more", slot, at, maxAhead)
	}
	return nil
}

// Block is a delivered block, identified by Hash, of the given Slot, with the
// feed's Note.
type Block[T any] struct {
	Hash jamq.HeaderHash
	Slot jamq.Slot
	// Height counts blocks, beginning at an arbitrary number.
	Height uint64
	// Parent is nil for the oldest retained block.
	Parent *Block[T]
	Note   T
}

// Descends reports whether b is the ancestor itself or a descendant of it.
func (b *Block[T]) Descends(ancestor *Block[T]) bool {
	for b != nil && b.Height > ancestor.Height {
		b = b.Parent
	}
	return b == ancestor
}

// Child returns a new block on top of b that is not in a tree yet.
func (b *Block[T]) Child(hash jamq.HeaderHash, slot jamq.Slot, note T) *Block[T] {
	return &Block[T]{Hash: hash, Slot: slot, Height: b.Height + 1, Parent: b, Note: note}
}

// Tree is the tree of delivered blocks. Create it with [New].
type Tree[T any] struct {
	keep            uint64
	blocks          map[jamq.HeaderHash]*Block[T]
	best, finalized *Block[T]
	resting         jamq.HeaderHash
}

// New returns a tree of one final block. recent is the number of blocks after
// an anchor that may report its packages. best is the best block of the sink
// after a restart if it is beyond the root, or zero; see [Tree.BestHash].
func New[T any](root, best jamq.HeaderHash, slot jamq.Slot, recent int, note T) *Tree[T] {
	keep := uint64(recent) + 1
	// The height leaves room for the blocks before the root.
	b := &Block[T]{Hash: root, Slot: slot, Height: keep, Note: note}
	return &Tree[T]{keep: keep, blocks: map[jamq.HeaderHash]*Block[T]{root: b}, best: b, finalized: b, resting: best}
}

// Get returns a retained block, or nil.
func (t *Tree[T]) Get(hash jamq.HeaderHash) *Block[T] { return t.blocks[hash] }

// Len returns the number of retained blocks.
func (t *Tree[T]) Len() int { return len(t.blocks) }

// All returns the retained blocks in any order.
func (t *Tree[T]) All() iter.Seq[*Block[T]] { return maps.Values(t.blocks) }

// Best returns the best delivered block.
func (t *Tree[T]) Best() *Block[T] { return t.best }

// Finalized returns the last final delivered block.
func (t *Tree[T]) Finalized() *Block[T] { return t.finalized }

// BestHash returns the best block of the sink. After a restart, until SetBest
// is called, it is the block that the sink knew before. Otherwise a restart
// would look like a reorg to the sink.
func (t *Tree[T]) BestHash() jamq.HeaderHash {
	if t.Rests() {
		return t.resting
	}
	return t.best.Hash
}

// Rests reports whether SetBest has not been called since a restart.
func (t *Tree[T]) Rests() bool { return !t.resting.IsZero() }

// Oldest returns the oldest retained block on the finalized chain.
func (t *Tree[T]) Oldest() *Block[T] {
	b := t.finalized
	for b.Parent != nil {
		b = b.Parent
	}
	return b
}

// Excludes reports whether no chain with a block of the given hash and slot has
// the finalized block. It is certain only for a block that is not newer than the
// finalized one and not older than the oldest one, because the tree has all
// blocks of the finalized chain in between. The hash of zeros is no block.
func (t *Tree[T]) Excludes(hash jamq.HeaderHash, slot jamq.Slot) bool {
	return t.blocks[hash] == nil && !hash.IsZero() && slot <= t.finalized.Slot && slot >= t.Oldest().Slot
}

// Misses reports whether the way back from a newer block to one of the given hash
// and slot has passed the finalized block without meeting it.
func (t *Tree[T]) Misses(hash jamq.HeaderHash, slot jamq.Slot) bool {
	if b := t.blocks[hash]; b != nil {
		return !b.Descends(t.finalized)
	}
	return slot <= t.finalized.Slot
}

// Add adds a child of a retained block. If it is the sink's best block, it
// becomes the best block of the tree.
func (t *Tree[T]) Add(child *Block[T]) {
	t.blocks[child.Hash] = child
	if child.Hash == t.resting {
		t.SetBest(child)
	}
}

// Precede adds a block before the oldest one. It returns false if there is no
// room, because an older block cannot be an anchor.
func (t *Tree[T]) Precede(hash jamq.HeaderHash, slot jamq.Slot, note T) bool {
	oldest := t.Oldest()
	if oldest.Height == 0 || oldest.Height+t.keep <= t.finalized.Height {
		return false
	}
	oldest.Parent = &Block[T]{Hash: hash, Slot: slot, Height: oldest.Height - 1, Note: note}
	t.blocks[hash] = oldest.Parent
	return true
}

// SetBest makes a block the best one.
func (t *Tree[T]) SetBest(b *Block[T]) { t.best, t.resting = b, jamq.HeaderHash{} }

// Finalize makes a descendant of the finalized block final. It removes
// abandoned forks, and final blocks that can no longer be anchors. The best
// block that the sink knew before a restart is no longer used, because it may
// be on such a fork.
func (t *Tree[T]) Finalize(b *Block[T]) {
	t.finalized, t.resting = b, jamq.HeaderHash{}
	if !t.best.Descends(b) {
		t.best = b
	}
	for hash, n := range t.blocks {
		switch {
		case n.Height+t.keep < b.Height, !n.Descends(b) && !b.Descends(n):
			delete(t.blocks, hash)
		case n.Height+t.keep == b.Height:
			n.Parent = nil
		}
	}
}
