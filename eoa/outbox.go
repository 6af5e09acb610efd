package eoa

import "context"

// eventPage is the number of events, and of accounts with events, that are read at
// once.
const eventPage = 100

// Deliver passes the events of the account to handle as they arrive, oldest first,
// until ctx ends. It returns ctx's error, or the first error of handle or of the
// store. An event is acknowledged after handle has accepted it, so that the next
// call begins with the event that handle refused. After a crash an event may be
// delivered again: Account and Seq identify it. Events of other processes arrive
// within 3.2 seconds.
func (c *Client) Deliver(ctx context.Context, handle func(context.Context, Event) error) error {
	return stream(ctx, c.progress, func() (int, error) {
		return Deliver(ctx, c.store, c.account, eventPage, handle)
	})
}

// Deliver is [Client.Deliver] for all accounts of the store, also for those of other
// fleets. The events of one account arrive in order. If several fleets call Deliver,
// an event may be delivered to more than one of them.
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

// stream calls deliver again whenever there may be new events, until ctx ends or
// deliver fails. deliver returns the number of events that it has delivered.
func stream(ctx context.Context, progress func() progress, deliver func() (int, error)) error {
	pause := firstWait
	for {
		changed := progress().changed
		n, err := deliver()
		if err != nil {
			return err
		}
		if n > 0 {
			pause = firstWait
			continue
		}
		if err := rest(ctx, pause, changed); err != nil {
			return err
		}
		pause = min(2*pause, longestWait)
	}
}

// Deliver passes the unacknowledged events of an account to handle, oldest
// first, at most limit. It acknowledges the events that handle accepted. If
// handle returns an error, Deliver stops and returns that error.
//
// An event may be delivered again after a crash: Account and Seq identify it.
// [Client.Deliver] and [Fleet.Deliver] repeat it as events arrive.
func Deliver(ctx context.Context, store Store, a Account, limit int, handle func(context.Context, Event) error) (delivered int, err error) {
	events, err := store.Events(ctx, a, 0, limit)
	if err != nil {
		return 0, err
	}
	var refused error
	for _, e := range events {
		e.Account = a
		if refused = handle(ctx, e); refused != nil {
			break
		}
		delivered++
	}
	if delivered > 0 {
		if err := store.Acknowledge(ctx, a, events[delivered-1].Seq); err != nil {
			return delivered, err
		}
	}
	return delivered, refused
}
