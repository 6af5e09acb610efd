package txpool

import (
	"context"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// TestT4NoLoss: a drained transaction comes back unless it was enqueued,
// included or invalid.
func TestT4NoLoss(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 2), tx(1, 0, 3))
	l := w.drain(Budget{Count: 3})
	w.stands(0, "llp")
	w.refuse(tx(0, 1, 9), ErrInBundle, "transaction is in a bundle")
	require.ErrorIs(t, w.Remove(tx(0, 1, 2).Hash()), ErrInBundle)
	require.NoError(t, l.Return(tx(0, 1, 2).Hash()))
	require.ErrorIs(t, l.Return(tx(0, 1, 2).Hash()), ErrNotLeased)
	w.stands(0, "lpp")
	require.NoError(t, l.Release())
	w.stands(0, "ppp")
	require.ErrorIs(t, l.Release(), ErrLeaseClosed)
	require.ErrorIs(t, l.Commit(), ErrLeaseClosed)
	require.ErrorIs(t, l.Reject(tx(0, 0, 2).Hash(), errTest), ErrLeaseClosed)
	require.Equal(t, 4, w.Size())
	l = w.drain(Budget{})
	require.NoError(t, l.Commit())
	require.ErrorIs(t, l.Commit(), ErrLeaseClosed)
	require.Zero(t, w.Size())
	w.check()
}

// The overlay: bundle B-2 goes on where B-1 ends, while that is only submitted; and nonces that
// were committed are used up before the host's state shows it.
func TestOverlay(t *testing.T) {
	w := newWorld(t)
	w.add(chain(0, 0, 6, 2)...)
	first := w.drain(Budget{Count: 2})
	second := w.drain(Budget{Count: 2})
	same(t, chain(0, 2, 2, 2), second.Transactions())
	w.stands(0, "llllpp")
	require.Equal(t, []*Lease{first, second}, w.Leases())
	require.Same(t, second, w.Lease(second.ID()))
	require.NoError(t, first.Commit())
	w.stands(0, "--llpp")
	w.refuse(tx(0, 1, 9), ErrNonceTooLow, "tx: 1 state: 2")
	nonce, _ := w.NextNonce(addr(0))
	require.EqualValues(t, 6, nonce)
	// The second one fails: it comes back, and its place is next.
	require.NoError(t, second.Release())
	w.stands(0, "--pppp")
	// The state catches up; nothing changes.
	w.include(blockOf(chain(0, 0, 2, 2)...))
	w.stands(0, "--pppp")
}

// TestI14Quarantine: a transaction that fails in building leaves and is refused
// for a while; its successors wait.
func TestI14Quarantine(t *testing.T) {
	var reasons []error
	w := newWorld(t, observed(func(e Event) {
		if e.Kind == Dropped {
			reasons = append(reasons, e.Reason)
		}
	}))
	w.add(tx(0, 0, 2), tx(0, 1, 2))
	l := w.drain(Budget{})
	require.NoError(t, l.Reject(tx(0, 0, 2).Hash(), errTest))
	require.Equal(t, []error{errTest}, reasons)
	require.ErrorIs(t, l.Reject(tx(0, 0, 2).Hash(), errTest), ErrNotLeased)
	require.NoError(t, l.Release())
	w.stands(0, "-q")
	w.refuse(tx(0, 0, 2), ErrQuarantined, "transaction failed in building", "try again in 10m0s")
	w.add(tx(0, 0, 3)) // another one of the same nonce is fine
	w.stands(0, "pp")
	w.advance(10 * time.Minute)
	w.remove(tx(0, 0, 3))
	w.add(tx(0, 0, 2))
	require.NoError(t, w.Reject(tx(0, 1, 2).Hash(), errTest), "without a lease too")
	require.ErrorIs(t, w.Reject(tx(0, 1, 2).Hash(), errTest), ErrNotFound)
}

// A leased transaction stays in its lease whatever happens to its predecessors,
// and no transaction overtakes a lower nonce.
func TestLeaseInTheMiddle(t *testing.T) {
	w := newWorld(t, tiny(4, 4))
	w.add(tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 100))
	a, b := w.drain(Budget{Count: 1}), w.drain(Budget{Count: 1})
	require.NoError(t, a.Release())
	w.stands(0, "plp")
	w.offers(tx(0, 0, 2), tx(0, 2, 100))
	l := w.drain(Budget{Count: 1})
	require.Empty(t, l.Transactions(), "its block would come after that of the next nonce")
	require.Equal(t, SkipOrder, l.Skipped()[0].Reason)
	require.NoError(t, l.Release())
	w.add(tx(1, 0, 9), tx(2, 0, 9), tx(3, 0, 9), tx(4, 0, 9)) // only unleased, new ones go
	w.stands(0, "pl-")
	require.Len(t, b.Transactions(), 1)
	require.NoError(t, b.Release())
	w.check()
}

