package jamtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jamq/jamq"
)

// Slot returns the current slot.
func (c *Chain) Slot() jamq.Slot { return c.slot }

// Best returns the head of the best chain.
func (c *Chain) Best() jamq.Block { return c.best.Block }

// Finalized returns the last finalized block.
func (c *Chain) Finalized() jamq.Block { return c.finalized.Block }

// Height returns the number of blocks on the best chain after genesis.
func (c *Chain) Height() uint64 { return c.best.height }

// Anchors returns the recent history of the best chain, oldest first: at most H blocks, of which the last is the best
// block. Its roots are in there as a node would know them, but no header carries them before its child.
func (c *Chain) Anchors() []jamq.AnchorBlock {
	var out []jamq.AnchorBlock
	c.best.recent(c.cfg.Spec.RecentHistory, func(b *block) bool {
		out = append(out, anchorBlock(b))
		return true
	})
	slices.Reverse(out)
	return out
}

// LookupAnchor returns a block that serves as a lookup anchor: the finalized one, or, where finality is so late that it would soon be too
// old, the oldest of recent history.
func (c *Chain) LookupAnchor() jamq.AnchorBlock {
	if c.slot.Since(c.finalized.Slot) <= c.cfg.Spec.MaxLookupAnchorAge/2 {
		return anchorBlock(c.finalized)
	}
	oldest := c.best
	c.best.recent(c.cfg.Spec.RecentHistory, func(b *block) bool {
		oldest = b
		return true
	})
	return anchorBlock(oldest)
}

func anchorBlock(b *block) jamq.AnchorBlock {
	return jamq.AnchorBlock{Hash: b.Hash, Slot: b.Slot, StateRoot: stateRoot(b.Hash), BeefyRoot: beefyRoot(b.Hash)}
}

// Block returns a block that the chain still holds.
func (c *Chain) Block(hash jamq.HeaderHash) (jamq.Block, bool) {
	b, ok := c.blocks[hash]
	if !ok {
		return jamq.Block{}, false
	}
	return b.Block, true
}

// Trace is what became of a package on the best chain. A nil block means that it did not happen, or was forgotten.
type Trace struct {
	// Reported and Accumulated are the blocks in which that happened.
	Reported, Accumulated *jamq.Block
	// OnCore and Ready say where it is now.
	OnCore, Ready bool
}

// Trace looks a package up on the best chain.
func (c *Chain) Trace(pkg jamq.PackageHash) Trace {
	var t Trace
	for b := c.best; b != nil; b = b.parent {
		if b.reports(pkg) {
			t.Reported = &b.Block
		}
		if slices.Contains(b.Accumulated, pkg) {
			t.Accumulated = &b.Block
		}
	}
	t.OnCore = slices.ContainsFunc(c.best.cores, func(r *report) bool { return r != nil && r.pkg.Hash == pkg })
	t.Ready = slices.ContainsFunc(c.best.ready, func(w waiting) bool { return w.pkg.Hash == pkg })
	return t
}

// String draws the newest blocks of the best chain for people, one a line.
func (c *Chain) String() string {
	const lines = 12
	var out strings.Builder
	fmt.Fprintf(&out, "slot %d, finalized at height %d\n", c.slot, c.finalized.height)
	c.best.recent(lines, func(b *block) bool {
		fmt.Fprintf(&out, "%6d slot %d %s", b.height, b.Slot, b.Hash.Short())
		for _, r := range b.Reported {
			fmt.Fprintf(&out, " report %s on %d", r.Package.Short(), r.Core)
		}
		for _, h := range b.Accumulated {
			fmt.Fprintf(&out, " accumulate %s", h.Short())
		}
		out.WriteByte('\n')
		return true
	})
	return out.String()
}
