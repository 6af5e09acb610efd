package txpool

import (
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// A failed journal is tried again by the next Add, which changes nothing while
// the journal fails, alone or in a batch. Missed records are written first.
func TestJournalRecovers(t *testing.T) {
	w := newWorld(t, tiny(4, 4))
	for i := range 4 {
		w.add(tx(i, 0, 5))
	}
	w.tape.broken = errNoDisk
	require.ErrorIs(t, w.Add(tx(0, 0, 9)), ErrJournal) // this is how the pool finds out
	for i := range 4 {
		w.refuse(tx(i, 0, 10), ErrJournal, errNoDisk.Error())
		before := w.Stats()
		for _, err := range w.AddAll([]*types.Transaction{tx(10+i, 0, 10), tx(20+i, 0, 10)}) {
			require.ErrorIs(t, err, ErrJournal)
		}
		require.Equal(t, before, w.Stats())
	}
	l := w.drain(Budget{Count: 1})
	w.refuseCommit(l, 0) // a commit is in the journal first
	require.Len(t, l.Transactions(), 1)
	require.NoError(t, l.Commit())
	w.add(tx(20, 0, 7))
	before := w.Candidates()
	require.Empty(t, w.restart().Poisoned)
	w.offers(before...)
}

// A newcomer that the journal cannot record displaces no transaction: those
// that it replaced or evicted are in the pool again, now and after a restart.
func TestRefusedByTheJournal(t *testing.T) {
	for name, newcomer := range map[string]*types.Transaction{"replaces": tx(0, 0, 9), "evicts": tx(1, 0, 9)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tiny(2, 4))
			old := []*types.Transaction{tx(0, 0, 5), tx(0, 1, 5)}
			w.add(old...)
			w.tape.broken = errNoDisk
			require.ErrorIs(t, w.Add(newcomer), ErrJournal)
			for i := range 2 {
				w.has(StatusUnknown, newcomer)
				w.has(StatusPending, old...)
				w.tape.broken = nil
				require.ErrorIs(t, w.Add(old[0]), ErrAlreadyKnown)
				w.add(tx(5+i, 9, 5)) // the journal works again
				w.restart()
			}
		})
	}
}

// A newcomer that the journal cannot record has evicted the only transaction of a
// sender. That one comes back as its sender's, and is private as before.
func TestDisplacedStaysPrivate(t *testing.T) {
	for _, private := range []bool{false, true} {
		w := newWorld(t, tiny(1, 1))
		old := tx(0, 0, 5)
		if private {
			w.addPrivate(old)
		} else {
			w.add(old)
		}
		w.tape.broken = errNoDisk
		require.ErrorIs(t, w.Add(tx(1, 0, 9)), ErrJournal)
		w.has(StatusPending, old)
		pending, _ := w.ContentFrom(addr(0))
		require.Equal(t, private, len(pending) == 0)
		require.Equal(t, private, len(w.Candidates()) == 0)
		next, known := w.NextNonce(addr(0))
		require.True(t, known)
		require.EqualValues(t, 1, next)
	}
}

// A transaction that was refused because the journal fails does not wait for the
// journal.
func TestMemoryWhileJournalFails(t *testing.T) {
	w := newWorld(t)
	w.tape.broken = errNoDisk
	last := 0 // bytes of the last write
	w.tape.before = func(records [][]byte) { last = len(slices.Concat(records...)) }
	var batch []*types.Transaction
	for i := range 50 {
		batch = append(batch, padded(i, 0, 5, 10_000))
	}
	w.AddAll(batch)
	first := last
	for range 10 {
		w.AddAll(batch)
	}
	require.Less(t, last, 2*first, "bytes that wait for the journal, of transactions that were all refused")
}
