package submit

import (
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq"
)

// ErrInvalidConfig is wrapped by every error of a Validate method of this package.
var ErrInvalidConfig = errors.New("submit: invalid config")

// Window says when within a slot packages are sent: not right after a block, while guarantors are
// busy with it, and not so late that they cannot refine and sign before the next one.
type Window struct {
	// Clock is the chain's slot clock.
	Clock jamq.SlotClock
	// Opens is how long before the next slot the window opens, at most a slot; 3 s by default.
	Opens time.Duration
	// Closes is how long before the next slot it closes, at least 0 and less than Opens; 1 s by
	// default.
	Closes time.Duration
	// Skew is how far the host's clock is ahead of the chain's, negative where it is behind, less
	// than a slot either way; 0 by default. A runner finds out by itself that its clock is behind,
	// from blocks that come before their slot has begun.
	Skew time.Duration
}

// DefaultWindow returns the window for a chain: it opens half a slot and closes a sixth of a slot
// before the next one, which is 3 s and 1 s for slots of 6 s.
func DefaultWindow(spec jamq.ChainSpec) Window {
	return Window{Clock: jamq.NewSlotClock(spec), Opens: spec.SlotDuration / 2, Closes: spec.SlotDuration / 6}
}

// Validate reports a window that is empty or longer than a slot. The error wraps
// [ErrInvalidConfig].
func (w Window) Validate() error {
	if w.Clock.SlotDuration < time.Millisecond {
		return fmt.Errorf("%w: Window.Clock has slots of %v, want at least 1ms", ErrInvalidConfig, w.Clock.SlotDuration)
	}
	if w.Closes < 0 || w.Opens <= w.Closes || w.Opens > w.Clock.SlotDuration {
		return fmt.Errorf("%w: Window opens %v and closes %v before the slot, want 0 ≤ Closes < Opens ≤ %v", ErrInvalidConfig, w.Opens, w.Closes, w.Clock.SlotDuration)
	}
	if w.Skew <= -w.Clock.SlotDuration || w.Skew >= w.Clock.SlotDuration {
		return fmt.Errorf("%w: Window.Skew is %v, want less than a slot of %v either way", ErrInvalidConfig, w.Skew, w.Clock.SlotDuration)
	}
	return nil
}

// Open reports whether a package may be sent at time t of the host's clock.
func (w Window) Open(t time.Time) bool {
	t = t.Add(-w.Skew)
	left := w.Clock.Next(t).Sub(t)
	return left <= w.Opens && left > w.Closes
}

// NextOpen returns t if the window is open at t, else the next moment at which it opens, both by
// the host's clock.
func (w Window) NextOpen(t time.Time) time.Time {
	if w.Open(t) {
		return t
	}
	next := w.Clock.Next(t.Add(-w.Skew)).Add(w.Skew)
	if opens := next.Add(-w.Opens); !opens.Before(t) {
		return opens
	}
	// Already closed for this slot.
	return next.Add(w.Clock.SlotDuration - w.Opens)
}
