package jamtest

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// Point is the position of a block on a chain.
type Point struct {
	// Hash identifies the block, and Slot is the slot in which it was authored.
	Hash jamq.HeaderHash
	Slot jamq.Slot
	// Height is the number of ancestors of the block, so genesis has height 0.
	Height uint64
}

func (b *block) point() Point { return Point{Hash: b.Hash, Slot: b.Slot, Height: b.height} }

// copyBlock returns a copy of the block whose slices the caller may change. The
// prerequisites of the reports are still shared with the chain.
func (b *block) copyBlock() jamq.Block {
	out := b.Block
	out.Reported = slices.Clone(out.Reported)
	out.Available = slices.Clone(out.Available)
	out.Condemned = slices.Clone(out.Condemned)
	out.Accumulated = slices.Clone(out.Accumulated)
	return out
}

// Config returns the configuration of the chain, including changes by SetFaults.
func (c *Chain) Config() Config { return c.cfg }

// Slot returns the current slot, whether or not it has a block.
func (c *Chain) Slot() jamq.Slot { return c.slot }

// Best returns the head of the best chain.
func (c *Chain) Best() jamq.Block { return c.best.copyBlock() }

// Finalized returns the last finalized block.
func (c *Chain) Finalized() jamq.Block { return c.finalized.copyBlock() }

// Height returns the height of the best block.
func (c *Chain) Height() uint64 { return c.best.height }

// Anchors returns the recent history of the best chain, oldest first: at most H blocks,
// of which the last is the best block. The best block has roots here, as a JAM node
// knows them, although no header contains them before the block has a child.
func (c *Chain) Anchors() []jamq.AnchorBlock {
	var out []jamq.AnchorBlock
	for b := c.best; b != nil && len(out) < c.cfg.Spec.RecentHistory; b = b.parent {
		out = append(out, anchorBlock(b))
	}
	slices.Reverse(out)
	return out
}

// LookupAnchor returns the finalized block, which can serve as lookup anchor.
func (c *Chain) LookupAnchor() jamq.AnchorBlock { return anchorBlock(c.finalized) }

func anchorBlock(b *block) jamq.AnchorBlock {
	return jamq.AnchorBlock{Hash: b.Hash, Slot: b.Slot, StateRoot: b.stateRoot, BeefyRoot: b.beefyRoot}
}

// Context returns a refine context whose anchor is offset blocks behind the best block,
// from 1 to H-1, and whose lookup anchor is the finalized block. It sorts the
// prerequisites and removes duplicates. The error wraps [ErrNoAnchor] if the chain is
// too short, as it always is with only the genesis block.
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

// Block returns a retained block of any branch.
func (c *Chain) Block(hash jamq.HeaderHash) (jamq.Block, bool) {
	b, ok := c.blocks[hash]
	if !ok {
		return jamq.Block{}, false
	}
	return b.copyBlock(), true
}

// Locate returns the position of a retained block of any branch.
func (c *Chain) Locate(hash jamq.HeaderHash) (Point, bool) {
	b, ok := c.blocks[hash]
	if !ok {
		return Point{}, false
	}
	return b.point(), true
}

// Contains reports whether the chain that ends in head contains a block, which may be
// head itself. It returns false for blocks that the chain has forgotten.
func (c *Chain) Contains(head, hash jamq.HeaderHash) bool {
	b, x := c.blocks[head], c.blocks[hash]
	return b != nil && x != nil && b.within(x.height) == x
}

// AnchorBlock returns the slot and the posterior roots of a retained block.
func (c *Chain) AnchorBlock(hash jamq.HeaderHash) (jamq.AnchorBlock, bool) {
	b, ok := c.blocks[hash]
	if !ok {
		return jamq.AnchorBlock{}, false
	}
	return anchorBlock(b), true
}

// Accumulation is a package together with the block that accumulated it.
type Accumulation struct {
	Package
	// In is the block that accumulated the package.
	In Point
}

// appendAccumulated appends the packages that b accumulated, except those of other
// rollups.
func (c *Chain) appendAccumulated(to []Accumulation, b *block) []Accumulation {
	for _, h := range b.Accumulated {
		if c.packages[h].Service == ForeignService {
			continue
		}
		to = append(to, Accumulation{Package: c.packages[h].clone(), In: b.point()})
	}
	return to
}

// Accumulated returns the submitted packages that were accumulated on the chain that
// ends in head, in the order of accumulation. It begins with the oldest block that the
// chain still has: see Config.Retention. The error wraps [ErrUnknownBlock].
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

// Inbox returns the packages that one service has received on the chain that ends in
// head. They are the packages of [Chain.Accumulated] for that service. The error wraps
// [ErrUnknownBlock].
func (c *Chain) Inbox(service jamq.ServiceID, head jamq.HeaderHash) ([]Accumulation, error) {
	all, err := c.Accumulated(head)
	return slices.DeleteFunc(all, func(a Accumulation) bool { return a.Service != service }), err
}
