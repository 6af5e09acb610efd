package eoa

import "context"

// Deliver gives the events of an account that were not acknowledged to handle, oldest first, at most limit, and acknowledges those that it took. It
// stops at the first that handle refuses and returns that error. An event may come again after a crash: handle tells it by its Account
// and Seq.
// Call it when [Config.Observe] reports something, and once at the start.
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
