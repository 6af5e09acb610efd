// Package headers keeps the tree of the blocks that a feed has delivered: the finalized
// block, all blocks after it, and the blocks before it that can still be anchors. The
// feeds of submit/jip2 and submit/jamnps use it. It is not safe for concurrent use.
package headers

import (
	"fmt"
	"iter"
	"maps"
	"time"

	"github.com/jamq/jamq"
)

// maxAhead is how many slots a block may be ahead of the host's clock. Without this
// limit, a node could invent a chain of any length, and the feed would fetch all of it.
const maxAhead = 100

// CheckAhead returns an error if a slot is too far ahead of the host's clock, whose
// time is now. Feeds use it to refuse blocks that a node has invented.
func CheckAhead(clock jamq.SlotClock, now time.Time, slot jamq.Slot) error {
	if at := clock.SlotAt(now); slot > at.Add(maxAhead) {
		return fmt.Errorf("slot %d is ahead of the host's clock, which is at slot %d; want at most %d more", slot, at, maxAhead)
	}
	return nil
}

// Block is a delivered block in a [Tree]. Hash and Slot identify the block, and Note
// contains data that the feed has attached to it.
type Block[T any] struct {
	Hash jamq.HeaderHash
	Slot jamq.Slot
	// Height is the parent's height plus 1. The first height in a tree is arbitrary, so
	// only differences have a meaning.
	Height uint64
	// Parent is the parent of the block, or nil for the oldest retained block.
	Parent *Block[T]
	Note   T
}

// Descends reports whether b is the given ancestor itself or a descendant of
// it.
func (b *Block[T]) Descends(ancestor *Block[T]) bool {
	for b != nil && b.Height > ancestor.Height {
		b = b.Parent
	}
	return b == ancestor
}

// Child returns a new block whose parent is b. [Tree.Add] then adds it to the tree.
func (b *Block[T]) Child(hash jamq.HeaderHash, slot jamq.Slot, note T) *Block[T] {
	return &Block[T]{Hash: hash, Slot: slot, Height: b.Height + 1, Parent: b, Note: note}
}

// Tree is the tree of delivered blocks, in which a feed finds the parent of each new
// block. [New] creates a tree.
type Tree[T any] struct {
	keep            uint64
	blocks          map[jamq.HeaderHash]*Block[T]
	best, finalized *Block[T]
	resting         jamq.HeaderHash
}

// New returns a tree with a single final block, the root. recent is the length of
// recent history: the number of blocks after an anchor that may report the anchor's
// packages. best is the best block that the sink knew before a restart, if it is newer
// than the root, or zero: see [Tree.BestHash].
func New[T any](root, best jamq.HeaderHash, slot jamq.Slot, recent int, note T) *Tree[T] {
	keep := uint64(recent) + 1
	// The height of the root leaves room for smaller heights, for blocks before the root.
	b := &Block[T]{Hash: root, Slot: slot, Height: keep, Note: note}
	return &Tree[T]{keep: keep, blocks: map[jamq.HeaderHash]*Block[T]{root: b}, best: b, finalized: b, resting: best}
}

// Get returns the block with the given hash, or nil.
func (t *Tree[T]) Get(hash jamq.HeaderHash) *Block[T] { return t.blocks[hash] }

// Len returns the number of retained blocks.
func (t *Tree[T]) Len() int { return len(t.blocks) }

// All returns the retained blocks in an arbitrary order.
func (t *Tree[T]) All() iter.Seq[*Block[T]] { return maps.Values(t.blocks) }

// Best returns the best delivered block.
func (t *Tree[T]) Best() *Block[T] { return t.best }

// Finalized returns the newest final block.
func (t *Tree[T]) Finalized() *Block[T] { return t.finalized }

// BestHash returns the hash of the block that the sink considers best. After a restart,
// until SetBest is called, this is the block that the sink knew before the restart.
// With any other block, the restart would look like a reorg to the sink.
func (t *Tree[T]) BestHash() jamq.HeaderHash {
	if t.Rests() {
		return t.resting
	}
	return t.best.Hash
}

// Rests reports whether the sink's best block is still the block from before a restart,
// because neither SetBest nor Finalize has been called since.
func (t *Tree[T]) Rests() bool { return !t.resting.IsZero() }

// Oldest returns the oldest retained block of the finalized chain.
func (t *Tree[T]) Oldest() *Block[T] {
	b := t.finalized
	for b.Parent != nil {
		b = b.Parent
	}
	return b
}

// Excludes reports whether a block is certainly not on a chain with the finalized
// block. This is certain if the tree lacks the block although its slot lies between the
// oldest and the finalized block, because the tree has all blocks of the finalized
// chain in between. For a zero hash, which belongs to no block, Excludes returns false.
func (t *Tree[T]) Excludes(hash jamq.HeaderHash, slot jamq.Slot) bool {
	return t.blocks[hash] == nil && !hash.IsZero() && slot <= t.finalized.Slot && slot >= t.Oldest().Slot
}

// Misses reports whether a chain leaves out the finalized block. The caller has
// followed the chain from a newer block back to the block with the given hash and slot.
func (t *Tree[T]) Misses(hash jamq.HeaderHash, slot jamq.Slot) bool {
	if b := t.blocks[hash]; b != nil {
		return !b.Descends(t.finalized)
	}
	return slot <= t.finalized.Slot
}

// Add adds a block whose parent is in the tree. If the sink considered this block best
// before a restart, it becomes the best block of the tree.
func (t *Tree[T]) Add(child *Block[T]) {
	t.blocks[child.Hash] = child
	if child.Hash == t.resting {
		t.SetBest(child)
	}
}

// Precede adds the parent of the oldest block to the tree. It returns false, and adds
// nothing, if that block would be too old to be an anchor.
func (t *Tree[T]) Precede(hash jamq.HeaderHash, slot jamq.Slot, note T) bool {
	oldest := t.Oldest()
	if oldest.Height == 0 || oldest.Height+t.keep <= t.finalized.Height {
		return false
	}
	oldest.Parent = &Block[T]{Hash: hash, Slot: slot, Height: oldest.Height - 1, Note: note}
	t.blocks[hash] = oldest.Parent
	return true
}

// SetBest makes a block of the tree the best one.
func (t *Tree[T]) SetBest(b *Block[T]) { t.best, t.resting = b, jamq.HeaderHash{} }

// Finalize makes a descendant of the finalized block final. It removes abandoned forks,
// and final blocks that can no longer be anchors. If the best block is on an abandoned
// fork, the new final block becomes the best one. The tree then also gives up the best
// block that the sink knew before a restart, because that block may be on an abandoned
// fork too.
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
