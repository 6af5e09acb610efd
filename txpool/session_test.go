package txpool

import (
	"context"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// A session takes no transaction of a sender whose earlier one was postponed.
// The postponed one is not exempt from the caps.
func TestSessionPutsSenderAside(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(0, 1, 9), tx(1, 0, 5))
	s := w.build(Budget{})
	w.takes(s, tx(0, 0, 9))
	s.Later()
	w.ends(s, tx(1, 0, 5))
	require.Len(t, s.Skipped(), 2)
	require.Equal(t, []SkipReason{SkipLater, SkipAncestor}, []SkipReason{s.Skipped()[0].Reason, s.Skipped()[1].Reason})
	require.Zero(t, w.Stats().Exempt)
	require.NoError(t, s.Cancel())
	require.Zero(t, w.Stats().Exempt, "there was no bundle")
	w.check()
}

// A transaction that failed is refused, and its sender's next one waits for the
// nonce.
func TestSessionFail(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(0, 1, 9))
	s := w.build(Budget{})
	w.takes(s, tx(0, 0, 9))
	s.Fail(errTest)
	require.Nil(t, s.Next())
	require.ErrorIs(t, w.Add(tx(0, 0, 9)), ErrQuarantined)
	require.NoError(t, s.Cancel())
	w.stands(0, "-q")
}

// A sender's next transaction goes after better ones of senders that the session
// has not visited yet.
func TestSessionVisitsBeforeItTakes(t *testing.T) {
	w := newWorld(t)
	want := []*types.Transaction{tx(0, 0, 20)}
	for i := range 12 {
		want = append(want, tx(1+i, 0, 10))
	}
	want = append(want, tx(0, 1, 1))
	w.add(want...)
	w.ends(w.build(Budget{}), want...)
}

// A newcomer of a sender that the session knows goes after better ones.
func TestSessionFindsThePlaceOfNewcomers(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 10), tx(1, 0, 8))
	s := w.build(Budget{})
	w.takes(s, tx(0, 0, 10))
	w.add(tx(0, 1, 5), tx(2, 0, 9))
	w.ends(s, tx(2, 0, 9), tx(1, 0, 8), tx(0, 1, 5))
}

// A session that has taken everything goes on with newcomers.
func TestNewcomersAfterTheLast(t *testing.T) {
	w := newWorld(t)
	w.add(chain(0, 0, 3, 50)...)
	s := w.build(Budget{})
	w.ends(s, chain(0, 0, 3, 50)...)
	w.add(tx(1, 0, 5))
	w.takes(s, tx(1, 0, 5))
}

// A sender that pays more for its next transaction during a session goes before
// others from then on.
func TestReplacedDuringSession(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(1, 0, 8), tx(2, 0, 5))
	s := w.build(Budget{})
	w.takes(s, tx(0, 0, 9))
	w.add(tx(2, 0, 20), tx(0, 1, 7))
	w.ends(s, tx(2, 0, 20), tx(1, 0, 8), tx(0, 1, 7))
}

// A sender that left during a session does not disturb one that came in its
// place.
func TestSessionWithAReusedAccount(t *testing.T) {
	w := newWorld(t)
	var want []*types.Transaction
	for i := range 20 {
		w.add(tx(i, 0, 10))
		want = append(want, tx(i, 0, 10))
	}
	s := w.build(Budget{})
	w.takes(s, want[0])
	w.remove(want[1])
	w.add(tx(30, 0, 1))
	w.ends(s, append(want[2:], tx(30, 0, 1))...)
}

// A session does not take a transaction that the state does not allow any more,
// and lists it.
func TestSessionReadsAccounts(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(1, 0, 5))
	w.nonce(0, 1)
	s := w.build(Budget{})
	w.ends(s, tx(1, 0, 5))
	require.Len(t, s.Skipped(), 1)
	require.Equal(t, SkipChanged, s.Skipped()[0].Reason)
	require.Equal(t, tx(0, 0, 9).Hash(), s.Skipped()[0].Tx.Hash())
}

// Each answer renews the lease. It does not expire while the session's context
// lives, and expires when that is done. Next then returns nil.
func TestSessionLease(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(1, 0, 5))
	ctx, cancel := context.WithCancel(t.Context())
	s := w.Build(ctx, Budget{})
	require.NotNil(t, s.Next())
	w.advance(30 * time.Second)
	s.Used(txGas, 100)
	require.Equal(t, w.clock().Add(time.Minute), s.Lease().Expires())
	w.advance(2 * time.Minute)
	w.CleanupExpired()
	require.Same(t, s.Lease(), w.Lease(s.Lease().ID()))
	require.Equal(t, w.clock().Add(time.Minute), s.Lease().Expires())
	w.advance(59 * time.Second)
	cancel()
	require.Nil(t, s.Next())
	w.advance(time.Minute - 1)
	w.CleanupExpired()
	require.Same(t, s.Lease(), w.Lease(s.Lease().ID()), "the host has a full lifetime to seal it")
	w.advance(1)
	w.CleanupExpired()
	require.Nil(t, w.Lease(s.Lease().ID()))
	w.check()
}

// A sender's later transactions have the places of their prices when the session
// ends.
func TestPlacesAfterASession(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(0, 1, 9), tx(1, 0, 5))
	s := w.build(Budget{Count: 1})
	w.remove(tx(1, 0, 5))
	w.takes(s, tx(0, 0, 2))
	w.add(tx(2, 0, 6))
	lease, err := s.Seal()
	require.NoError(t, err)
	w.check()
	w.offers(tx(0, 1, 9), tx(2, 0, 6))
	require.NoError(t, lease.Commit())
}

