package builder

import (
	"context"
	"slices"
	"time"

	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
)

// Event is an effect of the queue, for a host that shows or logs the progress of
// blocks. For example, a block has changed its state or has failed, the queue
// requests a package, or a package is dead. A host need not act on events, because
// the builder already does so: for example, it calls the rollup for blocks that
// fail or become final.
type Event struct {
	// Number counts the events of a log from 1. An event has the same number after a restart.
	Number uint64
	// At is the time of the queue's step, by the host's clock, in UTC.
	At time.Time
	// Effect is one report of the queue, for example a bundlequeue.Changed. If the effect has
	// a field Bundle, Watch sets it to nil, because the bytes of a block or a package are
	// large.
	Effect bundlequeue.Effect
}

// keptEvents is the minimum number of events that a builder keeps in memory for Watch.
// It keeps the newest events, and up to twice this number.
const keptEvents = 4096

// Watch follows the builder for a user interface or a log. It calls f at once, and
// again each time when there are new events or the heads have changed. f gets the
// new events in order, if there are any, and the heads after the last event. Watch
// returns the error of ctx or of f, or the error of Run when the builder stops.
//
// The first call of f gets the events with numbers above after, which is the
// Event.Number that the caller has seen last, or 0. If no event has this number
// yet, Watch begins with the next new event. A builder keeps at least the newest
// 4096 events, but after a restart only those since the last checkpoint of the log.
// If older events are missing, the numbers have a gap; the caller can then get the
// progress of the blocks that are not final from [Builder.Block].
//
// Any number of goroutines may call Watch. A slow f does not delay the builder.
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

// note adds effects to the events for Watch. The caller holds c.mu.
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

// since returns the kept events after a number, the newest number, and the heads. The channel moved
// is closed when one of them may have changed.
func (c *chain) since(after uint64) (events []Event, end uint64, heads canonical.Heads, moved <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := uint64(len(c.events))
	fresh := min(c.noted-min(after, c.noted), kept)
	return slices.Clone(c.events[kept-fresh:]), c.noted, c.heads(), c.moved
}