// When a lease is released, each of its transactions gets its place, also behind
// one that was returned before.
func TestReleaseAfterReturn(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(0, 1, 2), tx(0, 2, 9))
	l := w.drain(Budget{})
	require.NoError(t, l.Return(tx(0, 1, 2).Hash()))
	w.check()
	require.NoError(t, l.Release())
	w.stands(0, "ppp")
}

// A leased transaction after one that was removed stays leased.
func TestRemovedBeforeALease(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(0, 1, 9))
	l := w.drain(Budget{})
	require.NoError(t, l.Return(tx(0, 0, 9).Hash()))
	w.remove(tx(0, 0, 9))
	require.Len(t, l.Transactions(), 1)
}

// A leased transaction parks none after it, whatever it pays: it is in a block.
func TestLeasedParksNone(t *testing.T) {
	w := newWorld(t)
	w.add(capped(0, 0, 2, 5), capped(0, 1, 2, 50))
	w.drain(Budget{Count: 1})
	w.baseFee(10)
	w.stands(0, "lp")
}

// A sealed lease gives a transaction back, and the journal refuses the record. The host gets an
// error, because a restart would open the lease with the transaction.
func TestReturnReportsTheJournal(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(1, 0, 8), tx(2, 0, 7))
	l := w.drain(Budget{})
	w.tape.broken = errNoDisk
	require.ErrorIs(t, l.Return(tx(1, 0, 8).Hash()), ErrJournal)
	require.ErrorIs(t, l.Reject(tx(2, 0, 7).Hash(), nil), ErrJournal)
	same(t, []*types.Transaction{tx(0, 0, 9)}, l.Transactions())
	w.tape.broken = nil
	require.NoError(t, w.Flush())
	w.restart()
	require.NoError(t, w.Lease(l.ID()).Commit())
	w.has(StatusPending, tx(1, 0, 8))
}

// A lease that the host closes ends its session. Otherwise the session would
// put more transactions into a lease that nothing closes.
func TestClosedLeaseEndsSession(t *testing.T) {
	for name, closeLease := range map[string]func(*Lease) error{
		"commit": (*Lease).Commit, "release": (*Lease).Release,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first, second := tx(0, 0, 9), tx(1, 0, 5)
			w.add(first, second)
			s := w.build(Budget{})
			w.takes(s, first)
			require.NoError(t, closeLease(s.Lease()))
			require.Nil(t, s.Next())
			w.has(StatusPending, second)
			require.Zero(t, w.Stats().Leased)
			w.check()
		})
	}
}

// A session whose context is done ends when its lease expires, and its sender's
// other transactions get their places again.
func TestExpiredLeaseEndsSession(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(0, 1, 20))
	ctx, cancel := context.WithCancel(context.Background())
	s := w.Build(ctx, Budget{})
	w.takes(s, tx(0, 0, 2))
	cancel()
	w.advance(2 * w.cfg.LeaseLifetime)
	w.CleanupExpired()
	require.Zero(t, w.Stats().Leases)
	require.ErrorIs(t, s.Cancel(), ErrLeaseClosed, "the session has ended")
	w.check()
}

// A transaction that the host returns from the lease of a running session is
// not taken again: it would be in the block twice.
func TestReturnedDuringSession(t *testing.T) {
	w := newWorld(t)
	back, child := tx(0, 0, 9), tx(0, 1, 9)
	w.add(back, child)
	s := w.build(Budget{})
	w.takes(s, back)
	require.NoError(t, s.Lease().Return(back.Hash()))
	require.Nil(t, s.Next())
	require.Empty(t, s.Lease().Transactions())
	require.Equal(t, SkipLater, s.Skipped()[0].Reason)
	require.Equal(t, SkipAncestor, s.Skipped()[1].Reason)
}

// Transactions after one that the host rejected from the lease are invalid, and
// one that takes its place would come after them.
func TestRejectedDuringSession(t *testing.T) {
	for name, reject := range map[string]func(*world, *Session) error{
		"lease": func(_ *world, s *Session) error { return s.Lease().Reject(tx(0, 0, 9).Hash(), errTest) },
		"pool":  func(w *world, _ *Session) error { return w.Reject(tx(0, 0, 9).Hash(), errTest) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.add(chain(0, 0, 3, 9)...)
			s := w.build(Budget{})
			w.takes(s, chain(0, 0, 2, 9)...)
			require.NoError(t, reject(w, s))
			w.add(tx(0, 0, 20))
			require.Nil(t, s.Next(), "nonce 0 after nonce 1")
		})
	}
}
