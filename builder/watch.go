package builder

import (
	"context"
	"slices"
	"time"

	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
)

// Event is an effect of the queue that a host may show: a block has changed its state or
// has failed, a package is made, is sent or is dead. The host decides nothing by events:
// the rollup is called for blocks that fail or become final.
type Event struct {
	// Number counts the events of a log from 1. The same event has the same number after
	// a restart.
	Number uint64
	// At is when the queue made the step, in UTC.
	At time.Time
	// Effect is the effect, without the bytes of blocks and packages.
	Effect bundlequeue.Effect
}

// keptEvents is the number of events that a builder keeps, at least.
const keptEvents = 4096

// Watch calls f with events, in order, and with the heads after them, each time that one of
// them is new, until ctx ends or f returns an error. It begins with the events after the
// given number, or with the next one if there is no such number yet, and calls f at least
// once. A builder keeps some thousand events, and after a
// restart those since the last checkpoint of the log. If the next one is no longer kept,
// there is a gap in the numbers, and Block has the progress of the blocks that are not final.
// Several readers may watch, each at its own pace; none of them holds up the builder. Watch
// returns the error of ctx or f, or that of Run if the builder stops before.
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
			if ctx.Err() != nil { // although there may be more for a slow f
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

// note adds the effects of a step to the events. The caller holds c.mu.
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
	if over := len(c.events) - keptEvents; over > keptEvents { // not one by one
		c.events = slices.Clone(c.events[over:])
	}
	if len(effects) > 0 {
		c.wakeAll()
	}
}

// since returns the events after a number, the number of the last one, and the heads.
// moved is closed when this may change.
func (c *chain) since(after uint64) (events []Event, end uint64, heads canonical.Heads, moved <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := uint64(len(c.events))
	fresh := min(c.noted-min(after, c.noted), kept)
	return slices.Clone(c.events[kept-fresh:]), c.noted, c.heads(), c.moved
}
