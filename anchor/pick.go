package anchor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// ErrNoAnchor is wrapped if no block of the recent history is admissible as the
// requested anchor.
var ErrNoAnchor = errors.New("anchor: no admissible anchor")

// ErrUnreportable is wrapped by every error of [CheckContext].
var ErrUnreportable = errors.New("anchor: context cannot be reported")

// Pick returns the refine context of a package that is anchored at the block
// with the given hash.
//
// recent is the host's recent history, oldest first. Its last entry is the
// newest block, which cannot be an anchor, because its state root is public
// only when it has a child. The context contains the slot and the roots of the
// anchor. The prerequisites are copied, sorted as their encoding requires, and
// deduplicated.
//
// The error wraps [ErrNoAnchor] if the block is not in recent or is the newest
// block. Pick does not check limits that depend on the chain's constants: see
// [CheckContext].
func Pick(recent []jamq.AnchorBlock, hash jamq.HeaderHash, lookup jamq.AnchorBlock, prerequisites []jamq.PackageHash) (jamq.RefineContext, error) {
	i := slices.IndexFunc(recent, func(b jamq.AnchorBlock) bool { return b.Hash == hash })
	switch i {
	case -1:
		return jamq.RefineContext{}, fmt.Errorf("%w: %s is not in the recent history of %d blocks", ErrNoAnchor, hash, len(recent))
	case len(recent) - 1:
		return jamq.RefineContext{}, fmt.Errorf("%w: %s is the newest block, whose state root is not public yet", ErrNoAnchor, hash)
	}
	return contextAt(&recent[i], lookup, prerequisites), nil
}

// PickOffset is like [Pick], but the anchor is the block that lies offset
// blocks behind the newest one, with the offset of [Offset] or [Best]. The
// error wraps [ErrNoAnchor] if offset is below 1 or above len(recent)-1, for
// example on a young chain.
func PickOffset(recent []jamq.AnchorBlock, offset int, lookup jamq.AnchorBlock, prerequisites []jamq.PackageHash) (jamq.RefineContext, error) {
	if offset < 1 || offset >= len(recent) {
		return jamq.RefineContext{}, fmt.Errorf("%w: offset is %d, want 1 to %d in a recent history of %d blocks", ErrNoAnchor, offset, len(recent)-1, len(recent))
	}
	return contextAt(&recent[len(recent)-1-offset], lookup, prerequisites), nil
}

// contextAt returns a context with the anchor's slot and roots.
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

// CheckContext returns an error if a context cannot be reported because of the
// chain's constants:
//
//   - The prerequisites are not sorted, or have duplicates.
//   - There are more than J prerequisites and segment-root lookups together
//     (Gray Paper 11.3).
//   - The lookup anchor is too old for a block of the given slot (Gray Paper
//     11.34).
//
// slot is the earliest slot in which the package could be reported, usually the
// one after the newest block's. CheckContext does not check the age of the
// anchor, which is measured in heights: see [Stale]. The error wraps
// [ErrUnreportable].
func CheckContext(spec *jamq.ChainSpec, c *jamq.RefineContext, segmentLookups int, slot jamq.Slot) error {
	if n := len(c.Prerequisites) + max(0, segmentLookups); n > spec.MaxDependencies {
		return fmt.Errorf("%w: %d prerequisites and segment-root lookups, want at most %d", ErrUnreportable, n, spec.MaxDependencies)
	}
	for i := 1; i < len(c.Prerequisites); i++ {
		if c.Prerequisites[i-1].Compare(c.Prerequisites[i]) >= 0 {
			return fmt.Errorf("%w: prerequisite %d is not greater than the one before it", ErrUnreportable, i)
		}
	}
	if LookupStale(spec, c.LookupAnchorSlot, slot) {
		return fmt.Errorf("%w: the lookup anchor is of slot %d, %d slots before %d, want at most %d", ErrUnreportable,
			c.LookupAnchorSlot, LookupAge(c.LookupAnchorSlot, slot), slot, spec.MaxLookupAnchorAge)
	}
	return nil
}
