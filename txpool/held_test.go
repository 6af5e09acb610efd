package txpool

import (
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// refusing is a Precheck that refuses the next few transactions.
type refusing struct{ next int }

func (r *refusing) config(c *Config) {
	unless(func(*types.Transaction) bool {
		r.next--
		return r.next >= 0
	})(c)
}

// troubles are reasons for which a transaction of sender 0 cannot come back now.
var troubles = map[string]func(*world, *refusing){
	"account": func(w *world, _ *refusing) { w.breaks(0) },
	"check":   func(_ *world, r *refusing) { r.next = 1000 },
}

// A transaction that a check refuses after a restart is held aside, across another
// restart too, until its lifetime is over.
func TestHeldAside(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(0, 1, 2))
	first := unless(func(tx *types.Transaction) bool { return tx.Nonce() == 0 })
	for range 2 {
		restored := w.restart(first)
		require.Equal(t, 1, restored.Transactions)
		require.Len(t, restored.Displaced, 1)
		require.True(t, restored.Displaced[0].Held)
		w.has(StatusHeld, tx(0, 0, 2))
		w.shorten()
	}
	w.restart()
	w.advance(time.Hour)
	require.Equal(t, 2, w.cleanup())
	require.ErrorIs(t, w.departed(tx(0, 0, 2)).Reason, ErrExpired)
	w.restart()
	w.has(StatusUnknown, tx(0, 0, 2))
}

// Transactions that are held aside take memory, so they count towards the bound of
// the pool: newcomers are refused while they fill the pool, and admitted when they
// are gone.
func TestHeldAsideIsBounded(t *testing.T) {
	w := newWorld(t, tiny(2, 1))
	w.add(tx(0, 0, 2), tx(0, 1, 2))
	blocks := []Block{w.commit(Budget{})}
	w.add(tx(0, 2, 2), tx(0, 3, 2))
	blocks = append(blocks, w.commit(Budget{}))
	w.include(blocks...)
	w.breaks(0)
	require.Len(t, w.revert(blocks...), 4)
	require.Len(t, w.Held(), 4)
	w.refuse(tx(1, 0, 9), ErrPoolFull)
	w.repairs()
	w.include(blocks...)
	require.Empty(t, w.Held())
	w.add(tx(1, 0, 9))
}

// The same for their bytes.
func TestHeldTakesBytes(t *testing.T) {
	w := newWorld(t, narrow(1300, 3000))
	w.breaks(0)
	require.Len(t, w.fails(padded(0, 0, 2, 900), padded(0, 1, 2, 900), padded(0, 2, 2, 900), padded(0, 3, 2, 900)), 4)
	w.add(tx(1, 0, 2))
	w.refuse(padded(2, 0, 2, 100), ErrPoolFull)
	require.Less(t, weigh(tx(1, 0, 2), padded(2, 0, 2, 100)), uint64(3000))
}

// A transaction that is held aside and sent again is known. Otherwise the pool
// would have two copies of it: one could be displaced by count, and the other
// be reported as dropped after the first was included. After it came back, the
// pool and its content have it once.
func TestHeldAsideIsKnown(t *testing.T) {
	w := newWorld(t)
	w.setAside(tx(0, 0, 2))
	w.repairs()
	require.ErrorIs(t, w.Add(tx(0, 0, 2)), ErrAlreadyKnown)
	w.has(StatusHeld, tx(0, 0, 2))
	require.Zero(t, w.cleanup())
	w.has(StatusPending, tx(0, 0, 2))
	require.Empty(t, w.Held())
	w.shorten()
	copies := 0
	for _, record := range w.tape.records {
		if record[0] == recordAdded {
			copies++
		}
	}
	require.Equal(t, 1, copies)
	require.Empty(t, w.include(w.commit(Budget{})))
	_, departed := w.Departure(tx(0, 0, 2).Hash())
	require.False(t, departed)
}

// A transaction that is held aside and then in a block leaves without a departure,
// and does not come back with a restart.
func TestHeldAndIncluded(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2))
	block := w.commit(Budget{})
	w.include(block)
	w.breaks(0)
	displaced := w.revert(block)
	require.Len(t, displaced, 1)
	require.ErrorIs(t, displaced[0].Err, ErrState)
	require.Equal(t, displaced, w.Held())
	for range 2 {
		require.Empty(t, w.tell(block))
		require.Empty(t, w.Held())
		_, known := w.Departure(tx(0, 0, 2).Hash())
		require.False(t, known)
		require.Equal(t, Restored{}, w.restart())
	}
}

// A transaction that is held aside and returns with another failed block is in
// the pool only, and not held any more.
func TestHeldReturnsWithAnotherBlock(t *testing.T) {
	w := newWorld(t)
	w.setAside(tx(0, 0, 2))
	w.repairs()
	require.Empty(t, w.fails(tx(0, 0, 2)))
	require.Empty(t, w.Held())
	w.has(StatusPending, tx(0, 0, 2))
}

// A transaction that a Reset holds aside and admits after all is not reported.
func TestResetReportsNoHeldOneThatItAdmits(t *testing.T) {
	r := new(refusing)
	w := newWorld(t, r.config)
	w.add(tx(0, 0, 2))
	block := w.commit(Budget{})
	r.next = 1
	require.Empty(t, w.fails(block.Transactions...))
	require.Negative(t, r.next, "it was refused first")
	w.has(StatusPending, tx(0, 0, 2))
	require.Empty(t, w.Held())
}

