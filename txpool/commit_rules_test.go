package txpool

import (
	"context"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/wait"
)

// appends is a journal that lists the kinds of the records of each write.
type appends struct {
	memory
	writes []string
}

func (a *appends) Append(records ...[]byte) error {
	if err := a.memory.Append(records...); err != nil {
		return err
	}
	kinds := ""
	for _, r := range records {
		kinds += string(r[:1])
	}
	a.writes = append(a.writes, kinds)
	return nil
}

// A commit is one record before the pool changes, and another one when it is
// complete.
func TestRecordsOfCommit(t *testing.T) {
	for sealed, want := range map[bool][]string{false: {"M", "C"}, true: {"O", "M", "C"}} {
		j := new(appends)
		p := newPool(t, newWorld(), func(c *Config) { c.Journal = j })
		add(t, p, tx(0, 0, 9), tx(0, 1, 9))
		j.writes = nil
		s := p.Build(context.Background(), Budget{})
		for s.Next() != nil {
		}
		if sealed {
			_, err := s.Seal()
			require.NoError(t, err)
		}
		require.NoError(t, s.Commit())
		require.Equal(t, want, j.writes)
	}
}

// A lease whose commit the journal refused changes nothing and does not expire,
// because its transactions may be in a bundle.
func TestRefusedCommitDoesNotExpire(t *testing.T) {
	w, m := newWorld(), new(memory)
	p := newPool(t, w, journaled(m))
	add(t, p, tx(0, 0, 9))
	l := p.Drain(Budget{})
	m.broken = errNoDisk
	require.ErrorIs(t, l.Commit(), ErrJournal)
	require.Len(t, l.Transactions(), 1)
	w.advance(10 * time.Minute)
	p.CleanupExpired()
	require.Same(t, l, p.Lease(l.ID()))
	require.Len(t, l.Transactions(), 1)
	m.broken = nil
	require.NoError(t, l.Commit())
	require.Zero(t, p.Size())
}

// A transaction that was returned from a lease leaves when the commit of a later
// one uses its nonce.
func TestCommitUsesEarlierNonces(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, tx(0, 0, 9), tx(0, 1, 9))
	l := p.Drain(Budget{})
	require.NoError(t, l.Return(tx(0, 0, 9).Hash()))
	require.NoError(t, l.Commit())
	require.Zero(t, p.Size())
	require.NoError(t, p.Check())
}

// A reverted transaction costs nothing although its account cannot be read.
func TestRevertedCostsNothing(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 10), tx(0, 1, 10))
	require.NoError(t, p.Drain(Budget{Count: 1}).Commit())
	w.broken[addr(0)] = errNoDisk
	require.Len(t, p.Reset(Head{Reverted: []Block{blockOf(tx(0, 0, 10))}}), 1)
	require.NoError(t, p.Check())
}

// restart returns a pool that a journal restored.
func restart(t *testing.T, w *world, m *memory) *Pool {
	t.Helper()
	p := newPool(t, w, journaled(m))
	_, err := p.Restore(m.replay)
	require.NoError(t, err)
	require.NoError(t, p.Check())
	return p
}

// Rotate copies all senders, in the order of arrival, and the pool continues
// with the new journal.
func TestRotateCopiesAll(t *testing.T) {
	w, old, next := newWorld(), new(memory), new(memory)
	p := newPool(t, w, journaled(old))
	var all []*types.Transaction
	for i := range 63 {
		all = append(all, tx(62-i, 0, 5))
	}
	add(t, p, all...)
	require.NoError(t, p.Rotate(next))
	written := len(old.records)
	add(t, p, tx(63, 0, 5))
	require.Len(t, old.records, written)
	require.Equal(t, hashes(append(all, tx(63, 0, 5))), hashes(restart(t, w, next).Candidates()))
}

// Calls that change the pool wait while a new journal is written, which then gets
// their changes. Readers do not wait.
func TestRotateFollowsChanges(t *testing.T) {
	w, old, next := newWorld(), new(memory), new(hooked)
	p := newPool(t, w, journaled(old))
	add(t, p, tx(0, 0, 5))
	added := make(chan error)
	next.before = func(write int) {
		if write == 1 {
			go func() { added <- p.Add(tx(1, 0, 5)) }()
			wait.Until(t, func() bool { return p.Get(tx(1, 0, 5).Hash()) != nil }, "a newcomer to enter")
		}
	}
	require.NoError(t, p.Rotate(next))
	require.NoError(t, <-added)
	require.Len(t, old.records, 1)
	require.Equal(t, 2, restart(t, w, &next.memory).Size())
}

// hooked is a journal that calls a function before each write.
type hooked struct {
	memory
	before func(write int)
	writes int
}

func (h *hooked) Append(records ...[]byte) error {
	h.writes++
	h.before(h.writes)
	return h.memory.Append(records...)
}

// A session that still takes transactions is not in a new journal. Its commit is.
func TestRotateDuringSession(t *testing.T) {
	w, next := newWorld(), new(memory)
	p := newPool(t, w, journaled(new(memory)))
	add(t, p, tx(0, 0, 5))
	s := p.Build(context.Background(), Budget{})
	require.NotNil(t, s.Next())
	require.NoError(t, p.Rotate(next))
	again := restart(t, w, next)
	require.Empty(t, again.Leases())
	require.Equal(t, 1, again.Stats().Pending)
	next = new(memory)
	require.NoError(t, p.Rotate(next))
	require.NoError(t, s.Commit())
	require.Zero(t, restart(t, w, next).Size())
}

// If the new journal refuses the records, the pool continues with the old one, and the
// next Rotate succeeds.
func TestRotateFails(t *testing.T) {
	w, old, next := newWorld(), new(memory), &memory{broken: errNoDisk}
	p := newPool(t, w, journaled(old))
	add(t, p, tx(0, 0, 5))
	require.ErrorIs(t, p.Rotate(next), ErrJournal)
	add(t, p, tx(0, 1, 5))
	require.Equal(t, 2, restart(t, w, old).Size())
	next.broken = nil
	require.NoError(t, p.Rotate(next))
	require.Equal(t, 2, restart(t, w, next).Size())
}

// Rotate copies a pool that has a newcomer, which the old journal then refuses. The
// new journal has the transaction that came back for it.
func TestRotateDuringARefusedAdd(t *testing.T) {
	w, old := newWorld(), new(memory)
	p := newPool(t, w, journaled(old))
	add(t, p, tx(0, 0, 5))
	batch := []candidate{{tx: tx(0, 0, 9)}}
	p.examine(batch, p.clock())
	p.enter()
	require.Equal(t, 1, p.core.admitSome(batch)) // as in Add, before it writes
	p.mu.Unlock()
	old.broken = errNoDisk
	err := p.writeDown()
	require.Error(t, err)
	next := new(memory)
	require.NoError(t, p.Rotate(next))
	p.withdraw(batch, journalError(err))
	require.ErrorIs(t, batch[0].err, ErrJournal)
	require.Equal(t, StatusPending, p.Status(tx(0, 0, 5).Hash()))
	require.Equal(t, StatusPending, restart(t, w, next).Status(tx(0, 0, 5).Hash()))
	add(t, p, tx(1, 0, 5)) // the old journal's failure is over
}
