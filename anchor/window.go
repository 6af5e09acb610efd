package anchor

import (
	"math"

	"github.com/jamq/jamq"
)

// LastReportable returns the greatest height at which a package can be reported if
// its anchor has height anchor. The result is anchor + H (Gray Paper 11.33). The
// lowest such height is anchor + 1. A chain that does not contain the anchor can
// never report the package.
//
// The result never exceeds the maximum of uint64, because an overflow would make a
// live package look dead.
func LastReportable(spec *jamq.ChainSpec, anchor uint64) uint64 {
	return anchor + min(uint64(max(0, spec.RecentHistory)), math.MaxUint64-anchor)
}

// lookupStale reports whether a lookup anchor is more than L slots older than a block.
// The block then cannot report the package (Gray Paper 11.34).
func lookupStale(spec *jamq.ChainSpec, lookupSlot, slot jamq.Slot) bool {
	return slot.Since(lookupSlot) > spec.MaxLookupAnchorAge
}
