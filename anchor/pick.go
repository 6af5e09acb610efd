package anchor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// ErrNoAnchor is wrapped when no block of a recent history may serve as the anchor that was asked for.
var ErrNoAnchor = errors.New("anchor: no admissible anchor")

// Pick returns the refine context of a package anchored at the block with the given hash.
//
// recent is the host's recent history, oldest first; its last entry is the newest block, which is never taken: its
// state root is public only once it has a child. The context takes the anchor's own slot and roots. Prerequisites
// are copied, sorted ascending as their encoding demands, and made distinct.
// The error wraps [ErrNoAnchor] if the block is not among them or is the newest.
func Pick(recent []jamq.AnchorBlock, hash jamq.HeaderHash, lookup jamq.AnchorBlock, prerequisites []jamq.PackageHash) (jamq.RefineContext, error) {
	for i, b := range recent {
		if b.Hash != hash {
			continue
		}
		if i == len(recent)-1 {
			return jamq.RefineContext{}, fmt.Errorf("%w: %s is the newest block, its state root is not public before its child", ErrNoAnchor, hash)
		}
		needs := slices.Clone(prerequisites)
		slices.SortFunc(needs, jamq.PackageHash.Compare)
		return jamq.RefineContext{
			Anchor:           b.Hash,
			StateRoot:        b.StateRoot,
			BeefyRoot:        b.BeefyRoot,
			LookupAnchor:     lookup.Hash,
			LookupAnchorSlot: lookup.Slot,
			Prerequisites:    slices.Compact(needs),
		}, nil
	}
	return jamq.RefineContext{}, fmt.Errorf("%w: %s is not in the recent history of %d blocks", ErrNoAnchor, hash, len(recent))
}
