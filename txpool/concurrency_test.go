package txpool

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/bubble"
)

// worker does one thing.
func worker(w *world, g, r int) {
	switch g % 8 {
	case 0, 1, 2:
		_ = w.Add(tx(g%32, uint64(r%7), int64(1+r)))
	case 3:
		w.AddAll([]*types.Transaction{tx(g%32, uint64(r), 3), tx((g+1)%32, uint64(r), 4), setCode(g%32, 0, 5, delegate((g+2)%32, 0))})
	case 4:
		s := w.drain(Budget{Count: 5})
		for i, tx := range s.Transactions() {
			if i%3 == 0 {
				_ = w.Reject(tx.Hash(), errTest)
			}
		}
		if r%2 == 0 {
			w.Reset(Head{Included: []Block{blockOf(s.Transactions()...)}})
		}
		s.Cancel()
	case 5:
		some := offered(w)
		some = some[:min(2, len(some))]
		w.Reset(Head{BaseFee: gweis(int64(r % 3)), Included: []Block{blockOf(some...)}})
	case 6:
		for range w.Snapshot().All() {
			w.Stats()
			break
		}
		w.Content()
		offered(w)
	case 7:
		w.CleanupExpired()
		_ = w.Remove(tx(g%32, uint64(r%7), int64(1+r)).Hash())
	}
}

// distant is a State that takes 20 ms for each account.
type distant struct{ *world }

func (d distant) Account(a common.Address) (Account, error) {
	<-time.After(20 * time.Millisecond)
	return d.world.Account(a)
}

// 64 goroutines add, drain, reset and read at once. Afterwards the invariants hold, and
// the events account for everything.
func TestConcurrent(t *testing.T) {
	const goroutines, rounds = 64, 12
	var events sync.Map
	var failed atomic.Pointer[Event]
	var violated atomic.Pointer[error]
	w := newWorld(t, tiny(100, 30), func(c *Config) { c.FloorWindow = 5 }, observed(func(e Event) {
		left := e.Kind == Replaced || e.Kind == Dropped || e.Kind == Included
		was, known := events.Swap(e.Tx.Hash(), !left)
		if inside := known && was.(bool); e.Admitted == inside {
			failed.CompareAndSwap(nil, &e)
		}
	}))
	ctx, stop := context.WithCancel(t.Context())
	var readers, workers sync.WaitGroup
	readers.Go(func() { // whatever is under way
		for ctx.Err() == nil {
			if err := w.Check(); err != nil {
				violated.Store(&err)
				return
			}
		}
	})
	for g := range goroutines {
		workers.Go(func() {
			for r := range rounds {
				worker(w, g, r)
			}
		})
	}
	workers.Wait()
	stop()
	readers.Wait()
	require.Nil(t, failed.Load())
	require.Nil(t, violated.Load(), "Check finds nothing, whatever is under way")
	require.NoError(t, w.Check())
	events.Range(func(hash, inside any) bool {
		require.Equal(t, inside, w.Get(hash.(common.Hash)) != nil)
		return true
	})
}

// If State is slow, sessions and Reset read many accounts at a time.
func TestSlowStateIsReadConcurrently(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const n = 64
		w := newWorld(t)
		w.state = distant{w}
		for i := range n {
			w.add(tx(i, 0, 5))
		}
		began := time.Now()
		require.Len(t, w.drain(Budget{}).Transactions(), n)
		require.Equal(t, 2*n/readers*20*time.Millisecond, time.Since(began), "the first account of each group, and then the others")
		began = time.Now()
		w.reset(Head{})
		require.Less(t, time.Since(began), n/8*20*time.Millisecond)
	})
}
