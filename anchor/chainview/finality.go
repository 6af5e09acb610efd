package chainview

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// Finalize marks an imported block as final and prunes the tree. If the block is
// not on the best chain, it also becomes the best block. Finalizing the same block
// twice in a row has no effect.
//
// If Finalize fails, the view is unchanged, and the error wraps one of these
// errors:
//
//   - [ErrOld] if the block is an ancestor of the finalized block. The view
//     recognizes such a block even after pruning, unless more than 512 blocks were
//     pruned since.
//   - [ErrUnknownBlock] if the block was never imported, or was pruned earlier
//   - [ErrConflict] if the block does not descend from the finalized block
func (v *View) Finalize(hash jamq.HeaderHash) error {
	n, ok := v.nodes[hash]
	if !ok && slices.Contains(v.past, hash) {
		return fmt.Errorf("%w: finalized block %s, have %s of height %d", ErrOld, hash, v.finalized.Hash, v.finalized.Height)
	}
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

// dropForks removes all blocks that do not descend from the finalized block.
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
		// A fork that excludes the finalized block can never win. The hash of each of its
		// blocks is remembered, so that a child that arrives later is refused as old and not as
		// a block with an unknown parent.
		v.abandoned = remember(v.abandoned, maxAbandoned, n.Hash)
		n.lost = true
		delete(v.nodes, n.Hash)
		n.contents = nil
	}
}

// Abandon remembers the hash of a block that Import has refused with [ErrOld].
// Import then refuses the children of the block with ErrOld too, instead of asking
// for their parent. Abandon does nothing for a block that the view knows.
func (v *View) Abandon(hash jamq.HeaderHash) {
	if !v.Knows(hash) && !slices.Contains(v.past, hash) {
		v.abandoned = remember(v.abandoned, maxAbandoned, hash)
	}
}

// remember appends a hash and keeps the newest hashes, up to most.
func remember(list []jamq.HeaderHash, most int, hash jamq.HeaderHash) []jamq.HeaderHash {
	list = append(list, hash)
	return slices.Delete(list, 0, max(0, len(list)-most))
}

// maxAbandoned is the maximum number of abandoned blocks that the view remembers.
// Import needs their hashes to distinguish a late child of an abandoned block, which is
// old, from a block whose parent has not been imported yet.
const maxAbandoned = 256

// maxPast is the maximum number of final blocks that the view remembers after pruning.
// Finalize needs their hashes to distinguish a block that was final before from a block
// that was never imported. For example, a host finalizes a block twice if it reads its
// own records again after a crash.
const maxPast = 512

// trim frees data of final blocks after the finalized block has advanced.
func (v *View) trim(previous uint64) {
	base := v.main[0].Height
	for h := max(previous, base); h < v.finalized.Height; h++ {
		n := v.main[h-base]
		// The state after a block is needed only to compute the state of its children. A block
		// below the finalized one gets no more children, so its state is dropped.
		n.parent, n.cores, n.ready = nil, nil, nil
	}
	v.finalized.parent = nil
	history := uint64(v.spec.RecentHistory)
	for h := max(previous, base+history) - history; h+history < v.finalized.Height; h++ {
		v.main[h-base].reported = nil // before recent history
	}
	// A block that is older than recent history and one epoch can no longer matter for
	// any package.
	memory := uint64(max(int(v.spec.EpochLength), v.spec.RecentHistory))
	drop := 0
	for ; v.main[drop].Height+memory < v.finalized.Height; drop++ {
		n := v.main[drop]
		v.past = remember(v.past, maxPast, n.Hash)
		delete(v.nodes, n.Hash)
		n.contents = nil
	}
	if drop > 0 {
		v.main = append(v.main[:0], v.main[drop:]...)
	}
}
