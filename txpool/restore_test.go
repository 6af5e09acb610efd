package txpool

import (
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// A restart restores transactions, whether they are private, their age, and
// open leases.
func TestRestore(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 2), tx(1, 0, 5), tx(1, 0, 7), tx(2, 1, 2), tx(3, 0, 3), tx(4, 0, 8))
	w.addPrivate(tx(5, 0, 2))
	w.run(w.commit(Budget{Count: 1}).Transactions...)
	require.NoError(t, w.drain(Budget{Count: 1}).Release())
	open := w.drain(Budget{Count: 3})
	require.NoError(t, open.Return(tx(0, 0, 2).Hash()))
	w.remove(tx(2, 1, 2))
	w.advance(time.Minute)

	before, leased := w.Candidates(), open.Transactions()
	require.Equal(t, Restored{Transactions: 6, Leases: 1}, w.restart())
	w.offers(before...)
	l := w.Lease(open.ID())
	require.NotNil(t, l)
	same(t, leased, l.Transactions())
	require.True(t, w.clock().Add(time.Minute).Equal(l.Expires()), "a full lifetime")
	w.advance(58 * time.Minute)
	require.Zero(t, w.CleanupExpired(), "the lease is over, the transactions are 59 minutes old")
	w.advance(time.Minute)
	require.Equal(t, 6, w.CleanupExpired())
	require.Greater(t, w.drain(Budget{}).ID(), open.ID())
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

// If the journal cannot be read, Restore returns its error.
func TestRestoreFails(t *testing.T) {
	_, err := newWorld(t).Restore(func(func([]byte) error) error { return errTest })
	require.ErrorIs(t, err, errTest)
}

// A poisoned record is put aside and everything else is restored. A transaction that
// makes a check panic is held aside, and comes back when the check is repaired.
func TestRestorePoisoned(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(1, 0, 3), tx(2, 0, 4))
	w.tape.records = append(w.tape.records, []byte{}, []byte("what is this"), []byte{recordAdded, 0, 1},
		[]byte{recordLeft, 1}, encode(recordCommitted, uint64(9)), []byte{recordOpened, 1})
	panics := true
	checked := unless(func(tx *types.Transaction) bool {
		if panics && tx.GasTipCap().Cmp(gweis(3)) == 0 {
			panic("boom")
		}
		return false
	})
	for range 2 { // nothing is forgotten
		restored := w.restart(checked)
		require.Equal(t, 2, restored.Transactions)
		require.Len(t, restored.Poisoned, 6)
		require.ErrorIs(t, restored.Poisoned[5].Err, errPanic)
		w.has(StatusHeld, tx(1, 0, 3))
	}
	panics = false
	for range 2 {
		restored := w.restart()
		require.Equal(t, 3, restored.Transactions)
		require.Len(t, restored.Poisoned, 5)
		w.rotate() // which copies what could not be read
	}
}

// A restart remembers which nonces are used by bundles that the state does not
// show yet, their cost, and which of them were reverted. A new journal has the same
// content.
func TestRestoreCommitted(t *testing.T) {
	w := newWorld(t)
	w.balance(0, 6*unit)
	w.balance(1, 2*unit)
	w.add(append(chain(0, 0, 6, 10), tx(1, 0, 11))...)
	for range 5 {
		w.commit(Budget{Count: 1}) // both senders
	}
	require.Empty(t, w.fails(tx(0, 3, 10)))
	w.run(tx(0, 0, 10), tx(1, 0, 11))
	for range 2 {
		restored := w.restart()
		require.Empty(t, restored.Displaced)
		require.Equal(t, 3, restored.Transactions)
		w.stands(0, "---ppp")
		w.refuse(tx(0, 2, 20), ErrNonceTooLow)
		w.refuse(tx(0, 6, 10), ErrInsufficientFunds)
		w.rotate()
	}
	w.run(tx(0, 1, 10), tx(0, 2, 10))
	w.reset(Head{})
	w.stands(0, "---ppp")
}

// If the state cannot be read at a restart, committed transactions still count.
func TestRestoreCommittedWithoutState(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 10))
	w.commit(Budget{})
	w.breaks(0)
	w.restart()
	w.repairs()
	w.refuse(tx(0, 0, 20), ErrNonceTooLow)
	w.add(tx(0, 1, 10))
	w.stands(0, "-p")
}

// A host that was down for longer than the lifetime of a lease can still commit
// it: neither Reset nor Build releases it before the host has had that time.
func TestRestoredLeaseLivesAgain(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 5))
	lease := w.drain(Budget{})
	w.advance(10 * time.Minute) // the process is down
	require.Equal(t, 1, w.restart().Leases)
	w.reset(Head{})
	require.Empty(t, w.drain(Budget{}).Transactions(), "they are in a bundle")
	require.NotNil(t, w.Lease(lease.ID()))
	require.NoError(t, w.Lease(lease.ID()).Commit())
	w.check()
}

