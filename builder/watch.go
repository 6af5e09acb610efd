package builder

import (
	"context"
	"slices"
	"time"

	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
)

// Event is an effect of the queue, for a host that shows or logs the progress of blocks: a block
// has changed its state or has failed, the queue requests a package or the sending of one, a
// package is dead, or a package was accumulated after it seemed dead. A host need not act on
// events, because the builder does what follows from them: it calls the rollup for blocks that fail
// or become final.
type Event struct {
	// Number counts the events of a log from 1. An event has the same number after a restart.
	Number uint64
	// At is when the queue made the step, by the host's clock, in UTC.
	At time.Time
	// Effect is the effect. If its type has a field Bundle, with the bytes of a block or a
	// package, the field is nil.
	Effect bundlequeue.Effect
}

// keptEvents is the number of newest events that a builder keeps in memory at least. It keeps up to
// twice as many.
const keptEvents = 4096

// Watch follows the builder for a user interface or a log. It calls f at once, and again each time
// that there are new events or other heads, with the new events in order, if there are any, and the
// heads after the last event. It returns the error of ctx or of f, or the error of Run when the
// builder stops.
//
// The first call has the events after the given number, which is the Event.Number that the caller
// saw last, or 0. If the builder has no event of this number yet, Watch begins with the next new
// event. A builder keeps the newest 4096 events at least, but after a restart only those since the
// last checkpoint of the log. If older events are missing, the numbers have a gap, and
// [Builder.Block] returns the progress of the blocks that are not final.
//
// Any number of goroutines may call Watch. A slow f does not hold up the builder.
func (e *engine) Watch(ctx context.Context, after uint64, f func(events []Event, heads canonical.Heads) error) error {
	var last canonical.Heads
	for first := true; ; first = false {
		events, end, heads, moved := e.chain.since(after)
		after = end
		if first || len(events) > 0 || heads != last {
			last = heads
			if err := f(events, heads); err != nil {
				return err
			}
			if ctx.Err() != nil { // if f is slow, there may always be new events
				return ctx.Err()
			}
			continue
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-e.stopped:
			return e.cause
		}
	}
}

// note adds the effects of a step to the events, and wakes the goroutines in Watch. The caller
// holds c.mu.
func (c *chain) note(now time.Time, effects []bundlequeue.Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case bundlequeue.Build:
			e.Bundle = nil
			effect = e
		case bundlequeue.Send:
			e.Bundle = nil
			effect = e
		case bundlequeue.Failed:
			e.Bundle = nil
			effect = e
		}
		c.noted++
		c.events = append(c.events, Event{c.noted, now.UTC(), effect})
	}
	if over := len(c.events) - keptEvents; over > keptEvents { // seldom, because Clone is expensive
		c.events = slices.Clone(c.events[over:])
	}
	if len(effects) > 0 {
		c.wakeAll()
	}
}

// since returns the kept events after a number, the number of the newest event, and the heads.
// moved is closed when there may be new events or other heads.
func (c *chain) since(after uint64) (events []Event, end uint64, heads canonical.Heads, moved <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := uint64(len(c.events))
	fresh := min(c.noted-min(after, c.noted), kept)
	return slices.Clone(c.events[kept-fresh:]), c.noted, c.heads(), c.moved
}
