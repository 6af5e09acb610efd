package chainview

import (
	"slices"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// Best returns the head of the best chain.
func (v *View) Best() anchor.Point { return v.best().Point }

// Finalized returns the last finalized block.
func (v *View) Finalized() anchor.Point { return v.finalized.Point }

// Knows reports whether the view remembers a block that was imported or passed to
// Abandon. The block is either in the tree, or among the limited number of
// abandoned blocks that the view remembers.
func (v *View) Knows(hash jamq.HeaderHash) bool {
	_, held := v.nodes[hash]
	return held || slices.Contains(v.abandoned, hash)
}

// AtHeight returns the block of the best chain at the given height. The result is
// false if the height is above the best block, or so low that the block was pruned.
func (v *View) AtHeight(height uint64) (anchor.Point, bool) {
	base := v.main[0].Height
	if height < base || height-base >= uint64(len(v.main)) {
		return anchor.Point{}, false
	}
	return v.main[height-base].Point, true
}

// Locate returns the position of the block with the given hash on the best chain.
// The result is false if the block is not in the tree or not on the best chain.
func (v *View) Locate(hash jamq.HeaderHash) (anchor.Point, bool) {
	n, ok := v.nodes[hash]
	if !ok || !v.onMain(n) {
		return anchor.Point{}, false
	}
	return n.Point, true
}

// CoreFree reports whether a core can take a report in the block after the best
// one, even if no report becomes available in that block. It assumes that the
// block is authored in the next slot (Gray Paper 11.29).
func (v *View) CoreFree(core jamq.CoreIndex) bool {
	best := v.best()
	if int(core) >= len(best.cores) {
		return false
	}
	r := best.cores[core]
	return r == nil || best.Slot.Add(1) >= r.Since.Add(v.spec.AvailabilityTimeout)
}
