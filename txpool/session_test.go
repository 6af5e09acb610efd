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
	require.Zero(t, w.Stats().Exempt)
	s.Cancel()
	require.Zero(t, w.Stats().Exempt, "there was no block")
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
	s.Cancel()
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

// A session does not take a transaction that the state does not allow any more.
func TestSessionReadsAccounts(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(1, 0, 5))
	w.nonce(0, 1)
	s := w.build(Budget{})
	w.ends(s, tx(1, 0, 5))
}

// A session whose context is done takes no more transactions. Those that it has stay locked.
func TestSessionContext(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(0, 1, 20), tx(1, 0, 5))
	ctx, cancel := context.WithCancel(t.Context())
	s := w.Build(ctx, Budget{})
	require.NotNil(t, s.Next())
	cancel()
	require.Nil(t, s.Next())
	w.stands(0, "lp")
	s.Cancel()
	w.stands(0, "pp")
}

// The end of a session gives its transactions back. It ends once: Cancel changes nothing in the
// next session.
func TestSessionEnds(t *testing.T) {
	w := newWorld(t)
	w.add(chain(0, 0, 3, 9)...)
	for name, end := range map[string]func(*Session){
		"Cancel": (*Session).Cancel, "Build": func(*Session) { w.build(Budget{}) },
		"Reset": func(s *Session) { w.include(blockOf(tx(1, 0, 20))) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "Reset" {
				w.add(tx(1, 0, 20))
			}
			first := w.build(Budget{})
			if name == "Reset" {
				w.takes(first, tx(1, 0, 20))
			}
			w.takes(first, chain(0, 0, 2, 9)...)
			w.stands(0, "llp")
			end(first)
			w.stands(0, "ppp")
			require.Empty(t, first.Transactions())
			require.Nil(t, first.Next())
			second := w.build(Budget{})
			w.takes(second, tx(0, 0, 9))
			first.Cancel()
			first.Fail(errTest)
			first.Later()
			require.Nil(t, first.Next())
			w.stands(0, "lpp")
		})
	}
}

// T4: a transaction that a session has taken can be neither replaced nor removed, and comes back
// unless it is included or invalid.
func TestT4NoLoss(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 2), tx(1, 0, 3))
	s := w.build(Budget{})
	w.takes(s, tx(1, 0, 3), tx(0, 0, 2), tx(0, 1, 2))
	w.stands(0, "llp")
	w.refuse(tx(0, 1, 9), ErrInBundle, "transaction is in a bundle")
	require.ErrorIs(t, w.Remove(tx(0, 1, 2).Hash()), ErrInBundle)
	s.Later()
	w.stands(0, "lpp")
	s.Cancel()
	w.stands(0, "ppp")
	require.Equal(t, 4, w.Size())
	w.commit(Budget{})
	require.Zero(t, w.Size())
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
	s := w.drain(Budget{})
	require.NoError(t, w.Reject(tx(0, 0, 2).Hash(), errTest))
	require.Equal(t, []error{errTest}, reasons)
	require.ErrorIs(t, w.Reject(tx(0, 0, 2).Hash(), errTest), ErrNotFound)
	s.Cancel()
	w.stands(0, "-q")
	w.refuse(tx(0, 0, 2), ErrQuarantined, "transaction failed in building", "try again in 10m0s")
	w.add(tx(0, 0, 3)) // another one of the same nonce is fine
	w.stands(0, "pp")
	w.advance(10 * time.Minute)
	w.remove(tx(0, 0, 3))
	w.add(tx(0, 0, 2))
	require.NoError(t, w.Reject(tx(0, 1, 2).Hash(), errTest), "without a session too")
}

// Transactions after one that the host rejected during a session are invalid, and
// one that takes its place would come after them.
func TestRejectedDuringSession(t *testing.T) {
	w := newWorld(t)
	w.add(chain(0, 0, 3, 9)...)
	s := w.build(Budget{})
	w.takes(s, chain(0, 0, 2, 9)...)
	require.NoError(t, w.Reject(tx(0, 0, 9).Hash(), errTest))
	w.add(tx(0, 0, 20))
	require.Nil(t, s.Next(), "nonce 0 after nonce 1")
}

// A transaction that takes the place of a rejected one is replaced. Those that follow a locked one
// have their places behind the newcomer.
func TestReplacedBeforeALocked(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(0, 1, 100), tx(0, 2, 100))
	s := w.build(Budget{})
	w.takes(s, tx(0, 0, 2), tx(0, 1, 100))
	require.NoError(t, w.Reject(tx(0, 0, 2).Hash(), errTest))
	w.add(tx(1, 0, 5), tx(0, 0, 3))
	w.stands(0, "plp")
	w.offers(tx(1, 0, 5), tx(0, 0, 3), tx(0, 2, 100))
	w.add(tx(0, 0, 9))
	w.offers(tx(0, 0, 9), tx(0, 2, 100), tx(1, 0, 5))
	s.Cancel()
	w.stands(0, "ppp")
}

// When a session ends, each of its transactions gets its place.
func TestPlacesAfterCancel(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9), tx(0, 1, 2), tx(0, 2, 9), tx(0, 3, 1))
	s := w.build(Budget{})
	w.takes(s, tx(0, 0, 9), tx(0, 1, 2), tx(0, 2, 9))
	s.Cancel()
	w.stands(0, "pppp")
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
	require.Nil(t, s.Next())
	w.check()
	w.offers(tx(0, 1, 9), tx(2, 0, 6))
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

// A session that has ended, and one whose budget is used up, keep nothing.
func TestForgottenSessions(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 9))
	full := w.build(Budget{Count: 1})
	w.ends(full, tx(0, 0, 9))
	w.add(tx(1, 0, 9))
	require.Empty(t, full.senders, "newcomers cost nothing in a session that takes none")
	old := w.build(Budget{})
	w.takes(old, tx(0, 0, 9))
	w.build(Budget{})
	w.add(tx(2, 0, 9))
	require.Empty(t, old.senders)
	w.check()
}

// A session passed over a sender's large transaction. When the sender has replaced that one, it
// takes it and the next one, which fit.
func TestSessionTakesWhatFollowsALargeOne(t *testing.T) {
	for _, score := range []func(Candidate) int64{nil, byTipAndSize} {
		w := newWorld(t, by(score))
		w.add(hungry(0, 0, 5, 1_000_000), tx(0, 1, 5), tx(1, 0, 4))
		s := w.build(Budget{Gas: 100_000})
		w.takes(s, tx(1, 0, 4))
		s.Used(txGas, 0)
		w.add(tx(0, 0, 9))
		w.takes(s, tx(0, 0, 9), tx(0, 1, 5))
	}
}
