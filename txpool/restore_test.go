package txpool

import (
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// A restart restores transactions, whether they are private, and their age. Those of a session
// are free again.
func TestRestore(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 2), tx(1, 0, 5), tx(1, 0, 7), tx(2, 1, 2), tx(3, 0, 3), tx(4, 0, 8))
	w.addPrivate(tx(5, 0, 2))
	w.commit(Budget{Count: 1})
	w.remove(tx(2, 1, 2))
	before := offered(w)
	w.drain(Budget{Count: 3})
	w.advance(time.Minute)
	require.Equal(t, Restored{Transactions: 6}, w.restart())
	w.offers(before...)
	w.advance(58 * time.Minute)
	require.Zero(t, w.cleanup(), "the transactions are 59 minutes old")
	w.advance(time.Minute)
	require.Equal(t, 6, w.cleanup())
}

// A transaction that was included meanwhile is not taken again, and not tried at
// the next restart.
func TestRestoreRefuses(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(1, 0, 2))
	w.nonce(0, 1)
	restored := w.restart()
	require.Equal(t, 1, restored.Transactions)
	require.Len(t, restored.Displaced, 1)
	require.ErrorIs(t, restored.Displaced[0].Err, ErrNonceTooLow)
	require.Empty(t, w.restart().Displaced)
}

// A poisoned record is put aside and everything else is restored. A transaction that
// a check refuses now is held aside, and comes back when the check is repaired.
func TestRestorePoisoned(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(1, 0, 3), tx(2, 0, 4))
	w.keep()
	w.tape.append([][]byte{{}, []byte("what is this"), {recordAdded, 0, 1}, {recordLeft, 1}, {recordDeparted, 1}})
	refuses := true
	checked := unless(func(tx *types.Transaction) bool { return refuses && tx.GasTipCap().Cmp(gweis(3)) == 0 })
	for range 2 { // nothing is forgotten
		restored := w.restart(checked)
		require.Equal(t, 2, restored.Transactions)
		require.Len(t, restored.Poisoned, 5)
		require.ErrorIs(t, restored.Displaced[0].Err, errTest)
		w.has(StatusHeld, tx(1, 0, 3))
	}
	refuses = false
	for range 2 {
		restored := w.restart()
		require.Equal(t, 3, restored.Transactions)
		require.Len(t, restored.Poisoned, 5)
		w.shorten() // has what could not be read
	}
}

// A transaction that was included, shown, and reverted is in the pool again, also
// after a restart. If it leaves then, its nonce is free.
func TestRestartAfterRevert(t *testing.T) {
	for _, removed := range []bool{false, true} {
		w := newWorld(t)
		w.add(tx(0, 0, 5))
		block := w.commit(Budget{})
		w.include(block)
		require.Empty(t, w.revert(block))
		w.has(StatusPending, tx(0, 0, 5))
		if removed {
			w.remove(tx(0, 0, 5))
		}
		require.Empty(t, w.restart().Displaced)
		if removed {
			w.add(tx(0, 0, 9))
		} else {
			w.has(StatusPending, tx(0, 0, 5))
		}
	}
}

// Transactions that a base fee has parked do not compete with pending ones
// before the base fee is known again.
func TestRestartWithParked(t *testing.T) {
	w := newWorld(t, tiny(4, 4))
	w.baseFee(10)
	for i := range 4 {
		w.add(capped(i, 0, 2, 30), capped(10+i, 0, 5, 5))
	}
	require.Equal(t, 8, w.Size())
	w.restart()
	w.baseFee(10)
	require.Equal(t, 8, w.Size())
}

// Whatever run of records Restore reads twice changes nothing.
func TestRecordsTwice(t *testing.T) {
	for name, past := range map[string]func(*world){
		"removals": func(w *world) { w.remove(tx(0, 1, 5)); w.add(tx(0, 1, 5)) },
		"blocks and a revert": func(w *world) {
			w.fails(w.commit(Budget{Count: 2}).Transactions...)
			w.commit(Budget{Count: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.add(chain(0, 0, 4, 5)...)
			past(w)
			w.keep()
			before := w.Stats()
			next, _ := w.NextNonce(addr(0))
			records := w.tape.records
			for from := range records {
				for to := from + 1; to <= len(records); to++ {
					w.tape = &tape{records: slices.Concat(records[:to], records[from:])}
					w.restart()
					require.Equal(t, before, w.Stats(), "records %d to %d twice", from, to)
					n, _ := w.NextNonce(addr(0))
					require.Equal(t, next, n, "records %d to %d twice", from, to)
				}
			}
		})
	}
}

// The content has all senders, in the order of arrival, and later changes follow it.
func TestRecordsHaveAll(t *testing.T) {
	w := newWorld(t)
	var all []*types.Transaction
	for i := range 63 {
		all = append(all, tx(62-i, 0, 5))
	}
	w.add(all...)
	w.shorten()
	require.Len(t, w.tape.records, 1+63, "the prices, and the transactions")
	w.add(tx(63, 0, 5))
	w.keep()
	require.Len(t, w.tape.records, 1+63+1)
	w.restart()
	w.offers(append(all, tx(63, 0, 5))...)
}

// The record of an admission comes before those of the transactions that it displaces, because a
// crash may cut the log after any record.
func TestAdmissionIsRecordedFirst(t *testing.T) {
	for name, newcomer := range map[string]*types.Transaction{"replaces": tx(0, 0, 9), "evicts": tx(1, 0, 9)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tiny(1, 1))
			w.add(tx(0, 0, 5))
			w.keep()
			w.add(newcomer)
			changes := w.TakeChanges()
			require.Len(t, changes, 2)
			w.tape.append(changes[:1])
			require.Equal(t, 1, len(w.restart().Displaced)+w.Size()-1)
			w.has(StatusPending, tx(0, 0, 5)) // the newcomer was not acknowledged
		})
	}
}

// A pool that the host does not restore keeps no changes.
func TestNoChangesAreKept(t *testing.T) {
	w := newWorld(t, forgetful)
	w.add(tx(0, 0, 5), tx(0, 0, 9))
	w.baseFee(1)
	w.fails(w.commit(Budget{}).Transactions...)
	w.remove(tx(0, 0, 9))
	require.Empty(t, w.TakeChanges())
}

// After a restart observers receive an event for each restored transaction, and
// later one for its end.
func TestEventsAfterRestart(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 5))
	seen := 0
	w.restart(observed(func(Event) { seen++ }))
	w.remove(tx(0, 0, 5))
	require.Equal(t, 2, seen)
}

// Whatever a log holds, Restore neither panics nor breaks the pool.
func FuzzRestore(f *testing.F) {
	w := newWorld(f)
	w.add(tx(0, 0, 2), tx(0, 1, 2), tx(1, 3, 2))
	w.commit(Budget{Count: 1})
	w.remove(tx(0, 1, 2))
	w.keep()
	var all []byte
	for _, r := range w.tape.records {
		f.Add(r)
		all = append(append(all, byte(len(r))), r...)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, data []byte) {
		w := newWorld(t)
		w.tape.records = [][]byte{data}
		for rest := data; len(rest) > 0; { // and as many records
			n := min(int(rest[0]), len(rest)-1)
			w.tape.records = append(w.tape.records, rest[1:1+n])
			rest = rest[1+n:]
		}
		w.restart()
		w.CleanupExpired()
		w.check()
	})
}
