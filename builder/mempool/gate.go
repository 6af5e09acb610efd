package mempool

import (
	"context"
	"log/slog"
	"math"
	"time"

	"golang.org/x/sync/semaphore"
)

// gate keeps additions out while a block is undone. Between the state before the block and
// the return of its transactions, an addition could otherwise take the nonce of one of them.
type gate struct {
	// entrance has a weight of one for an addition that enters, and all of it is taken while
	// the gate is closed. inside has a weight of one for an addition that has entered.
	entrance, inside *semaphore.Weighted
}

func newGate() gate {
	return gate{semaphore.NewWeighted(math.MaxInt32), semaphore.NewWeighted(math.MaxInt32)}
}

// pass waits while the gate is closed. The caller calls leave when its addition has ended.
func (g *gate) pass() (leave func()) {
	_ = g.entrance.Acquire(context.Background(), 1) // cannot fail
	defer g.entrance.Release(1)
	_ = g.inside.Acquire(context.Background(), 1)
	return func() { g.inside.Release(1) }
}

// patience is how long an undone block waits for additions that have entered; they do not wait for
// the log inside. One takes longer only if the host's State or Precheck hangs, and must not hold up
// everything else. If it goes on while the block returns, and has a nonce of the block, it replaces
// that transaction, which is reported.
const patience = time.Second

// close keeps additions out until open is called, and waits for those that have entered.
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
