package txpool

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// 64 goroutines add, drain, reset, read and subscribe at once. Afterwards the invariants hold, and
// the events account for everything.
func TestConcurrent(t *testing.T) {
	const goroutines, rounds = 64, 12
	w := newWorld()
	var events sync.Map
	var failed atomic.Pointer[Event]
	var violated atomic.Pointer[error]
	p := newPool(t, w, func(c *Config) {
		c.MaxPending, c.MaxQueued, c.FloorWindow = 100, 30, 5
		c.Journal = new(memory)
		c.Observe = func(e Event) {
			if e.Kind == FloorChanged {
				return
			}
			left := e.Kind == Replaced || e.Kind == Dropped || e.Kind == Included
			was, known := events.Swap(e.Tx.Hash(), !left)
			if inside := known && was.(bool); e.Admitted == inside {
				failed.CompareAndSwap(nil, &e)
			}
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	var readers, workers sync.WaitGroup
	for range 4 {
		s := p.Subscribe(SubscribeOptions{Buffer: 8})
		readers.Go(func() {
			defer s.Close()
			for {
				if _, err := s.Next(ctx); err != nil {
					return
				}
			}
		})
	}
	readers.Go(func() { // whatever is under way
		for ctx.Err() == nil {
			if err := p.Check(); err != nil {
				violated.Store(&err)
				return
			}
		}
	})
	for g := range goroutines {
		workers.Go(func() {
			for r := range rounds {
				worker(p, g, r)
			}
		})
	}
	workers.Wait()
	stop()
	readers.Wait()
	require.Nil(t, failed.Load())
	require.Nil(t, violated.Load(), "Check finds nothing, whatever is under way")
	require.NoError(t, p.Check())
	events.Range(func(hash, inside any) bool {
		require.Equal(t, inside, p.Get(hash.(common.Hash)) != nil)
		return true
	})
}

// worker does one thing.
func worker(p *Pool, g, r int) {
	switch g % 8 {
	case 0, 1, 2:
		_ = p.Add(tx(g%32, uint64(r%7), int64(1+r)))
	case 3:
		p.AddAll([]*types.Transaction{tx(g%32, uint64(r), 3), tx((g+1)%32, uint64(r), 4), setCode(g%32, 0, 5, delegate((g+2)%32, 0))})
	case 4:
		l := p.Drain(Budget{Count: 5})
		for i, tx := range l.Transactions() {
			if i%3 == 0 {
				_ = l.Reject(tx.Hash(), errors.New("no"))
			}
		}
		if r%2 == 0 {
			_ = l.Commit()
		} else {
			_ = l.Release()
		}
	case 5:
		some := p.Candidates()
		some = some[:min(2, len(some))]
		p.Reset(Head{BaseFee: big.NewInt(int64(r%3) * gwei), Included: []Block{{Transactions: some}}})
	case 6:
		for range p.Snapshot().All() {
			p.Stats()
			break
		}
		p.Content()
		p.Candidates()
	case 7:
		s := p.Subscribe(SubscribeOptions{})
		p.CleanupExpired()
		_ = p.Remove(tx(g%32, uint64(r%7), int64(1+r)).Hash())
		s.Close()
	}
}

// A slow reader receives the number of events that it missed, and delays no
// other reader.
func TestSubscription(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	s := p.Subscribe(SubscribeOptions{Buffer: 2})
	add(t, p, tx(0, 0, 2), tx(1, 0, 2), tx(2, 0, 2), tx(3, 0, 2))
	e, err := s.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, Event{Kind: Missed, Missed: 2}, e)
	for i := 2; i < 4; i++ {
		e, err = s.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, addr(i), e.Sender)
		require.Equal(t, Pending, e.Kind)
		require.True(t, e.Admitted)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Next(ctx)
	require.ErrorIs(t, err, context.Canceled)
	s.Close()
	s.Close()
	_, err = s.Next(t.Context())
	require.ErrorIs(t, err, ErrClosed)
	add(t, p, tx(4, 0, 2))
	p.mu.Lock()
	require.False(t, p.core.listening)
	p.mu.Unlock()
}

// An observer may call the pool.
func TestObserverCallsBack(t *testing.T) {
	var p *Pool
	calls := 0
	p = newPool(t, newWorld(), func(c *Config) {
		c.Journal = new(memory)
		c.Observe = func(e Event) {
			if calls++; calls < 5 {
				_ = p.Add(tx(calls, 0, 2))
			}
		}
	})
	add(t, p, tx(0, 0, 2))
	require.Equal(t, 5, p.Size())
	require.Equal(t, 5, calls)
}

// Metrics count what happened.
func TestMetrics(t *testing.T) {
	counts := make(map[string]int)
	values := make(map[Histogram][]float64)
	w := newWorld()
	p := newPool(t, w, func(c *Config) {
		tiny(2, 2)(c)
		c.Metrics = Metrics{
			Count:   func(counter Counter, reason string) { counts[string(counter)+" "+reason]++ },
			Observe: func(h Histogram, value float64) { values[h] = append(values[h], value) },
		}
	})
	add(t, p, tx(0, 0, 2), tx(1, 0, 3), tx(1, 0, 6))
	w.advance(3e9)
	require.Error(t, p.Add(tx(2, 0, 2)))
	add(t, p, tx(2, 0, 5))
	require.Error(t, p.Add(tx(2, 0, 5)))
	require.NoError(t, p.Drain(Budget{Count: 1}).Commit())
	require.Equal(t, map[string]int{"admitted ": 4, "replaced ": 1, "rejected pool full": 1, "dropped pool full": 1, "rejected known": 1, "drained ": 1, "included ": 1}, counts)
	require.Equal(t, []float64{3}, values[EvictionAgeSeconds])
	require.Len(t, values[TxBytes], 4)
	require.Len(t, values[AdmitSeconds], 4)
}

// TestI11EveryEndIsAnEvent: a nil error means stored, and each way to leave is one event with its
// reason.
func TestI11EveryEndIsAnEvent(t *testing.T) {
	w := newWorld()
	ends := make(map[common.Hash]string)
	p := newPool(t, w, func(c *Config) {
		tiny(5, 5)(c)
		c.Observe = func(e Event) {
			switch e.Kind {
			case Replaced, Dropped, Included:
				ends[e.Tx.Hash()] += fmt.Sprintf("%v %v;", e.Kind, e.Reason)
			}
		}
	})
	why := errors.New("it reverts")
	add(t, p, tx(0, 0, 2), tx(1, 0, 3), tx(2, 0, 4), tx(3, 0, 5), tx(4, 0, 6))
	add(t, p, tx(5, 0, 9), tx(4, 0, 8)) // evicts 0, replaces 4
	require.NoError(t, p.Reject(tx(5, 0, 9).Hash(), why))
	require.NoError(t, p.Remove(tx(4, 0, 8).Hash()))
	require.NoError(t, p.Drain(Budget{Count: 1}).Commit()) // 3
	w.nonce(3, 1)
	w.balance(2, 0)
	p.Reset(Head{})
	w.advance(time.Hour)
	p.CleanupExpired()
	require.Zero(t, p.Size())
	require.Equal(t, map[common.Hash]string{
		tx(0, 0, 2).Hash(): "dropped txpool is full;",
		tx(1, 0, 3).Hash(): "dropped txpool: transaction expired;",
		tx(2, 0, 4).Hash(): "dropped insufficient funds for gas * price + value;",
		tx(3, 0, 5).Hash(): "included <nil>;",
		tx(4, 0, 6).Hash(): "replaced <nil>;",
		tx(4, 0, 8).Hash(): "dropped txpool: transaction removed;",
		tx(5, 0, 9).Hash(): "dropped it reverts;",
	}, ends)
}
