package mempool

import (
	"context"
	"log/slog"
	"math"
	"time"

	"golang.org/x/sync/semaphore"
)

// gate blocks additions of transactions while a block is undone. The state is then already that
// before the block, but the pool does not have the transactions of the block yet. An addition could
// otherwise take the nonce of one of them.
type gate struct {
	// entrance is acquired with weight one by an addition that enters, and with its whole weight to
	// close the gate. inside is held with weight one by each addition that has entered, so that
	// close can wait for them.
	entrance, inside *semaphore.Weighted
}

func newGate() gate {
	return gate{semaphore.NewWeighted(math.MaxInt32), semaphore.NewWeighted(math.MaxInt32)}
}

// pass waits while the gate is closed, and then lets an addition enter. The caller calls leave when
// its addition has ended.
func (g *gate) pass() (leave func()) {
	_ = g.entrance.Acquire(context.Background(), 1) // cannot fail
	defer g.entrance.Release(1)
	_ = g.inside.Acquire(context.Background(), 1)
	return func() { g.inside.Release(1) }
}

// patience is how long an undone block waits for additions that have entered the gate. These do not
// wait for the log, so an addition takes longer only if the host's State or Precheck hangs, and it
// must not block everything else. If such an addition continues while the block returns, and has a
// nonce of the block, it replaces the transaction of the block, and the pool reports that.
const patience = time.Second

// close blocks new additions until open is called, and waits for those that have entered, for at
// most the time patience.
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
