package anchor

import (
	"fmt"
	"math"

	"github.com/jamq/jamq"
)

// Window is the range of heights at which a package can be reported, including
// both ends. For an anchor at height a it is [a+1, a+H] (Gray Paper 11.33). It
// holds on chains that contain the anchor. On other chains the package cannot
// be reported at all.
type Window struct {
	// First and Last are heights, with First ≤ Last.
	First, Last uint64
}

// WindowOf returns the reporting window of a package that is anchored at height
// anchor. The window ends at the maximum uint64 at the latest.
func WindowOf(spec *jamq.ChainSpec, anchor uint64) Window {
	return Window{First: addHeight(anchor, 1), Last: addHeight(anchor, spec.RecentHistory)}
}

// addHeight adds without overflow. A height that wrapped around would make a
// live package look dead.
func addHeight(height uint64, blocks int) uint64 {
	return height + min(uint64(max(0, blocks)), math.MaxUint64-height)
}

// Contains reports whether a block at the given height may contain the report.
func (w Window) Contains(height uint64) bool { return w.First <= height && height <= w.Last }

// Remaining returns how many heights of the window lie above head. Before the
// window this is its length, and after the window it is 0.
func (w Window) Remaining(head uint64) int {
	if head >= w.Last {
		return 0
	}
	return int(min(w.Last-head, w.Last-w.First+1))
}

// String returns the window in the form "[11, 18]".
func (w Window) String() string { return fmt.Sprintf("[%d, %d]", w.First, w.Last) }

// LastReportable returns the greatest height at which a package that is
// anchored at height anchor can be reported: anchor + H (Gray Paper 11.33).
func LastReportable(spec *jamq.ChainSpec, anchor uint64) uint64 { return WindowOf(spec, anchor).Last }

// RemainingBlocks returns in how many of the blocks after head a package that
// is anchored at height anchor can still be reported. The result is H directly
// after the anchor, and falls to 0.
func RemainingBlocks(spec *jamq.ChainSpec, anchor, head uint64) int {
	return WindowOf(spec, anchor).Remaining(head)
}

// EarliestDeath returns the earliest slot at which an unreported package can be
// dead by rule D2, seen from head. This is the slot of the last block of its
// window if no slot is skipped from now on. Each skipped slot delays the death
// by one slot. The result is therefore a lower bound, which tells a host when
// to call [Dead]; it is not a proof of death. If head is beyond the window, the
// result is head's slot. [jamq.SlotClock.Start] converts it to a time.
//
// The package may die earlier by rule D3: see [LookupExpires].
func EarliestDeath(spec *jamq.ChainSpec, anchorHeight uint64, head Point) jamq.Slot {
	last := LastReportable(spec, anchorHeight)
	if head.Height >= last {
		return head.Slot
	}
	return head.Slot.Add(jamq.Slot(min(last-head.Height, uint64(jamq.MaxSlot))))
}

// LookupExpires returns the last slot whose block may report a package with a
// lookup anchor of the given slot: lookupSlot + L (Gray Paper 11.34). If the
// package is unreported at a block of this slot or a later one, it is dead by
// rule D3, because the next block has a greater slot.
func LookupExpires(spec *jamq.ChainSpec, lookupSlot jamq.Slot) jamq.Slot {
	return lookupSlot.Add(spec.MaxLookupAnchorAge)
}

// LookupAge returns the age of a lookup anchor, in slots, at a block of the
// given slot. A report requires at most L (Gray Paper 11.34). It is 0 if the
// lookup anchor is not older than the block.
func LookupAge(lookupSlot, slot jamq.Slot) jamq.Slot { return slot.Since(lookupSlot) }

// LookupStale reports whether a lookup anchor is too old for a block of the
// given slot to report its package: more than L slots (Gray Paper 11.34).
func LookupStale(spec *jamq.ChainSpec, lookupSlot, slot jamq.Slot) bool {
	return LookupAge(lookupSlot, slot) > spec.MaxLookupAnchorAge
}

// GuaranteeSlots returns the first and the last slot that a guarantee in a
// block of the given slot may have: R·(⌊slot/R⌋-1) ≤ t ≤ slot (Gray Paper
// 11.26). The range begins with the previous rotation and ends with the block
// itself. In the first rotation it begins with 0.
//
// This limits one guarantee, not the life of its package. The slot is not
// signed together with the report, so guarantors may sign the same report again
// with a new slot, in every rotation, as long as its anchor is recent.
func GuaranteeSlots(spec *jamq.ChainSpec, slot jamq.Slot) (first, last jamq.Slot) {
	rotation := max(1, spec.RotationPeriod)
	begin := slot - slot%rotation
	return begin - min(begin, rotation), slot
}

// MaxGuaranteeAge returns the greatest age of a guarantee, in slots: 2R-1,
// which is reached in the last slot of a rotation (Gray Paper 11.26). It does
// not limit the life of a package: see [GuaranteeSlots].
func MaxGuaranteeAge(spec *jamq.ChainSpec) jamq.Slot {
	rotation := max(1, spec.RotationPeriod)
	return (rotation - 1).Add(rotation)
}
