package builder

import (
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/fields"
)

// Window is the part of each slot in which packages are sent. Guarantors are busy with the
// block of the slot at first, so the window opens later. It closes early enough for
// guarantors to refine a package and to sign the report before the next block.
type Window struct {
	// Clock is the chain's slot clock.
	Clock jamq.SlotClock
	// Opens is how long before the next slot the window opens. It is greater
	// than Closes and at most one slot. The default is half a slot: 3 s for
	// slots of 6 s.
	Opens time.Duration
	// Closes is how long before the next slot the window closes. It is at least
	// 0. The default is a sixth of a slot: 1 s for slots of 6 s.
	Closes time.Duration
	// Skew is how far the host's clock is ahead of the chain's clock; it is negative if the
	// host's clock is behind. Its absolute value is less than one slot. The default is 0. A
	// builder detects by itself that its clock is behind: see Health.Behind.
	Skew time.Duration
}

// DefaultWindow returns the default window for a chain. It opens half a slot
// and closes a sixth of a slot before the next slot: 3 s and 1 s for slots of 6
// s.
func DefaultWindow(spec jamq.ChainSpec) Window {
	return Window{Clock: jamq.NewSlotClock(spec), Opens: spec.SlotDuration / 2, Closes: spec.SlotDuration / 6}
}

// Validate returns an error that wraps [ErrInvalidConfig] unless all of these rules
// hold:
//
//   - A slot has at least 1 ms.
//   - Closes is at least 0 and less than Opens, and Opens is at most one slot.
//   - The absolute value of Skew is less than one slot.
func (w Window) Validate() error {
	var wrong fields.Errors
	w.validate(&wrong)
	return wrong.Wrap(ErrInvalidConfig)
}

func (w Window) validate(wrong *fields.Errors) {
	slot := w.Clock.SlotDuration
	wrong.Want(slot >= time.Millisecond, "Window.Clock.SlotDuration", slot, "at least 1ms")
	wrong.Want(w.Closes >= 0, "Window.Closes", w.Closes, "at least 0")
	wrong.Want(w.Opens > w.Closes && w.Opens <= slot, "Window.Opens", w.Opens, fmt.Sprintf("more than Closes %v, and at most a slot of %v", w.Closes, slot))
	wrong.Want(w.Skew > -slot && w.Skew < slot, "Window.Skew", w.Skew, fmt.Sprintf("less than a slot of %v either way", slot))
}

// Open reports whether a package may be sent at time t of the host's clock.
func (w Window) Open(t time.Time) bool {
	t = t.Add(-w.Skew)
	left := w.Clock.Next(t).Sub(t)
	return left <= w.Opens && left > w.Closes
}

// NextOpen returns t if the window is open at t, and otherwise the next time when it
// opens. Both are times of the host's clock.
func (w Window) NextOpen(t time.Time) time.Time {
	if w.Open(t) {
		return t
	}
	next := w.Clock.Next(t.Add(-w.Skew)).Add(w.Skew)
	if opens := next.Add(-w.Opens); !opens.Before(t) {
		return opens
	}
	// The window of this slot has closed already, so wait for the window of the next
	// slot.
	return next.Add(w.Clock.SlotDuration - w.Opens)
}
