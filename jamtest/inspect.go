package jamtest

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// Point is a place on a chain.
type Point struct {
	// Hash is the block's, Slot the time slot in which it was authored.
	Hash jamq.HeaderHash
	Slot jamq.Slot
	// Height is the number of blocks from genesis to it.
	Height uint64
}

func (b *block) point() Point { return Point{Hash: b.Hash, Slot: b.Slot, Height: b.height} }

// copyBlock returns the block for users, who may change the slices. The elements' prerequisites are shared.
func (b *block) copyBlock() jamq.Block {
	out := b.Block
	out.Reported = slices.Clone(out.Reported)
	out.Available = slices.Clone(out.Available)
	out.Condemned = slices.Clone(out.Condemned)
	out.Accumulated = slices.Clone(out.Accumulated)
	return out
}

// Config returns the configuration that the chain was made with, and what SetFaults changed of it.
func (c *Chain) Config() Config { return c.cfg }

// Slot returns the current slot, whether or not it has a block.
func (c *Chain) Slot() jamq.Slot { return c.slot }

// Best returns the head of the best chain.
func (c *Chain) Best() jamq.Block { return c.best.copyBlock() }

// Finalized returns the last finalized block.
func (c *Chain) Finalized() jamq.Block { return c.finalized.copyBlock() }

// Height returns the number of blocks on the best chain after genesis.
func (c *Chain) Height() uint64 { return c.best.height }

// Anchors returns the recent history of the best chain, oldest first: at most H blocks, of which the last is the best
// block. Its roots are in there as a node would know them, but no header carries them before its child.
func (c *Chain) Anchors() []jamq.AnchorBlock {
	var out []jamq.AnchorBlock
	for b := c.best; b != nil && len(out) < c.cfg.Spec.RecentHistory; b = b.parent {
		out = append(out, anchorBlock(b))
	}
	slices.Reverse(out)
	return out
}

// LookupAnchor returns the finalized block, which serves as a lookup anchor.
func (c *Chain) LookupAnchor() jamq.AnchorBlock { return anchorBlock(c.finalized) }

func anchorBlock(b *block) jamq.AnchorBlock {
	return jamq.AnchorBlock{Hash: b.Hash, Slot: b.Slot, StateRoot: b.stateRoot, BeefyRoot: b.beefyRoot}
}

// Context returns a refine context anchored offset blocks behind the best block, from 1 to H-1, with the finalized block as
// lookup anchor. Where the chain is shorter, the error wraps [ErrNoAnchor]; so it does for genesis as the only block.
func (c *Chain) Context(offset int, prerequisites ...jamq.PackageHash) (jamq.RefineContext, error) {
	anchors := c.Anchors()
	if offset < 1 || offset >= len(anchors) {
		return jamq.RefineContext{}, fmt.Errorf("%w: %d blocks behind the best, want 1 to %d", ErrNoAnchor, offset, len(anchors)-1)
	}
	anchor, lookup := anchors[len(anchors)-1-offset], c.LookupAnchor()
	needs := slices.Clone(prerequisites)
	slices.SortFunc(needs, jamq.PackageHash.Compare)
	return jamq.RefineContext{
		Anchor: anchor.Hash, StateRoot: anchor.StateRoot, BeefyRoot: anchor.BeefyRoot,
		LookupAnchor: lookup.Hash, LookupAnchorSlot: lookup.Slot,
		AnchorSlot: anchor.Slot, LookupStateRoot: lookup.StateRoot,
		Prerequisites: slices.Compact(needs),
	}, nil
}

// Block returns a block that the chain still holds, of any branch.
func (c *Chain) Block(hash jamq.HeaderHash) (jamq.Block, bool) {
	b, ok := c.blocks[hash]
	if !ok {
		return jamq.Block{}, false
	}
	return b.copyBlock(), true
}

// Locate returns where a block is that the chain still holds, of any branch.
func (c *Chain) Locate(hash jamq.HeaderHash) (Point, bool) {
	b, ok := c.blocks[hash]
	if !ok {
		return Point{}, false
	}
	return b.point(), true
}

// Contains reports whether the chain that ends in head has a block, head itself included, as far as blocks are kept.
func (c *Chain) Contains(head, hash jamq.HeaderHash) bool {
	b, x := c.blocks[head], c.blocks[hash]
	return b != nil && x != nil && b.within(x.height) == x
}

// AnchorBlock returns what a node knows of a block that the chain still holds: its slot and its posterior roots.
func (c *Chain) AnchorBlock(hash jamq.HeaderHash) (jamq.AnchorBlock, bool) {
	b, ok := c.blocks[hash]
	if !ok {
		return jamq.AnchorBlock{}, false
	}
	return anchorBlock(b), true
}

// Accumulation is a package that was accumulated.
type Accumulation struct {
	Package
	// In is the block in which that happened.
	In Point
}

// appendAccumulated leaves out what foreign rollups got.
func (c *Chain) appendAccumulated(to []Accumulation, b *block) []Accumulation {
	for _, h := range b.Accumulated {
		if c.packages[h].Service == ForeignService {
			continue
		}
		to = append(to, Accumulation{Package: c.packages[h].clone(), In: b.point()})
	}
	return to
}

// Accumulated returns all submitted packages that were accumulated on the chain that ends in head, in the order of accumulation, from the oldest
// block that is kept (see Config.Retention). The error wraps [ErrUnknownBlock].
func (c *Chain) Accumulated(head jamq.HeaderHash) ([]Accumulation, error) {
	b, ok := c.blocks[head]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrUnknownBlock, head)
	}
	var out []Accumulation
	for _, b := range path(b, 0) {
		out = c.appendAccumulated(out, b)
	}
	return out, nil
}

// Inbox returns what one rollup's service has received on the chain that ends in head: [Chain.Accumulated] of its packages
// only.
func (c *Chain) Inbox(service jamq.ServiceID, head jamq.HeaderHash) ([]Accumulation, error) {
	all, err := c.Accumulated(head)
	return slices.DeleteFunc(all, func(a Accumulation) bool { return a.Service != service }), err
}