// The lifetime of a transaction that is held aside begins when it was first
// admitted, not with the restart. If its nonce is used up when the lifetime is
// over, the nonce is the reason.
func TestHeldLifetime(t *testing.T) {
	for _, used := range []bool{false, true} {
		w := newWorld(t)
		w.add(tx(0, 0, 2))
		w.advance(40 * time.Minute)
		w.breaks(0)
		require.Len(t, w.restart().Displaced, 1)
		w.advance(20*time.Minute - 1)
		require.Zero(t, w.cleanup())
		w.advance(1)
		want := ErrExpired
		if used {
			w.repairs()
			w.nonce(0, 1)
			want = ErrNonceTooLow
		}
		require.Equal(t, 1, w.cleanup())
		require.ErrorIs(t, w.departed(tx(0, 0, 2)).Reason, want)
	}
}

// Held returns the newest reason.
func TestHeldReason(t *testing.T) {
	r := new(refusing)
	w := newWorld(t, r.config)
	w.setAside(tx(0, 0, 2))
	require.ErrorIs(t, w.Held()[0].Err, ErrState)
	w.repairs()
	r.next = 1000
	w.reset(Head{})
	require.Len(t, w.Held(), 1)
	require.ErrorIs(t, w.Held()[0].Err, errTest)
}

// Transactions that are held aside are tried again in the order in which they
// came.
func TestHeldAreTriedInOrder(t *testing.T) {
	w := newWorld(t)
	for i := range 4 {
		w.breaks(i)
		require.Len(t, w.fails(tx(i, 0, 2)), 1)
		w.advance(time.Second)
	}
	w.repairs()
	require.Empty(t, w.reset(Head{}))
	w.offers(tx(0, 0, 2), tx(1, 0, 2), tx(2, 0, 2), tx(3, 0, 2))
}

// Transactions of one failed block are tried again in the order of the block, also
// after a restart and from the content.
func TestHeldKeepTheirOrder(t *testing.T) {
	for name, pass := range map[string]func(*world){
		"at once":     func(*world) {},
		"restart":     func(w *world) { w.restart() },
		"the content": func(w *world) { w.shorten(); w.restart() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var block []*types.Transaction
			for i := range 8 {
				w.breaks(i)
				block = append(block, tx(i, 0, 2))
			}
			require.Len(t, w.fails(block...), 8)
			pass(w)
			require.Len(t, w.Held(), 8)
			w.repairs()
			require.Empty(t, w.reset(Head{}))
			w.offers(block...)
		})
	}
}

// A private transaction stays private while it is held aside and when it comes
// back, whatever the reason.
func TestHeldStaysPrivate(t *testing.T) {
	extra := new(uint256.Int)
	all := map[string]func(*world, *refusing){"inspection": func(*world, *refusing) { extra.SetAllOne() }}
	for name, trouble := range troubles {
		all[name] = trouble
	}
	for name, trouble := range all {
		t.Run(name, func(t *testing.T) {
			r := new(refusing)
			var events []Event
			w := newWorld(t, r.config, observed(func(e Event) { events = append(events, e) }),
				func(c *Config) { c.ExtraCost = func(*types.Transaction) *uint256.Int { return extra } })
			hidden := chain(0, 0, 2, 2)
			w.addPrivate(hidden...)
			w.commit(Budget{})
			trouble(w, r)
			require.Len(t, w.fails(hidden...), 2)
			r.next = 0
			extra.Clear()
			w.repairs()
			w.reset(Head{})
			w.has(StatusPending, hidden...)
			require.Empty(t, offered(w))
			for _, e := range events {
				require.True(t, e.Private || e.Tx == nil, "%v", e.Kind)
			}
		})
	}
}

// A private transaction that is held aside by a restart stays private, and its
// lifetime goes on, whatever the reason. If the reason lasts, its last event is
// private too and has its age.
func TestHeldByARestart(t *testing.T) {
	for name, trouble := range troubles {
		for _, lasts := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				r := new(refusing)
				var dropped []Event
				w := newWorld(t, r.config, observed(func(e Event) {
					if e.Kind == Dropped {
						dropped = append(dropped, e)
					}
				}))
				w.addPrivate(tx(0, 0, 2))
				trouble(w, r)
				for range 2 {
					w.advance(20 * time.Minute)
					w.restart()
					w.has(StatusHeld, tx(0, 0, 2))
				}
				if !lasts {
					r.next = 0
					w.repairs()
					require.Empty(t, w.reset(Head{}))
					w.has(StatusPending, tx(0, 0, 2))
					require.Empty(t, offered(w))
				}
				w.advance(20 * time.Minute)
				require.Equal(t, 1, w.cleanup())
				require.Len(t, dropped, 1)
				require.True(t, dropped[0].Private)
				require.Equal(t, time.Hour, dropped[0].Age)
			})
		}
	}
}

// A transaction is held aside, and its sender adds another one with its nonce. After
// a restart the later one is in the pool, as before, even if a session has it then.
func TestHeldGivesWayAfterRestart(t *testing.T) {
	for _, locked := range []bool{false, true} {
		for name, trouble := range troubles {
			t.Run(fmt.Sprintf("%s, locked %v", name, locked), func(t *testing.T) {
				r := new(refusing)
				w := newWorld(t, r.config)
				trouble(w, r)
				require.Len(t, w.fails(tx(0, 0, 2)), 1)
				w.repairs()
				r.next = 0
				w.add(tx(0, 0, 3))
				if locked {
					w.takes(w.build(Budget{}), tx(0, 0, 3))
				}
				for range 2 {
					w.restart()
					w.has(StatusPending, tx(0, 0, 3))
					w.has(StatusUnknown, tx(0, 0, 2))
					require.Equal(t, tx(0, 0, 3).Hash(), w.departed(tx(0, 0, 2)).By)
					w.shorten()
				}
			})
		}
	}
}
