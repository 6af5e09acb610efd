package eoa

import (
	"context"
	"time"
)

// acknowledgeWithin is how long the store may take for an acknowledgement, which is
// written even if the caller's context has ended.
const acknowledgeWithin = 10 * time.Second

// eventPage is how many events, or accounts with events, are read at once.
const eventPage = 100

// Deliver passes the events of the account to handle as they arrive, oldest first,
// until ctx ends. An event is acknowledged when handle has returned nil for it.
// Deliver returns ctx's error, or the first error of handle or of the store. The
// next call begins with the event that handle refused.
//
// Events of other processes arrive within 3.2 seconds. After a crash, an event may
// be delivered again; its Account and Seq identify the repetition.
func (c *Client) Deliver(ctx context.Context, handle func(context.Context, Event) error) error {
	return stream(ctx, c.progress, func() (int, error) {
		return Deliver(ctx, c.store, c.account, eventPage, handle)
	})
}

// Deliver does the same as [Client.Deliver] for all accounts of the store,
// including those that other fleets work on. The events of one account arrive in
// order. If several fleets call Deliver, an event may be delivered to more than one
// of them.
func (f *Fleet) Deliver(ctx context.Context, handle func(context.Context, Event) error) error {
	return stream(ctx, f.commits.progress, func() (delivered int, err error) {
		after := Account{}
		for {
			accounts, err := f.store.Undelivered(ctx, after, eventPage)
			if err != nil {
				return delivered, err
			}
			for _, a := range accounts {
				n, err := Deliver(ctx, f.store, a, eventPage, handle)
				delivered += n
				if err != nil {
					return delivered, err
				}
				after = a
			}
			if len(accounts) < eventPage {
				return delivered, nil
			}
		}
	})
}

// stream calls deliver whenever there may be new events, until ctx ends.
func stream(ctx context.Context, progress func() progress, deliver func() (int, error)) error {
	pause := firstWait
	for {
		changed := progress().changed
		n, err := deliver()
		if err != nil {
			return err
		}
		// Events were delivered, so there may be more.
		if n > 0 {
			pause = firstWait
			continue
		}
		if err := waitForChange(ctx, pause, changed); err != nil {
			return err
		}
		pause = min(2*pause, longestWait)
	}
}

// Deliver passes up to limit unacknowledged events of an account to handle, oldest
// first, and acknowledges the events for which handle returned nil. Deliver stops
// at the first error of handle or when ctx ends, and returns that error. Use it if
// you decide yourself when to ask the store; otherwise, [Client.Deliver] and
// [Fleet.Deliver] call it as events arrive.
//
// After a crash, an event may be delivered again; its Account and Seq identify the
// repetition.
func Deliver(ctx context.Context, store Store, a Account, limit int, handle func(context.Context, Event) error) (delivered int, err error) {
	events, err := store.Events(ctx, a, 0, limit)
	if err != nil {
		return 0, err
	}
	var refused error
	for _, e := range events {
		e.Account = a
		if refused = ctx.Err(); refused == nil {
			refused = handle(ctx, e)
		}
		if refused != nil {
			break
		}
		delivered++
	}
	if delivered > 0 {
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), acknowledgeWithin)
		defer done()
		if err := store.Acknowledge(ctx, a, events[delivered-1].Seq); err != nil {
			return delivered, err
		}
	}
	return delivered, refused
}
