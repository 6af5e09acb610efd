package anchor

import (
	"math"

	"github.com/jamq/jamq"
)

// LastReportable returns the greatest height at which a package that is anchored at height anchor
// can be reported: anchor + H (Gray Paper 11.33). The lowest such height is anchor + 1. On chains
// that do not contain the anchor, the package cannot be reported at all.
//
// The result is at most the maximum uint64, because a height that wrapped around would make a live
// package look dead.
func LastReportable(spec *jamq.ChainSpec, anchor uint64) uint64 {
	return anchor + min(uint64(max(0, spec.RecentHistory)), math.MaxUint64-anchor)
}

// lookupStale reports whether a lookup anchor is too old for a block in the given slot to report
// the package: it is more than L slots older (Gray Paper 11.34).
func lookupStale(spec *jamq.ChainSpec, lookupSlot, slot jamq.Slot) bool {
	return slot.Since(lookupSlot) > spec.MaxLookupAnchorAge
}
