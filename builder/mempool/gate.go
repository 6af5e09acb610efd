package mempool

import (
	"context"
	"log/slog"
	"math"
	"time"

	"golang.org/x/sync/semaphore"
)

// gate keeps additions of transactions out while a block is undone. During this
// time the state is already the one before the block, but the pool does not have
// the transactions of the block yet, so an addition could take the nonce of one of
// them.
type gate struct {
	// An addition acquires entrance with weight one while it enters; close acquires the whole
	// weight to keep additions out. Each addition that has entered holds inside with weight one,
	// so that close can wait for it.
	entrance, inside *semaphore.Weighted
}

func newGate() gate {
	return gate{semaphore.NewWeighted(math.MaxInt32), semaphore.NewWeighted(math.MaxInt32)}
}

// pass waits while the gate is closed, and then lets an addition enter. The caller
// must call leave when the addition has ended.
func (g *gate) pass() (leave func()) {
	_ = g.entrance.Acquire(context.Background(), 1) // cannot fail
	defer g.entrance.Release(1)
	_ = g.inside.Acquire(context.Background(), 1)
	return func() { g.inside.Release(1) }
}

// patience is the time for which an undone block waits for additions that have
// entered the gate. They do not wait for the log, so an addition takes longer only
// if the host's State or Precheck hangs, and it must not block everything else. If
// such an addition later continues with a nonce of the block, it replaces the
// transaction of the block, and the pool reports that.
const patience = time.Second

// close keeps new additions out until open is called. It waits for the additions
// that have entered, but only for the time patience.
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
