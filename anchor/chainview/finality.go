package chainview

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// Finalize marks an imported block as final and prunes the tree. If the block is not on the best
// chain, it becomes the best block. Finalizing the finalized block again has no effect.
//
// The error wraps one of these errors; the view is then unchanged:
//
//   - [ErrOld] if the block is an ancestor of the finalized block. The view remembers the last 512
//     of the ancestors that it has pruned.
//   - [ErrUnknownBlock] if the block was never imported, or was pruned earlier
//   - [ErrConflict] if it does not descend from the finalized block
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

// dropForks removes the branches of the tree that do not descend from the finalized block, because
// they can never be on the best chain again.
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
		v.abandoned = remember(v.abandoned, maxAbandoned, n.Hash)
		n.lost = true
		delete(v.nodes, n.Hash)
		n.contents = nil
	}
}

// Abandon remembers a block that Import has refused with [ErrOld], so that Import recognizes its
// children as old too and does not ask for their parent. It does nothing for a block that the view
// knows.
func (v *View) Abandon(hash jamq.HeaderHash) {
	if !v.Knows(hash) && !slices.Contains(v.past, hash) {
		v.abandoned = remember(v.abandoned, maxAbandoned, hash)
	}
}

// remember appends a hash to a list, and drops the oldest hashes so that the list has at most most
// of them.
func remember(list []jamq.HeaderHash, most int, hash jamq.HeaderHash) []jamq.HeaderHash {
	list = append(list, hash)
	return slices.Delete(list, 0, max(0, len(list)-most))
}

// maxAbandoned is how many blocks of abandoned forks the view remembers. By them Import can
// distinguish a late child of such a block, which is old, from a block whose parent is missing.
const maxAbandoned = 256

// maxPast is how many final blocks the view remembers after it has pruned them. By them Finalize
// can distinguish a block that was final before from a block that was never imported. A host
// finalizes a block twice, for example, when it reads its own records again after a crash.
const maxPast = 512

// trim frees data about final blocks that is no longer needed: the link to the parent, the state of
// blocks below the finalized one, and the reports of blocks before recent history. It also frees
// whole blocks that are older than both recent history and an epoch.
func (v *View) trim(previous uint64) {
	base := v.main[0].Height
	for h := max(previous, base); h < v.finalized.Height; h++ {
		n := v.main[h-base]
		n.parent, n.cores, n.ready = nil, nil, nil
	}
	v.finalized.parent = nil
	history := uint64(v.spec.RecentHistory)
	for h := max(previous, base+history) - history; h+history < v.finalized.Height; h++ {
		v.main[h-base].reported = nil // before recent history
	}
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