// A session that is open for long remembers no senders that have left, except
// those that it has taken or put aside.
func TestIdleSessionForgets(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(1, 0, 8))
	s := w.build(Budget{})
	w.takes(s, tx(0, 0, 9))
	s.Fail(nil)
	w.takes(s, tx(1, 0, 8))
	for i := range 50 {
		newcomer := tx(2+i, 0, 50)
		w.add(newcomer)
		w.remove(newcomer)
	}
	require.Len(t, s.senders, 2)
	require.Empty(t, s.heads)
	w.add(tx(0, 0, 99), tx(2, 0, 7))
	w.ends(s, tx(2, 0, 7))
}

// A session that has all it may take remembers no newcomers.
func TestFullSessionRemembersNone(t *testing.T) {
	w := newWorld(t, unsigned)
	w.add(plain(0, 0, txGas, 2))
	s := w.build(Budget{Count: 1})
	w.takes(s, plain(0, 0, txGas, 2))
	s.Used(txGas, 100)
	for i := range 500 {
		require.NoError(t, w.Add(plain(1+i, 0, txGas, 3)))
	}
	require.LessOrEqual(t, len(s.senders), 1)
}

// Sessions that a host forgets cost little: at most maxSessions take
// transactions, and one whose budget is used up keeps nothing.
func TestForgottenSessions(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9))
	full := w.build(Budget{Count: 1})
	w.ends(full, tx(0, 0, 9))
	var all []*Session
	for range maxSessions + 3 {
		all = append(all, w.build(Budget{}))
	}
	w.add(tx(1, 0, 9), tx(2, 0, 9))
	require.Len(t, w.core.sessions, maxSessions)
	require.Empty(t, full.senders, "newcomers cost nothing in a session that takes none")
	require.Nil(t, all[2].Next(), "it gave way to later ones")
	require.NotNil(t, all[3].Next())
	require.NoError(t, all[2].Cancel())
	require.NoError(t, full.Commit())
	w.check()
}

// Two sessions never have nonces of two senders in opposite orders. Otherwise
// neither of their blocks could run before the other.
func TestSessionsTieNoKnot(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(1, 0, 8), tx(1, 1, 7), tx(0, 1, 6))
	a, b := w.build(Budget{}), w.build(Budget{})
	w.takes(a, tx(0, 0, 9))
	w.takes(b, tx(1, 0, 8), tx(1, 1, 7))
	w.takes(a, tx(0, 1, 6))
	w.add(tx(1, 2, 5), tx(0, 2, 4))
	w.takes(a, tx(0, 2, 4)) // nonce 1 of the other sender is in a later session
	require.NoError(t, a.Commit())
	require.NoError(t, b.Cancel())
	w.stands(0, "---")
	w.stands(1, "ppp")
}

// When a later session gives a transaction back, the earlier one takes it.
func TestSessionTakesWhatALaterOneReturns(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(0, 1, 8))
	a, b := w.build(Budget{}), w.build(Budget{})
	require.NotNil(t, b.Next())
	require.Nil(t, a.Next(), "nonce 0 is in a later session")
	require.NoError(t, b.Cancel())
	w.takes(a, tx(0, 0, 9), tx(0, 1, 8))
}

// If one session takes a sender's first transaction, one that began later takes
// the next one, in any order.
func TestLaterSessionTakesTheNext(t *testing.T) {
	for _, score := range []func(Candidate) int64{nil, byTipAndSize} {
		w := newWorld(t, by(score))
		w.add(tx(0, 0, 5), tx(0, 1, 5), tx(0, 2, 5))
		first, second := w.build(Budget{}), w.build(Budget{})
		w.takes(first, tx(0, 0, 5))
		w.takes(second, tx(0, 1, 5))
	}
}

// A session passed over a sender's large transaction. When another session has
// taken that one, it takes the next one, which fits.
func TestSessionTakesWhatFollowsALargeOne(t *testing.T) {
	for _, score := range []func(Candidate) int64{nil, byTipAndSize} {
		w := newWorld(t, by(score))
		large := hungry(0, 0, 5, 1_000_000)
		w.add(large, tx(0, 1, 5), tx(1, 0, 4))
		first, second := w.build(Budget{}), w.build(Budget{Gas: 100_000})
		w.takes(second, tx(1, 0, 4))
		second.Used(txGas, 0)
		w.takes(first, large)
		w.takes(second, tx(0, 1, 5))
	}
}

// A session does not take a transaction of a sender after a later one, however the earlier one
// comes back.
func TestSessionTakesNoncesInOrder(t *testing.T) {
	for name, back := range map[string]func(w *world, a *Session){
		"later":  func(_ *world, a *Session) { a.Later() },
		"cancel": func(_ *world, a *Session) { require.NoError(t, a.Cancel()) },
		"release": func(_ *world, a *Session) {
			l, _ := a.Seal()
			require.NoError(t, l.Release())
		},
		"fail": func(w *world, a *Session) {
			a.Fail(nil)
			w.add(tx(0, 0, 20))
		},
		"revert": func(w *world, a *Session) {
			require.NoError(t, a.Commit())
			w.fails(tx(0, 0, 9))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.add(tx(0, 0, 9), tx(0, 1, 8))
			a, b := w.build(Budget{}), w.build(Budget{})
			w.takes(a, tx(0, 0, 9))
			w.takes(b, tx(0, 1, 8))
			back(w, a)
			w.ends(b)
			same(t, chain(0, 1, 1, 8), b.Lease().Transactions())
		})
	}
}
