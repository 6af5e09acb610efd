package chainview

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// Finalize marks an imported block final and prunes what cannot matter any more. If the block is
// not on the best chain, it becomes the best block. The finalized block itself may be given again.
//
// The error wraps one of these, and a refused block changes nothing:
//   - ErrOld if the block is an ancestor of the finalized one: finality never moves back;
//   - ErrUnknownBlock if the block was never imported, or is so old that the view has forgotten it;
//   - ErrConflict if it does not descend from the finalized block.
func (v *View) Finalize(hash jamq.HeaderHash) error {
	n, ok := v.nodes[hash]
	if !ok {
		return fmt.Errorf("%w: finalized block %s", ErrUnknownBlock, hash)
	}
	if n == v.finalized {
		return nil
	}
	if v.descends(v.finalized, n) {
		return fmt.Errorf("%w: finalized block %s of height %d, have %s of height %d", ErrOld, hash, n.Height, v.finalized.Hash, v.finalized.Height)
	}
	if !v.descends(n, v.finalized) {
		return fmt.Errorf("%w: finalized block %s does not descend from the finalized %s", ErrConflict, hash, v.finalized.Hash)
	}
	if !v.onMain(n) {
		v.setBest(n)
	}
	previous := v.finalized
	v.finalized = n
	v.dropForks()
	v.trim(previous.Height)
	return nil
}

// dropForks forgets the branches that do not descend from the finalized block.
func (v *View) dropForks() {
	var lost []*node
	v.side = slices.DeleteFunc(v.side, func(n *node) bool {
		if v.descends(n, v.finalized) {
			return false
		}
		lost = append(lost, n)
		return true
	})
	for _, n := range lost {
		v.abandoned = append(v.abandoned, n.Hash)
		n.lost = true
		delete(v.nodes, n.Hash)
		n.contents = nil
	}
	if over := len(v.abandoned) - maxAbandoned; over > 0 {
		v.abandoned = slices.Delete(v.abandoned, 0, over)
	}
}

// maxAbandoned is how many blocks of other forks are remembered, to tell their late children from
// the blocks after a gap.
const maxAbandoned = 256

// trim lets go of what final blocks need no more: the way to their parents, below the finalized
// block the state, and those altogether that have left recent history and the memory of an epoch.
func (v *View) trim(previous uint64) {
	base := v.main[0].Height
	for h := max(previous, base); h < v.finalized.Height; h++ {
		n := v.main[h-base]
		n.parent, n.cores, n.ready = nil, nil, nil
	}
	v.finalized.parent = nil
	history := uint64(v.spec.RecentHistory)
	for h := max(previous, base+history) - history; h+history < v.finalized.Height; h++ {
		v.main[h-base].reported = nil // older than recent history
	}
	memory := uint64(max(int(v.spec.EpochLength), v.spec.RecentHistory))
	drop := 0
	for ; v.main[drop].Height+memory < v.finalized.Height; drop++ {
		n := v.main[drop]
		delete(v.nodes, n.Hash)
		n.contents = nil
	}
	if drop > 0 {
		v.main = append(v.main[:0], v.main[drop:]...)
	}
}
