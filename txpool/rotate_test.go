package txpool

import (
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/wait"
)

// A host can begin a new journal, from which a restart gives the same pool.
func TestRotate(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.add(chain(i, 0, 3, int64(5+i))...)
	}
	w.add(tx(3, 3, 2))
	committed, open := w.drain(Budget{Count: 2}), w.drain(Budget{Count: 3})
	require.NoError(t, committed.Commit())
	require.NoError(t, open.Return(open.Transactions()[2].Hash()))
	before, leased := w.Stats(), open.Transactions()
	w.rotate()
	require.Len(t, w.tape.records, 2+2+8+1, "the last lease's number, prices, committed and other transactions, the lease")
	require.Equal(t, Restored{Transactions: 8, Leases: 1}, w.restart())
	require.Equal(t, before, w.Stats())
	same(t, leased, w.Lease(open.ID()).Transactions())
}

// Rotate copies all senders, in the order of arrival, and the pool continues
// with the new journal.
func TestRotateCopiesAll(t *testing.T) {
	w := newWorld(t)
	var all []*types.Transaction
	for i := range 63 {
		all = append(all, tx(62-i, 0, 5))
	}
	w.add(all...)
	old := w.tape
	w.rotate()
	written := len(old.records)
	w.add(tx(63, 0, 5))
	require.Len(t, old.records, written)
	w.restart()
	w.offers(append(all, tx(63, 0, 5))...)
}

// Calls that change the pool wait while a new journal is written, which then gets
// their changes. Readers do not wait.
func TestRotateFollowsChanges(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 5))
	added := make(chan error)
	old, next := w.tape, new(tape)
	next.before = func([][]byte) {
		next.before = nil
		go func() { added <- w.Add(tx(1, 0, 5)) }()
		wait.Until(t, func() bool { return w.Get(tx(1, 0, 5).Hash()) != nil }, "a newcomer to enter")
	}
	require.NoError(t, w.Rotate(next))
	require.NoError(t, <-added)
	require.Len(t, old.records, 1)
	w.tape = next
	w.restart()
	require.Equal(t, 2, w.Size())
}

// A session that still takes transactions is not in a new journal. Its commit is.
func TestRotateDuringSession(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 5))
	s := w.build(Budget{})
	w.takes(s, tx(0, 0, 5))
	w.rotate()
	running := w.Pool
	w.restart()
	require.Empty(t, w.Leases())
	w.stands(0, "p")
	w.Pool = running
	w.rotate()
	require.NoError(t, s.Commit())
	w.restart()
	require.Zero(t, w.Size())
}

// If the new journal refuses the records, the pool continues with the old one, and the
// next Rotate succeeds.
func TestRotateFails(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 5))
	require.ErrorIs(t, w.Rotate(&tape{broken: errNoDisk}), ErrJournal)
	w.add(tx(0, 1, 5))
	for range 2 {
		w.restart()
		w.stands(0, "pp")
		w.rotate()
	}
}

// Rotate copies a pool that has a newcomer, which the old journal then refuses. The
// new journal has the transaction that came back for it.
func TestRotateDuringARefusedAdd(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 5))
	batch := []candidate{{tx: tx(0, 0, 9)}}
	w.examine(batch, w.clock().UnixNano())
	w.enter()
	require.Equal(t, 1, w.core.admitSome(batch)) // as in Add, before it writes
	w.mu.Unlock()
	w.tape.broken = errNoDisk
	err := w.writeDown()
	require.Error(t, err)
	w.rotate()
	w.withdraw(batch, journalError(err))
	require.ErrorIs(t, batch[0].err, ErrJournal)
	w.has(StatusPending, tx(0, 0, 5))
	w.add(tx(1, 0, 5)) // the old journal's failure is over
	w.restart()
	w.has(StatusPending, tx(0, 0, 5))
}
