package mempool

import (
	"context"
	"log/slog"
	"math"
	"time"

	"golang.org/x/sync/semaphore"
)

// gate keeps additions of transactions out of the pool while a block is undone. During
// this time, the state no longer contains the block, but the pool does not have the
// block's transactions yet, so an addition could take the nonce of one of them.
type gate struct {
	// Two semaphores make up the gate. An addition takes a unit of entrance for a moment and a
	// unit of inside until it is done. Closing the gate takes all units of entrance, so that
	// no addition begins, and then waits for those inside.
	entrance, inside *semaphore.Weighted
}

func newGate() gate {
	return gate{semaphore.NewWeighted(math.MaxInt32), semaphore.NewWeighted(math.MaxInt32)}
}

// pass waits until the gate is open and lets an addition of a transaction enter. The
// caller must call leave when the addition is done.
func (g *gate) pass() (leave func()) {
	_ = g.entrance.Acquire(context.Background(), 1) // cannot fail
	defer g.entrance.Release(1)
	_ = g.inside.Acquire(context.Background(), 1)
	return func() { g.inside.Release(1) }
}

// patience is how long the undoing of a block waits for transactions that are just being
// added to the pool. Adding takes longer only if the host's State or Precheck hangs, and a
// call that hangs must not block the builder. If the call continues later and adds a
// transaction with a nonce of the block, that transaction replaces the one from the block,
// and the pool reports the replacement.
const patience = time.Second

// close keeps new additions out until open is called.
func (g *gate) close(log *slog.Logger) (open func()) {
	_ = g.entrance.Acquire(context.Background(), math.MaxInt32)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// Wait for the additions that have already entered, but not longer than patience.
	if err := g.inside.Acquire(ctx, math.MaxInt32); err == nil {
		g.inside.Release(math.MaxInt32)
	} else {
		log.Error("an addition to the pool does not end; the undone block returns without it")
	}
	return func() { g.entrance.Release(math.MaxInt32) }
}
