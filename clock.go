package jamq

import (
	"math"
	"time"
)

// Slot is the number of a slot of a JAM chain. Slot 0 begins at the common era, and all
// slots have the same duration (Gray Paper 4.4).
type Slot uint32

// MaxSlot is the greatest possible slot of a block.
const MaxSlot Slot = math.MaxUint32

// Add returns s+n, or MaxSlot if the sum would overflow. A deadline near the last slot
// therefore never wraps around to the past.
func (s Slot) Add(n Slot) Slot {
	if n > MaxSlot-s {
		return MaxSlot
	}
	return s + n
}

// Since returns s-earlier, or 0 if earlier is later than s.
func (s Slot) Since(earlier Slot) Slot {
	if earlier > s {
		return 0
	}
	return s - earlier
}

// CommonEra returns the start of slot 0 of every JAM chain: 2025-01-01 12:00 UTC (Gray
// Paper 4.4).
func CommonEra() time.Time { return time.Date(2025, time.January, 1, 12, 0, 0, 0, time.UTC) }

// SlotClock converts between times and slots. It never reads the system clock, because
// the time is always an argument. [NewSlotClock] returns the SlotClock of a chain.
//
// SlotClock calculates in whole milliseconds, because a time.Duration overflows after
// 292 years. With slots of six seconds, the slot numbers overflow only after 816 years.
type SlotClock struct {
	// Era is the start of slot 0, at a whole millisecond.
	Era time.Time
	// SlotDuration is the length of a slot, a positive multiple of a
	// millisecond.
	SlotDuration time.Duration
}

// NewSlotClock returns the clock of a chain, which begins at the JAM common era and has
// the slot duration in spec.
func NewSlotClock(spec ChainSpec) SlotClock {
	return SlotClock{Era: CommonEra(), SlotDuration: spec.SlotDuration}
}

// SlotAt returns the slot that contains time t. It returns 0 for a time before the era,
// and MaxSlot for a time after the last slot.
func (c SlotClock) SlotAt(t time.Time) Slot {
	perSlot := c.SlotDuration.Milliseconds()
	if perSlot <= 0 || t.Before(c.Era) {
		return 0
	}
	n := (t.UnixMilli() - c.Era.UnixMilli()) / perSlot
	return Slot(min(n, int64(MaxSlot)))
}

// Start returns the time at which slot s begins, in UTC.
func (c SlotClock) Start(s Slot) time.Time {
	return time.UnixMilli(c.Era.UnixMilli() + int64(s)*c.SlotDuration.Milliseconds()).UTC()
}

// Next returns the start of the first slot that begins after time t. This is the next
// time at which a block can be authored.
func (c SlotClock) Next(t time.Time) time.Time {
	if t.Before(c.Era) {
		return c.Start(0)
	}
	return c.Start(c.SlotAt(t).Add(1))
}
