package anchor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// ErrNoAnchor is wrapped when no block of a recent history may serve as the anchor that was asked for.
var ErrNoAnchor = errors.New("anchor: no admissible anchor")

// ErrUnreportable is wrapped by every error of [CheckContext].
var ErrUnreportable = errors.New("anchor: context cannot be reported")

// Pick returns the refine context of a package anchored at the block with the given hash.
//
// recent is the host's recent history, oldest first; its last entry is the newest block, which is never taken: its
// state root is public only once it has a child. The context takes the anchor's own slot and roots. Prerequisites
// are copied, sorted ascending as their encoding demands, and made distinct.
// The error wraps [ErrNoAnchor] if the block is not among them or is the newest.
//
// Limits that depend on the chain's constants are left to [CheckContext].
func Pick(recent []jamq.AnchorBlock, hash jamq.HeaderHash, lookup jamq.AnchorBlock, prerequisites []jamq.PackageHash) (jamq.RefineContext, error) {
	i := slices.IndexFunc(recent, func(b jamq.AnchorBlock) bool { return b.Hash == hash })
	switch i {
	case -1:
		return jamq.RefineContext{}, fmt.Errorf("%w: %s is not in the recent history of %d blocks", ErrNoAnchor, hash, len(recent))
	case len(recent) - 1:
		return jamq.RefineContext{}, fmt.Errorf("%w: %s is the newest block, its state root is not public before its child", ErrNoAnchor, hash)
	}
	return contextAt(&recent[i], lookup, prerequisites), nil
}

// PickOffset is [Pick] by age: the anchor is the block that lies offset blocks behind the newest, as [Offset] and [Best]
// count. The error wraps [ErrNoAnchor] if offset is below 1 or recent does not reach back so far, as on a young chain:
// the oldest anchor there has offset len(recent)-1.
func PickOffset(recent []jamq.AnchorBlock, offset int, lookup jamq.AnchorBlock, prerequisites []jamq.PackageHash) (jamq.RefineContext, error) {
	if offset < 1 || offset >= len(recent) {
		return jamq.RefineContext{}, fmt.Errorf("%w: offset is %d, want 1 to %d in a recent history of %d blocks", ErrNoAnchor, offset, len(recent)-1, len(recent))
	}
	return contextAt(&recent[len(recent)-1-offset], lookup, prerequisites), nil
}

// contextAt fills a context with the anchor's own slot and roots.
func contextAt(b *jamq.AnchorBlock, lookup jamq.AnchorBlock, prerequisites []jamq.PackageHash) jamq.RefineContext {
	needs := slices.Clone(prerequisites)
	slices.SortFunc(needs, jamq.PackageHash.Compare)
	return jamq.RefineContext{
		Anchor:           b.Hash,
		StateRoot:        b.StateRoot,
		BeefyRoot:        b.BeefyRoot,
		LookupAnchor:     lookup.Hash,
		LookupAnchorSlot: lookup.Slot,
		AnchorSlot:       b.Slot,
		LookupStateRoot:  lookup.StateRoot,
		Prerequisites:    slices.Compact(needs),
	}
}

// CheckContext reports what makes a context unreportable by the chain's constants, whoever made it: prerequisites out of
// order or, together with the package's segment-root lookups, more than J (GP 11.3); a lookup anchor that is too old
// for a block of the given slot (GP 11.34). slot is the earliest in which the package could be reported, usually the one
// after the newest block's. Whether the anchor is too old is a matter of heights: see [Stale].
// The error wraps [ErrUnreportable].
func CheckContext(spec *jamq.ChainSpec, c *jamq.RefineContext, segmentLookups int, slot jamq.Slot) error {
	if n := len(c.Prerequisites) + max(0, segmentLookups); n > spec.MaxDependencies {
		return fmt.Errorf("%w: %d prerequisites and segment-root lookups, want at most %d", ErrUnreportable, n, spec.MaxDependencies)
	}
	for i := 1; i < len(c.Prerequisites); i++ {
		if c.Prerequisites[i-1].Compare(c.Prerequisites[i]) >= 0 {
			return fmt.Errorf("%w: prerequisite %d does not ascend", ErrUnreportable, i)
		}
	}
	if LookupStale(spec, c.LookupAnchorSlot, slot) {
		return fmt.Errorf("%w: the lookup anchor is of slot %d, %d slots before %d, want at most %d", ErrUnreportable,
			c.LookupAnchorSlot, LookupAge(c.LookupAnchorSlot, slot), slot, spec.MaxLookupAnchorAge)
	}
	return nil
}
