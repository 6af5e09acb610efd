package anchor

import (
	"fmt"
	"math"

	"github.com/jamq/jamq"
)

// Window is the range of heights at which a package can be reported, both ends included: [a+1, a+H] for an anchor at
// height a (GP 11.33). It holds on chains that contain the anchor; on others the package cannot be reported at all.
type Window struct {
	// First and Last are heights, First at most Last.
	First, Last uint64
}

// WindowOf returns the reporting window of a package anchored at height anchor. Near the greatest uint64 it ends there.
func WindowOf(spec *jamq.ChainSpec, anchor uint64) Window {
	return Window{First: addHeight(anchor, 1), Last: addHeight(anchor, spec.RecentHistory)}
}

// addHeight adds without wrapping: a height that wrapped would make a living package look dead.
func addHeight(height uint64, blocks int) uint64 {
	return height + min(uint64(max(0, blocks)), math.MaxUint64-height)
}

// Contains reports whether the block at the given height may carry the report.
func (w Window) Contains(height uint64) bool { return w.First <= height && height <= w.Last }

// Remaining returns how many heights of the window lie above head: all of them before the window, 0 once it is over.
func (w Window) Remaining(head uint64) int {
	if head >= w.Last {
		return 0
	}
	return int(min(w.Last-head, w.Last-w.First+1))
}

// String returns the window as in "[11, 18]".
func (w Window) String() string { return fmt.Sprintf("[%d, %d]", w.First, w.Last) }

// LastReportable returns the greatest height at which a package anchored at height anchor can be reported:
// anchor + H (GP 11.33).
func LastReportable(spec *jamq.ChainSpec, anchor uint64) uint64 { return WindowOf(spec, anchor).Last }

// RemainingBlocks returns in how many of the blocks after head a package anchored at height anchor can still be
// reported: from H, right after its anchor, down to 0.
func RemainingBlocks(spec *jamq.ChainSpec, anchor, head uint64) int {
	return WindowOf(spec, anchor).Remaining(head)
}

// EarliestDeath returns the earliest slot at which a package that stays unreported can be dead by D2, as seen from
// head: the slot of the last block of its window if no slot is skipped from now on. Every skipped slot puts it off by
// one, so it is a lower bound and says when to look, never that the package is dead. If head has passed the window
// already, it is head's slot. A wall clock has it from [jamq.SlotClock.Start].
//
// D3 may come first, see [LookupExpires].
func EarliestDeath(spec *jamq.ChainSpec, anchorHeight uint64, head Point) jamq.Slot {
	last := LastReportable(spec, anchorHeight)
	if head.Height >= last {
		return head.Slot
	}
	return head.Slot.Add(jamq.Slot(min(last-head.Height, uint64(jamq.MaxSlot))))
}

// LookupExpires returns the last slot whose block may report a package with a lookup anchor of the given slot:
// lookupSlot + L (GP 11.34). Unreported at a block of this slot or a later one, the package is dead by D3, because the
// next block has a greater slot.
func LookupExpires(spec *jamq.ChainSpec, lookupSlot jamq.Slot) jamq.Slot {
	return lookupSlot.Add(spec.MaxLookupAnchorAge)
}

// LookupAge returns the age of a lookup anchor, in slots, in the eyes of a block of the given slot. A report needs at
// most L (GP 11.34). It is 0 if the lookup anchor is not older than the block.
func LookupAge(lookupSlot, slot jamq.Slot) jamq.Slot { return slot.Since(lookupSlot) }

// LookupStale reports whether a lookup anchor is too old for a block of the given slot to report its package: more
// than L slots (GP 11.34).
func LookupStale(spec *jamq.ChainSpec, lookupSlot, slot jamq.Slot) bool {
	return LookupAge(lookupSlot, slot) > spec.MaxLookupAnchorAge
}

// GuaranteeSlots returns the first and the last slot that a guarantee in a block of the given slot may be stamped with:
// R·(⌊slot/R⌋-1) ≤ t ≤ slot (GP 11.26), from the beginning of the rotation before up to the block itself. In the first
// rotation of all it begins with 0.
//
// It bounds one guarantee, not the life of its package. The stamp is not signed along with the report, so guarantors
// may stamp and sign the same report again, rotation after rotation, as long as its anchor is recent.
func GuaranteeSlots(spec *jamq.ChainSpec, slot jamq.Slot) (first, last jamq.Slot) {
	rotation := max(1, spec.RotationPeriod)
	begin := slot - slot%rotation
	return begin - min(begin, rotation), slot
}

// MaxGuaranteeAge returns the greatest age of a guarantee, in slots: 2R-1, reached at the last slot of a rotation
// (GP 11.26). See [GuaranteeSlots] for what it does not bound.
func MaxGuaranteeAge(spec *jamq.ChainSpec) jamq.Slot {
	rotation := max(1, spec.RotationPeriod)
	return (rotation - 1).Add(rotation)
}
