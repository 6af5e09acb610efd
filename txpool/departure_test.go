package txpool

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// left checks which of some transactions have a departure, as a string of 'd' and
// '-'.
func (w *world) left(want string, txs ...*types.Transaction) {
	w.t.Helper()
	have := ""
	for _, tx := range txs {
		if _, known := w.Departure(tx.Hash()); known {
			have += "d"
		} else {
			have += "-"
		}
	}
	require.Equal(w.t, want, have)
}

// remembers limits the number of departures that the pool remembers.
func (w *world) remembers(most int) {
	all := w.core.departures.all(w.Pool.clock())
	w.core.departures = newRecent[Departure](most, departureTime)
	for _, d := range all {
		w.core.departures.remember(d.Hash, d, d.At.UnixNano())
	}
}

// listed is an error of a comparable type with a value that is not comparable.
type listed struct{ value any }

func (listed) Error() string { return "one of several problems" }

// Departures have the reason and the time. The pool remembers a limited number
// for a limited time, also across a restart and in the content.
func TestDepartures(t *testing.T) {
	w := newWorld(t)
	replaced, removed, rejected := tx(0, 0, 2), tx(1, 0, 2), tx(2, 0, 2)
	w.add(replaced, removed, rejected, tx(0, 0, 3))
	w.remove(removed)
	at := w.clock()
	w.advance(time.Minute)
	require.NoError(t, w.Reject(rejected.Hash(), fmt.Errorf("execution reverted: %0300d", 1)))
	for range 3 { // at once, from the records, and from those of the content
		d := w.departed(replaced)
		require.Equal(t, tx(0, 0, 3).Hash(), d.By)
		require.Equal(t, Replaced, d.Kind)
		d = w.departed(removed)
		require.ErrorIs(t, d.Reason, ErrRemoved)
		require.True(t, at.Equal(d.At))
		d = w.departed(rejected)
		require.ErrorContains(t, d.Reason, "execution reverted")
		require.Len(t, d.Reason.Error(), maxReason)
		w.left("-", tx(0, 0, 3)) // it is in the pool
		w.restart()
		w.shorten()
	}
	w.add(removed)
	w.left("-", removed) // it is in the pool again
	w.remembers(4)
	w.add(tx(3, 0, 2), tx(3, 0, 3), tx(3, 0, 4), tx(3, 0, 5))
	w.left("-d", replaced, tx(3, 0, 2)) // four are newer
	w.advance(24 * time.Hour)
	w.left("-", tx(3, 0, 2)) // a day is over
}

// A pool without receivers of events remembers departures too.
func TestDeparturesWithoutAListener(t *testing.T) {
	w := newWorld(t, forgetful)
	w.add(tx(0, 0, 2))
	w.remove(tx(0, 0, 2))
	require.ErrorIs(t, w.departed(tx(0, 0, 2)).Reason, ErrRemoved)
	require.Len(t, w.fails(tx(1, 0, 2), tx(1, 0, 3)), 1) // of one nonce
	require.Equal(t, tx(1, 0, 2).Hash(), w.departed(tx(1, 0, 3)).By)
}

// The pool remembers a number of departures. The oldest one is
// forgotten first, also after a restart and if all of them happened at one time.
func TestDeparturesAreBounded(t *testing.T) {
	const most = 8
	w := newWorld(t)
	w.remembers(most)
	var gone []*types.Transaction
	leave := func(i int) {
		w.add(tx(i, 0, 2))
		w.remove(tx(i, 0, 2))
		gone = append(gone, tx(i, 0, 2))
	}
	for i := range most {
		leave(i)
	}
	w.left("dddddddd", gone...)
	leave(most)
	w.left("-dddddddd", gone...)
	for n := range 3 {
		w.restart()
		w.remembers(most)
		leave(most + 1 + n)
		w.left(strings.Repeat("-", n+2)+"dddddddd", gone...)
	}
}

