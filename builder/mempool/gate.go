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
	// entrance keeps additions out: an addition acquires it with weight one while it
	// enters, and close acquires its whole weight. inside lets close wait for the
	// additions that have entered: each of them holds it with weight one.
	entrance, inside *semaphore.Weighted
}

func newGate() gate {
	return gate{semaphore.NewWeighted(math.MaxInt32), semaphore.NewWeighted(math.MaxInt32)}
}

// pass waits while the gate is closed, and then lets an addition enter. The
// caller must call leave when the addition has ended.
func (g *gate) pass() (leave func()) {
	_ = g.entrance.Acquire(context.Background(), 1) // cannot fail
	defer g.entrance.Release(1)
	_ = g.inside.Acquire(context.Background(), 1)
	return func() { g.inside.Release(1) }
}

// patience is how long an undone block waits for additions that have entered the gate.
// These additions do not wait for the log. An addition therefore takes longer only if the
// host's State or Precheck hangs, and then it must not block everything else. If such an
// addition later continues with a nonce of the block, it replaces the block's
// transaction, and the pool reports that.
const patience = time.Second

// close keeps new additions out until open is called. It also waits for the
// additions that have already entered, but not longer than patience.
func (g *gate) close(log *slog.Logger) (open func()) {
	_ = g.entrance.Acquire(context.Background(), math.MaxInt32)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := g.inside.Acquire(ctx, math.MaxInt32); err == nil {
		g.inside.Release(math.MaxInt32)
	} else {
		log.Error("an addition to the pool does not end; the undone block returns without it")
	}
	return func() { g.entrance.Release(math.MaxInt32) }
}