// A lease that was opened while the machine's clock was far ahead does not live on until
// then: after a restart it has one lifetime by the clock that is right now.
func TestRestoredLeaseForgetsAWrongClock(t *testing.T) {
	w := newWorld(t)
	w.advance(100_000 * time.Hour)
	w.add(tx(0, 0, 5))
	w.drain(Budget{})
	w.advance(-100_000 * time.Hour)
	require.Equal(t, 1, w.restart().Leases)
	w.advance(time.Minute)
	w.CleanupExpired()
	w.stands(0, "p")
}

// If the account of a transaction in an open lease cannot be read, Restore fails: the
// transaction must not be built into a second bundle.
func TestRestoreNeedsTheAccountsOfLeases(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(1, 0, 9))
	id := w.drain(Budget{Count: 1}).ID()
	w.breaks(0)
	again, err := New(w.cfg, w)
	require.NoError(t, err)
	_, err = again.Restore(w.tape.replay)
	require.ErrorIs(t, err, errNoDisk)
	w.repairs()
	w.breaks(1) // which no lease has
	require.Equal(t, 1, w.restart().Leases)
	same(t, chain(0, 0, 1, 9), w.Lease(id).Transactions())
}

// A lease is open across a restart, and its transactions may be in a bundle. So they are
// in the lease again, although a check refuses them now.
func TestLeaseKeepsWhatIsRefusedNow(t *testing.T) {
	refused := true
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(0, 1, 2))
	id := w.drain(Budget{}).ID()
	w.restart(unless(func(tx *types.Transaction) bool { return refused && tx.Nonce() == 1 }))
	same(t, chain(0, 0, 2, 2), w.Lease(id).Transactions())
	require.NoError(t, w.Lease(id).Commit())
	refused = false
	w.restart()
	w.has(StatusUnknown, tx(0, 1, 2))
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

// A restart opens a lease again whose predecessor was released.
func TestRestartWithLeaseBehindAGap(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 5), tx(0, 1, 5))
	one, two := w.drain(Budget{Count: 1}), w.drain(Budget{Count: 1})
	require.NoError(t, one.Release()) // its bundle failed
	require.Equal(t, 1, w.restart().Leases)
	w.stands(0, "pl")
	require.Empty(t, w.drain(Budget{}).Transactions(), "its block would come after that of the next nonce")
	require.NoError(t, w.Lease(two.ID()).Release())
	require.Len(t, w.drain(Budget{}).Transactions(), 2)
}

// No lease takes the number of one that was before the restart.
func TestLeaseNumbersAfterRestart(t *testing.T) {
	for _, rotated := range []bool{false, true} {
		w := newWorld(t)
		w.add(tx(0, 0, 5))
		old := w.drain(Budget{})
		require.NoError(t, old.Commit())
		if rotated {
			w.rotate()
		}
		w.restart()
		w.add(tx(1, 0, 5))
		require.NotEqual(t, old.ID(), w.drain(Budget{}).ID(), "a bundle that was written before the restart names another lease now")
	}
}

// A rejected transaction that comes again is not in the lease that it left. It is
// pending, also after a restart, whether that lease was committed or is open.
func TestRejectedIsNotLeasedAgain(t *testing.T) {
	for want, commits := range map[string]bool{"-p": true, "lp": false} {
		w := newWorld(t, func(c *Config) { c.QuarantineTime = 0 })
		w.add(tx(0, 0, 5), tx(0, 1, 5))
		l := w.drain(Budget{})
		require.NoError(t, l.Reject(tx(0, 1, 5).Hash(), errTest))
		w.add(tx(0, 1, 5))
		if commits {
			require.NoError(t, l.Commit())
		}
		w.stands(0, want)
		w.restart()
		w.stands(0, want)
	}
}

// Whatever run of records Restore reads twice changes nothing.
func TestRecordsTwice(t *testing.T) {
	for name, past := range map[string]func(*world){
		"return": func(w *world) { require.NoError(t, w.drain(Budget{Count: 2}).Return(tx(0, 1, 5).Hash())) },
		"commits and a revert": func(w *world) {
			w.fails(w.commit(Budget{Count: 2}).Transactions...)
			w.commit(Budget{Count: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.add(chain(0, 0, 4, 5)...)
			past(w)
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

// Whatever a journal holds, Restore neither panics nor breaks the pool.
func FuzzRestore(f *testing.F) {
	w := newWorld(f)
	w.add(tx(0, 0, 2), tx(0, 1, 2), tx(1, 3, 2))
	l := w.drain(Budget{Count: 2})
	require.NoError(f, l.Return(tx(0, 1, 2).Hash()))
	require.NoError(f, l.Commit())
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