// A transaction that left twice is remembered by its newest departure, after
// the older one is forgotten too.
func TestDepartureTwice(t *testing.T) {
	w := newWorld(t)
	w.remembers(2)
	twice := tx(0, 0, 2)
	for range 2 {
		w.add(twice)
		w.remove(twice)
		w.advance(time.Second)
	}
	w.add(tx(1, 0, 2))
	w.remove(tx(1, 0, 2))
	w.left("dd", twice, tx(1, 0, 2))
}

// Departures that are too old take no memory after CleanupExpired.
func TestDeparturesArePruned(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2))
	w.remove(tx(0, 0, 2))
	w.advance(departureTime)
	w.CleanupExpired()
	require.Zero(t, w.core.departures.Len())
}

// A departure that has happened is known before it is written down.
func TestDepartureBeforeItIsWritten(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2))
	w.mu.Lock()
	w.core.applyPlan(planDrop(w.core.all[tx(0, 0, 2).Hash()], ErrRemoved))
	w.mu.Unlock()
	require.ErrorIs(t, w.departed(tx(0, 0, 2)).Reason, ErrRemoved)
}

// A transaction that leaves the pool and is added again by the same batch has no
// departure: not while it is in the pool, and not when a block includes
// it.
func TestDepartureOfATransactionThatIsBack(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxQueued = 2 })
	displaced := tx(0, 2, 2)
	w.add(tx(0, 1, 2))
	// The second transaction displaces the first one, because sender 0 has most
	// behind a gap. The third fills the gap of sender 1 and makes room again.
	errs := w.AddAll([]*types.Transaction{displaced, tx(1, 1, 2), tx(1, 0, 2), displaced, tx(0, 0, 2)})
	require.Equal(t, make([]error, 5), errs)
	w.check()
	w.has(StatusPending, displaced)
	w.left("-", displaced)
	w.commit(Budget{})
	w.has(StatusUnknown, displaced)
	w.left("-", displaced) // it was included
}

// A transaction that is removed and then included by a block of another node has
// no departure, also after a restart.
func TestDepartureEndsWithInclusion(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2))
	w.remove(tx(0, 0, 2))
	w.include(blockOf(tx(0, 0, 2)))
	w.left("-", tx(0, 0, 2))
	w.restart()
	w.left("-", tx(0, 0, 2))
}

// A transaction that left and is then held aside has no departure.
func TestDepartureEndsWhenHeld(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2))
	w.remove(tx(0, 0, 2))
	w.breaks(0)
	require.Len(t, w.fails(tx(0, 0, 2)), 1)
	w.has(StatusHeld, tx(0, 0, 2))
	w.left("-", tx(0, 0, 2))
}

// A transaction that comes back with a nonce that is used up has a departure
// with this reason, also after a restart.
func TestDepartureOfWhatCannotComeBack(t *testing.T) {
	w := newWorld(t)
	w.nonce(0, 1)
	lost := tx(0, 0, 2)
	require.Len(t, w.reset(Head{Reverted: []Block{blockOf(lost)}}), 1)
	for range 2 {
		d := w.departed(lost)
		require.Equal(t, Dropped, d.Kind)
		require.Equal(t, common.Hash{}, d.By)
		require.ErrorIs(t, d.Reason, ErrNonceTooLow)
		w.restart()
	}
}

// A builder that gives no reason, or one that is not comparable, gets a
// departure like any other.
func TestRejectForAnyReason(t *testing.T) {
	for name, test := range map[string]struct {
		reason error
		want   string
	}{
		"none":           {nil, ErrQuarantined.Error()},
		"not comparable": {listed{[]int{1}}, "one of several problems"},
	} {
		for kind, reject := range map[string]func(*world, *Session, common.Hash){
			"session": func(_ *world, s *Session, _ common.Hash) { s.Fail(test.reason) },
			"pool":    func(w *world, _ *Session, hash common.Hash) { require.NoError(t, w.Reject(hash, test.reason)) },
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				w := newWorld(t)
				w.add(tx(0, 0, 5))
				s := w.build(Budget{})
				w.takes(s, tx(0, 0, 5))
				reject(w, s, tx(0, 0, 5).Hash())
				require.EqualError(t, w.departed(tx(0, 0, 5)).Reason, test.want)
				w.check()
			})
		}
	}
}
