package anchor

import "github.com/jamq/jamq"

// Window returns the heights of the blocks that can report a package anchored at height anchor: anchor+1 to anchor+H
// (GP 11.33), on chains that contain the anchor.
func Window(spec *jamq.ChainSpec, anchor uint64) (first, last uint64) {
	return anchor + 1, LastReportable(spec, anchor)
}

// EarliestDeath returns the first slot in which a package anchored at height anchor that is not reported can be known to be dead, if
// the chain stands at head: when no slot from now on is skipped. If the window is over already it is the head's own slot.
// There is no latest slot: skipped slots prolong the life of a package without bound, and this is why no clock can stand for
// blocks.
func EarliestDeath(spec *jamq.ChainSpec, anchor uint64, head Point) jamq.Slot {
	return head.Slot.Add(jamq.Slot(RemainingBlocks(spec, anchor, head.Height)))
}

// LookupExpires returns the first slot whose block ends the life of an unreported package with the given lookup anchor (D3): the
// last block that may report it is in this slot (GP 11.34).
func LookupExpires(spec *jamq.ChainSpec, lookupAnchor jamq.Slot) jamq.Slot {
	return lookupAnchor.Add(spec.MaxLookupAnchorAge)
}

// GuaranteeSlots returns the first and the last slot that a guarantee may carry in a block of the given slot: the rotation of the block
// and the one before (GP 11.26). It bounds nothing about a package's life: the slot is not signed, and guarantors may stamp and
// sign again.
func GuaranteeSlots(spec *jamq.ChainSpec, slot jamq.Slot) (first, last jamq.Slot) {
	rotation := slot / spec.RotationPeriod
	return spec.RotationPeriod * (max(rotation, 1) - 1), slot
}
