package anchor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// ErrNoAnchor is wrapped by the error of Pick if the requested block cannot be an
// anchor, because it either is not in recent history or is the newest block.
var ErrNoAnchor = errors.New("anchor: no admissible anchor")

// Pick returns the refine context of a package that is anchored at the block with
// the given hash.
//
// recent is the host's recent history, oldest first. Its last entry is the newest
// block, which cannot be an anchor, because its state root is public only when it
// has a child. The context contains the slot and the roots of the anchor, and a
// copy of the prerequisites, sorted as their encoding requires and without
// duplicates.
//
// The error wraps [ErrNoAnchor] if the block is not in recent or is the newest
// block. Pick does not check limits that depend on the constants of the chain.
func Pick(recent []jamq.AnchorBlock, hash jamq.HeaderHash, lookup jamq.AnchorBlock, prerequisites []jamq.PackageHash) (jamq.RefineContext, error) {
	i := slices.IndexFunc(recent, func(b jamq.AnchorBlock) bool { return b.Hash == hash })
	switch i {
	case -1:
		return jamq.RefineContext{}, fmt.Errorf("%w: %s is not in the recent history of %d blocks", ErrNoAnchor, hash, len(recent))
	case len(recent) - 1:
		return jamq.RefineContext{}, fmt.Errorf("%w: %s is the newest block, whose state root is not public yet", ErrNoAnchor, hash)
	}
	needs := slices.Clone(prerequisites)
	slices.SortFunc(needs, jamq.PackageHash.Compare)
	return jamq.RefineContext{
		Anchor:           recent[i].Hash,
		StateRoot:        recent[i].StateRoot,
		BeefyRoot:        recent[i].BeefyRoot,
		LookupAnchor:     lookup.Hash,
		LookupAnchorSlot: lookup.Slot,
		AnchorSlot:       recent[i].Slot,
		LookupStateRoot:  lookup.StateRoot,
		Prerequisites:    slices.Compact(needs),
	}, nil
}
