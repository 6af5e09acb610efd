package txpool

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// The events tell a transaction's life.
func TestEvents(t *testing.T) {
	var got []string
	w := newWorld(t, tiny(2, 2), observed(func(e Event) { got = append(got, e.Kind.String()) }))
	expect := func(want ...string) {
		t.Helper()
		require.Equal(t, want, got)
		got = nil
	}
	w.add(tx(0, 1, 2))
	expect("queued")
	w.add(tx(0, 0, 2))
	expect("pending", "promoted")
	w.add(tx(0, 0, 4))
	expect("replaced", "pending")
	w.add(tx(1, 0, 3))
	expect("dropped", "pending")
	w.commit(Budget{Count: 1})
	expect("included")
	w.remove(tx(1, 0, 3))
	expect("dropped")
}

// TestI11EveryEndIsAnEvent: a nil error means stored, and each way to leave is one event with its
// reason.
func TestI11EveryEndIsAnEvent(t *testing.T) {
	ends := make(map[common.Hash]string)
	w := newWorld(t, tiny(5, 5), observed(func(e Event) {
		switch e.Kind {
		case Replaced, Dropped, Included:
			ends[e.Tx.Hash()] += fmt.Sprintf("%v %v;", e.Kind, e.Reason)
		}
	}))
	w.add(tx(0, 0, 2), tx(1, 0, 3), tx(2, 0, 4), tx(3, 0, 5), tx(4, 0, 6))
	w.add(tx(5, 0, 9), tx(4, 0, 8)) // evicts 0, replaces 4
	require.NoError(t, w.Reject(tx(5, 0, 9).Hash(), errTest))
	w.remove(tx(4, 0, 8))
	w.run(w.commit(Budget{Count: 1}).Transactions...) // 3
	w.balance(2, 0)
	w.reset(Head{})
	w.advance(time.Hour)
	w.CleanupExpired()
	require.Zero(t, w.Size())
	require.Equal(t, map[common.Hash]string{
		tx(0, 0, 2).Hash(): "dropped txpool is full;",
		tx(1, 0, 3).Hash(): "dropped txpool: transaction expired;",
		tx(2, 0, 4).Hash(): "dropped insufficient funds for gas * price + value;",
		tx(3, 0, 5).Hash(): "included <nil>;",
		tx(4, 0, 6).Hash(): "replaced <nil>;",
		tx(4, 0, 8).Hash(): "dropped txpool: transaction removed;",
		tx(5, 0, 9).Hash(): "dropped the test says so;",
	}, ends)
}

// Private transactions run like others and are not shown. Their events say that they are private.
func TestPrivate(t *testing.T) {
	private := make(map[common.Address]bool)
	w := newWorld(t, observed(func(e Event) { private[e.Sender] = e.Private }))
	w.addPrivate(tx(0, 0, 9))
	require.ErrorIs(t, w.AddPrivate(tx(2, 0, 0)), ErrUnderpriced)
	w.add(tx(1, 0, 2))
	w.offers(tx(1, 0, 2))
	pending, _ := w.Content()
	require.Len(t, pending, 1)
	require.Equal(t, map[common.Address]bool{addr(0): true, addr(1): false}, private)
	same(t, []*types.Transaction{tx(0, 0, 9), tx(1, 0, 2)}, w.drain(Budget{}).Transactions())
}

func TestReading(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(0, 2, 2), tx(1, 0, 3))
	require.Equal(t, 3, w.Size())
	w.has(StatusPending, tx(0, 0, 2))
	w.has(StatusQueued, tx(0, 2, 2))
	w.has(StatusUnknown, tx(0, 1, 2))
	s := w.drain(Budget{Count: 1})
	w.has(StatusLocked, tx(1, 0, 3))
	require.Equal(t, "locked", StatusLocked.String())
	pending, queued := w.Content()
	require.Len(t, pending, 2)
	require.Len(t, queued, 1)
	run, others := w.ContentFrom(addr(0))
	require.Len(t, run, 1)
	require.Len(t, others, 1)
	stats := w.Stats()
	require.Equal(t, []int{2, 0, 1, 1, 2, 3}, []int{stats.Pending, stats.Parked, stats.Queued, stats.Locked, stats.Senders, stats.Size()})
	require.Empty(t, offered(w)[1:])
	s.Cancel()
	_, known := w.NextNonce(addr(5))
	require.False(t, known)
	require.ErrorIs(t, w.Remove(tx(5, 0, 2).Hash()), ErrNotFound)
}

