package txpool

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// refuseCommit commits a session or a lease while the tape fails. The tape keeps a
// number of the records.
func (w *world) refuseCommit(c interface{ Commit() error }, keeps int) {
	w.t.Helper()
	w.tape.broken, w.tape.keeps = errNoDisk, keeps
	require.ErrorIs(w.t, c.Commit(), ErrJournal)
	w.tape.broken = nil
	w.check()
}

// A commit is one record before the pool changes, and another one when it is
// complete.
func TestRecordsOfCommit(t *testing.T) {
	for sealed, want := range map[bool][]string{false: {"M", "C"}, true: {"O", "M", "C"}} {
		w := newWorld(t)
		w.add(tx(0, 0, 9), tx(0, 1, 9))
		s := w.build(Budget{})
		w.ends(s, tx(0, 0, 9), tx(0, 1, 9))
		var writes []string
		w.tape.before = func(records [][]byte) {
			kinds := ""
			for _, r := range records {
				kinds += string(r[:1])
			}
			writes = append(writes, kinds)
		}
		if sealed {
			_, err := s.Seal()
			require.NoError(t, err)
		}
		require.NoError(t, s.Commit())
		require.Equal(t, want, writes)
	}
}

// A lease whose commit the journal refused changes nothing and does not expire,
// because its transactions may be in a bundle.
func TestRefusedCommitDoesNotExpire(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9))
	l := w.drain(Budget{})
	w.refuseCommit(l, 0)
	require.Len(t, l.Transactions(), 1)
	w.advance(10 * time.Minute)
	w.CleanupExpired()
	require.Same(t, l, w.Lease(l.ID()))
	require.Len(t, l.Transactions(), 1)
	require.NoError(t, l.Commit())
	require.Zero(t, w.Size())
}

// After a commit that failed, the lease is open, and the error of Cancel is not
// that of a closed one.
func TestCancelAfterFailedCommit(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9))
	s := w.build(Budget{})
	w.takes(s, tx(0, 0, 9))
	w.refuseCommit(s, 0)
	err := s.Cancel()
	require.ErrorIs(t, err, ErrSessionEnded)
	require.NotErrorIs(t, err, ErrLeaseClosed)
	require.NoError(t, s.Lease().Release())
	require.ErrorIs(t, s.Cancel(), ErrLeaseClosed)
	w.stands(0, "p")
}

// A transaction that was returned from a lease leaves when the commit of a later
// one uses its nonce.
func TestCommitUsesEarlierNonces(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(0, 1, 9))
	l := w.drain(Budget{})
	require.NoError(t, l.Return(tx(0, 0, 9).Hash()))
	require.NoError(t, l.Commit())
	require.Zero(t, w.Size())
	w.check()
}

// A transaction that another goroutine returns or rejects while the journal
// writes the commit of its lease is in the same place after a restart.
func TestReturnDuringCommit(t *testing.T) {
	first := tx(0, 0, 5)
	for name, change := range map[string]func(*world, *Lease) error{
		"return": func(_ *world, l *Lease) error { return l.Return(first.Hash()) },
		"reject": func(_ *world, l *Lease) error { return l.Reject(first.Hash(), errTest) },
		"pool":   func(w *world, _ *Lease) error { return w.Reject(first.Hash(), errTest) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.add(first)
			l := w.drain(Budget{})
			done := make(chan error, 1)
			w.tape.before = func([][]byte) {
				w.tape.before = nil
				go func() { done <- change(w, l) }()
				for range 10_000 {
					runtime.Gosched() // it changes the pool, unless it waits
				}
			}
			require.NoError(t, l.Commit())
			<-done // an error, or nil
			old := w.Pool
			w.restart()
			require.NoError(t, sameContent(old, w.Pool))
		})
	}
}

// A commit that the journal refused is repeated after the host has given a
// transaction back. The transaction is in the pool then, and after a restart.
func TestReturnedBetweenCommits(t *testing.T) {
	for name, sealed := range map[string]bool{"sealed": true, "not sealed": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			kept, back := tx(0, 0, 9), tx(1, 0, 5)
			w.add(kept, back)
			s := w.build(Budget{})
			w.ends(s, kept, back)
			if sealed {
				_, err := s.Seal()
				require.NoError(t, err)
			}
			w.refuseCommit(s, 0)
			require.NoError(t, s.Lease().Return(back.Hash()))
			require.NoError(t, s.Lease().Commit())
			w.has(StatusPending, back)
			w.restart()
			w.has(StatusPending, back)
			w.has(StatusUnknown, kept)
		})
	}
}

// A commit that is repeated and then torn opens the lease again with each
// transaction once.
func TestTornRepeatedCommit(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9))
	s := w.build(Budget{})
	w.takes(s, tx(0, 0, 9))
	w.refuseCommit(s, 0)
	before := len(w.tape.records)
	require.NoError(t, s.Commit())
	w.tape.records = w.tape.records[:before+1] // the commit was begun
	w.restart()
	require.Len(t, w.Leases(), 1)
	require.Len(t, w.Leases()[0].Transactions(), 1)
}

// A commit that was not acknowledged is harmless, whatever the journal kept of it:
// its transaction is in the pool after it comes back. If it was rejected instead,
// its nonce is free, and the next transaction with that nonce is in the pool.
func TestTornCommitIsHarmless(t *testing.T) {
	for keeps := range 4 {
		for _, rejected := range []bool{false, true} {
			w := newWorld(t)
			waits := tx(0, 0, 5)
			w.add(waits)
			s := w.build(Budget{})
			w.takes(s, waits)
			w.refuseCommit(s, keeps)
			if rejected {
				require.NoError(t, s.Lease().Reject(waits.Hash(), nil))
			}
			require.NoError(t, s.Lease().Release())
			if rejected {
				waits = tx(0, 0, 6)
				w.add(waits)
			}
			w.has(StatusPending, waits)
			require.Empty(t, w.restart().Displaced)
			require.Equal(t, StatusPending, w.Status(waits.Hash()), "the restart lost it; %d records were kept", keeps)
		}
	}
}

// The process ends after any record of a commit. The lease is open again until the
// commit is complete, and nothing is leased twice.
func TestCommitCutAtEachRecord(t *testing.T) {
	for cut, want := range []string{"llp", "llp", "--p"} {
		w := newWorld(t)
		w.add(chain(0, 0, 3, 10)...)
		l := w.drain(Budget{Count: 2})
		before := len(w.tape.records)
		require.NoError(t, l.Commit())
		require.Len(t, w.tape.records, before+2)
		w.tape.records = w.tape.records[:before+cut]
		require.Empty(t, w.restart().Displaced)
		w.stands(0, want)
		same(t, chain(0, 2, 1, 10), w.drain(Budget{}).Transactions())
		if open := w.Lease(l.ID()); open != nil {
			require.NoError(t, open.Commit())
		}
		w.stands(0, "--l")
		w.refuse(tx(0, 1, 20), ErrNonceTooLow)
	}
}
