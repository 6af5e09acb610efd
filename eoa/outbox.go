package eoa

import "context"

// Deliver passes the unacknowledged events of an account to handle, oldest
// first, at most limit. It acknowledges the events that handle accepted. If
// handle returns an error, Deliver stops and returns that error.
//
// An event may be delivered again after a crash: Account and Seq identify it.
// Call Deliver at start-up, for example for the accounts that
// [Fleet.Undelivered] returns, and whenever [Config.Observe] reports something.
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