// A snapshot stays as it is, whatever happens.
func TestSnapshot(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(1, 0, 3))
	s := w.Snapshot()
	w.add(tx(2, 0, 9), tx(0, 0, 5))
	w.commit(Budget{})
	same(t, []*types.Transaction{tx(1, 0, 3), tx(0, 0, 2)}, slices.Collect(s.All()))
}

// The events have all that metrics need, except refusals, which Label names.
func TestEventsCount(t *testing.T) {
	counts := make(map[string]int)
	var ages []time.Duration
	w := newWorld(t, tiny(2, 2), observed(func(e Event) {
		if e.Admitted {
			counts["admitted"]++
			return
		}
		if e.Kind == Dropped {
			counts["dropped "+Label(e.Reason)]++
			ages = append(ages, e.Age)
			return
		}
		counts[e.Kind.String()]++
	}))
	w.add(tx(0, 0, 2), tx(1, 0, 3), tx(1, 0, 6))
	w.advance(3 * time.Second)
	w.refuse(tx(2, 0, 2), ErrPoolFull)
	w.add(tx(2, 0, 5))
	w.commit(Budget{Count: 1})
	require.Equal(t, map[string]int{"admitted": 4, "replaced": 1, "dropped pool full": 1, "included": 1}, counts)
	require.Equal(t, []time.Duration{3 * time.Second}, ages)
	for err, want := range map[error]string{
		fmt.Errorf("%w: tip 1", ErrPoolFull): "pool full", ErrAlreadyKnown: "known", ErrOversized: "invalid", errTest: "other",
	} {
		require.Equal(t, want, Label(err))
	}
}

// An observer may call the pool.
func TestObserverCallsBack(t *testing.T) {
	var w *world
	calls := 0
	w = newWorld(t, observed(func(Event) {
		if calls++; calls < 5 {
			_ = w.Add(tx(calls, 0, 2))
		}
	}))
	w.add(tx(0, 0, 2))
	require.Equal(t, 5, w.Size())
	require.Equal(t, 5, calls)
}

// An observer that panics costs the one event that it panicked at. The next call delivers the
// later events.
func TestObserverPanics(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			seen := make(chan Kind, 10)
			w := newWorld(t, tiny(2, 2), observed(func(e Event) {
				seen <- e.Kind
				if e.Kind == Dropped {
					panic("x")
				}
			}))
			w.add(tx(0, 0, 5), tx(1, 0, 5))
			require.Panics(t, func() { _ = w.Add(tx(2, 0, 9)) })
			w.CleanupExpired()
			for _, want := range []Kind{Pending, Pending, Dropped, Pending} {
				require.Equal(t, want, <-seen)
			}
		})
	}
}

// All events are delivered, once and in order, also if many callers cause them.
func TestEventsOfManyCallers(t *testing.T) {
	const each, callers = 3000, 4
	var last sync.Map // by sender: next nonce
	var told atomic.Int64
	all := make(chan struct{})
	w := newWorld(t, unsigned, perSender(each), observed(func(e Event) {
		next, _ := last.LoadOrStore(e.Sender, uint64(0))
		if e.Tx.Nonce() != next {
			t.Errorf("nonce %d told, want %d", e.Tx.Nonce(), next)
		}
		last.Store(e.Sender, e.Tx.Nonce()+1)
		if told.Add(1) == each*callers {
			close(all)
		}
	}))
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			for n := range uint64(each) {
				if err := w.Add(plain(i, n, 30_000, 1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	<-all
}
