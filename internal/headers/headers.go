// Package headers keeps the tree of the blocks that a feed has delivered: all from the finalized one on, and before it as many as can be anchors. It is
// what the feeds of submit/jip2 and submit/jamnps share. It is not safe for concurrent use.
package headers

import (
	"iter"
	"maps"

	"github.com/jamq/jamq"
)

// Block is a block that was delivered, with what a feed notes about it.
type Block[T any] struct {
	Hash jamq.HeaderHash
	Slot jamq.Slot
	// Height counts blocks from some block on.
	Height uint64
	// Parent is nil for the oldest that is kept.
	Parent *Block[T]
	Note   T
}

// Descends reports whether a block is below an ancestor or the same.
func (b *Block[T]) Descends(ancestor *Block[T]) bool {
	for b != nil && b.Height > ancestor.Height {
		b = b.Parent
	}
	return b == ancestor
}

// Child returns a block on top of this one, which is in no tree yet.
func (b *Block[T]) Child(hash jamq.HeaderHash, slot jamq.Slot, note T) *Block[T] {
	return &Block[T]{Hash: hash, Slot: slot, Height: b.Height + 1, Parent: b, Note: note}
}

// Tree is the tree. Make one with [New].
type Tree[T any] struct {
	keep            uint64
	blocks          map[jamq.HeaderHash]*Block[T]
	best, finalized *Block[T]
	resting         jamq.HeaderHash
}

// New returns a tree of one final block. recent is how many blocks on top of an anchor may still report what is anchored there. best is what the sink has as its
// best block where it knows more than the root, or zero: see [Tree.BestHash].
func New[T any](root, best jamq.HeaderHash, slot jamq.Slot, recent int, note T) *Tree[T] {
	keep := uint64(recent) + 1
	b := &Block[T]{Hash: root, Slot: slot, Height: keep, Note: note} // so high that those before it can be put there
	return &Tree[T]{keep: keep, blocks: map[jamq.HeaderHash]*Block[T]{root: b}, best: b, finalized: b, resting: best}
}

// Get returns a block that is kept, or nil.
func (t *Tree[T]) Get(hash jamq.HeaderHash) *Block[T] { return t.blocks[hash] }

// Len returns how many blocks are kept.
func (t *Tree[T]) Len() int { return len(t.blocks) }

// All goes through the blocks in no order.
func (t *Tree[T]) All() iter.Seq[*Block[T]] { return maps.Values(t.blocks) }

// Best and Finalized are the heads among the blocks that were delivered.
func (t *Tree[T]) Best() *Block[T]      { return t.best }
func (t *Tree[T]) Finalized() *Block[T] { return t.finalized }

// BestHash returns what the sink holds for the best block: after a restart, until SetBest, the one that it knows from before. Else a restart would look like a
// reorg to it.
func (t *Tree[T]) BestHash() jamq.HeaderHash {
	if t.Rests() {
		return t.resting
	}
	return t.best.Hash
}

// Rests reports whether the sink was not told of a best block yet since it restarted.
func (t *Tree[T]) Rests() bool { return !t.resting.IsZero() }

// Oldest returns the oldest block on the finalized chain that is kept.
func (t *Tree[T]) Oldest() *Block[T] {
	b := t.finalized
	for b.Parent != nil {
		b = b.Parent
	}
	return b
}

// Add puts a child of a block that is kept into the tree. What the sink holds for the best block is that here as well, once it is there.
func (t *Tree[T]) Add(child *Block[T]) {
	t.blocks[child.Hash] = child
	if child.Hash == t.resting {
		t.SetBest(child)
	}
}

// Precede puts a block before the oldest one, and reports whether there is room: what is older can be no anchor.
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

// Finalize makes a descendant of the finalized block final. It forgets forks that lost, and final blocks that can be no anchor any more. A best block that the
// sink knows from before is not relied on any longer: it may be on such a fork.
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
