package jamq

import (
	"math"
	"time"
)

// Slot is a time slot of a JAM chain: the number of slot durations since the chain's common era (GP 4.4).
type Slot uint32

// MaxSlot is the greatest slot that a block can carry.
const MaxSlot Slot = math.MaxUint32

// Add returns s+n, or MaxSlot where that would overflow, so that a deadline near the end of time never wraps to the past.
func (s Slot) Add(n Slot) Slot {
	if n > MaxSlot-s {
		return MaxSlot
	}
	return s + n
}

// Since returns s-earlier, or 0 where earlier is later than s.
func (s Slot) Since(earlier Slot) Slot {
	if earlier > s {
		return 0
	}
	return s - earlier
}

// CommonEra returns the instant at which slot 0 of every JAM chain begins: 2025-01-01 12:00 UTC (GP 4.4).
func CommonEra() time.Time { return time.Date(2025, time.January, 1, 12, 0, 0, 0, time.UTC) }

// SlotClock converts between time and slots. It reads no clock: time is always an argument.
//
// It counts whole milliseconds, because a time.Duration ends after 292 years and slots of six seconds only
// after 816. See [NewSlotClock].
type SlotClock struct {
	// Era is when slot 0 begins, at a whole millisecond.
	Era time.Time
	// SlotDuration is the length of a slot, a positive multiple of a millisecond.
	SlotDuration time.Duration
}

// NewSlotClock returns the clock of a chain: the JAM common era and the spec's slot duration.
func NewSlotClock(spec ChainSpec) SlotClock {
	return SlotClock{Era: CommonEra(), SlotDuration: spec.SlotDuration}
}

// SlotAt returns the slot that t falls in: the latest slot whose start is not after t.
// A time before the era gives 0, one beyond the last slot MaxSlot.
func (c SlotClock) SlotAt(t time.Time) Slot {
	perSlot := c.SlotDuration.Milliseconds()
	if perSlot <= 0 || t.Before(c.Era) {
		return 0
	}
	n := (t.UnixMilli() - c.Era.UnixMilli()) / perSlot
	return Slot(min(n, int64(MaxSlot)))
}

// Start returns the instant at which slot s begins, in UTC.
func (c SlotClock) Start(s Slot) time.Time {
	return time.UnixMilli(c.Era.UnixMilli() + int64(s)*c.SlotDuration.Milliseconds()).UTC()
}

// Next returns the start of the first slot that begins after t: the next moment at which a block may be authored.
func (c SlotClock) Next(t time.Time) time.Time {
	if t.Before(c.Era) {
		return c.Start(0)
	}
	return c.Start(c.SlotAt(t).Add(1))
}
