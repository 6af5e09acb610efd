package txpool

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Transactions expire.
func TestExpiry(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(1, 3, 2))
	w.advance(30 * time.Minute)
	w.add(tx(0, 1, 2))
	require.Zero(t, w.cleanup())
	w.advance(30 * time.Minute)
	w.commit(Budget{Count: 1})
	w.stands(1, "----") // the queued one
	w.stands(0, "-p")
	w.advance(30 * time.Minute)
	require.Equal(t, 1, w.cleanup())
	require.Zero(t, w.Size())
	require.Zero(t, w.Stats().Senders)
}

// Expired transactions leave with the next Add, Build or Reset.
func TestExpiryInOtherCalls(t *testing.T) {
	for name, call := range map[string]func(*world){
		"Add":   func(w *world) { w.add(tx(1, 0, 1)) },
		"Build": func(w *world) { w.build(Budget{}) },
		"Reset": func(w *world) { w.reset(Head{}) },
	} {
		t.Run(name, func(t *testing.T) {
			dropped := 0
			w := newWorld(t, observed(func(e Event) {
				if e.Kind == Dropped {
					dropped++
				}
			}))
			w.add(tx(0, 0, 2))
			w.advance(time.Hour)
			call(w)
			w.has(StatusUnknown, tx(0, 0, 2))
			require.Equal(t, 1, dropped, "events when the call returns")
		})
	}
}

// A pool that the host does not call does nothing by itself, and calls none of the host's
// functions.
func TestNothingWithoutACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.Now = nil })
		w.add(tx(0, 0, 2))
		time.Sleep(2 * w.cfg.Lifetime)
		synctest.Wait()
		require.Equal(t, 1, w.Size())
		require.Equal(t, 1, w.cleanup())
		require.Zero(t, w.Size())
	})
}

// An expired transaction stays while a later one in line stays. One behind a gap
// does not keep it.
func TestExpiryOfParents(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(1, 0, 2))
	w.advance(30 * time.Minute)
	w.add(tx(0, 1, 2), tx(1, 2, 2))
	w.advance(30 * time.Minute)
	w.CleanupExpired()
	w.stands(0, "pp")
	w.stands(1, "--q")
}

// A locked transaction does not expire.
func TestLockedDoesNotExpire(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2))
	s := w.drain(Budget{})
	w.advance(2 * time.Hour)
	require.Zero(t, w.cleanup())
	require.Len(t, s.Transactions(), 1)
}
