package builder

import (
	"context"

	"github.com/jamq/jamq/bundlequeue"
)

// Working returns the number of requests that a builder works on.
func Working[B any](b *Builder[B]) (n int, err error) {
	err = b.inTurn(context.Background(), func() error { n = len(b.requests.working); return nil })
	return n, err
}

// FailAndAct lets a builder fail, gives it two requests, and returns the number of those that it
// works on.
func FailAndAct[B any](b *Builder[B], cause error) (n int, err error) {
	err = b.inTurn(context.Background(), func() error {
		_ = b.fail(cause)
		b.act(bundlequeue.Build{Number: 1, Ticket: 1})
		b.act(bundlequeue.Send{Number: 1, Ticket: 2})
		n = len(b.requests.working)
		return nil
	})
	return n, err
}
