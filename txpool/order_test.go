package txpool

import (
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// byTipAndSize is a score by tip, with a bonus for small transactions.
func byTipAndSize(c Candidate) int64 { return int64(c.Tip>>2) - int64(c.Size) }

// restless gives a transaction another score each time, and panics if a session
// does not end.
type restless struct{ calls int64 }

func (r *restless) score(Candidate) int64 {
	if r.calls++; r.calls > 10_000 {
		panic("the session asks forever")
	}
	return r.calls
}

// firstByTip is the order by tip, with first transactions of a sender before all
// others.
func firstByTip(c Candidate) int64 {
	if c.Tx.Nonce() == 0 {
		return int64(c.Tip) + 1000*gwei
	}
	return int64(c.Tip)
}

// TestT3Deterministic: equal pools and budgets, equal drains, whatever the order of maps.
func TestT3Deterministic(t *testing.T) {
	pools := [4]*world{}
	for k := range pools {
		w := newWorld(t)
		for n := range 5 {
			for i := range 20 {
				w.add(tx(i, uint64(n), int64(1+(i*7+n*3)%5)))
			}
		}
		pools[k] = w
	}
	first := pools[0].drain(Budget{Count: 50, Gas: 1_000_000})
	require.Len(t, first.Transactions(), 47)
	for _, w := range pools[1:] {
		again := w.drain(Budget{Count: 50, Gas: 1_000_000})
		same(t, first.Transactions(), again.Transactions())
	}
}

// Best first, per sender by nonce; a rich child follows its poor parent at once.
func TestOrder(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 0, 2), tx(0, 1, 9), tx(1, 0, 5), tx(2, 0, 5), tx(3, 0, 2), tx(1, 1, 1))
	want := []*types.Transaction{tx(1, 0, 5), tx(2, 0, 5), tx(0, 0, 2), tx(0, 1, 9), tx(3, 0, 2), tx(1, 1, 1)}
	w.offers(want...)
	w.ends(w.build(Budget{}), want...)
}

// Any score keeps each sender's nonces in order, and drains what it shows.
func TestOwnScore(t *testing.T) {
	w := newWorld(t, by(func(c Candidate) int64 { return -int64(c.Tip) }))
	w.add(tx(0, 0, 9), tx(0, 1, 1), tx(1, 0, 5), tx(2, 0, 5), tx(3, 0, 2))
	want := []*types.Transaction{tx(3, 0, 2), tx(1, 0, 5), tx(2, 0, 5), tx(0, 0, 9), tx(0, 1, 1)}
	w.offers(want...)
	same(t, want[:3], w.drain(Budget{Count: 3}).Transactions())
}

// Property: if no two transactions pay the same, the index has the order of a
// builder that always takes the best next transaction of any sender.
func TestIndexIsGreedy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for _, tip := range rapid.Permutation([]int64{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}).Draw(t, "tips") {
			_ = w.Add(tx(rapid.IntRange(0, 4).Draw(t, "sender"), rapid.Uint64Range(0, 3).Draw(t, "nonce"), tip))
		}
		byIndex := offered(w)
		w.cfg.Score = func(c Candidate) int64 { return int64(c.Tip >> 1) }
		same(t, offered(w), byIndex)
	})
}

// Pending and sessions give transactions of equal price in the same order: by
// their own arrival, not by that of their sender's first transaction.
func TestPendingIsTheOrderOfASession(t *testing.T) {
	want := []*types.Transaction{tx(0, 0, 5), tx(1, 0, 5), tx(0, 1, 5)}
	w := newWorld(t)
	w.add(want...)
	w.offers(want...)
	w.ends(w.build(Budget{}), want...)
}

// If the host's score differs each time, only the order suffers. The session takes
// all transactions and ends.
func TestImpureScore(t *testing.T) {
	w := newWorld(t, by(new(restless).score))
	for i := range 20 {
		w.add(tx(i, 0, 2), tx(i, 1, 3))
	}
	require.Len(t, w.drain(Budget{}).Transactions(), 40)
}

// The best few by a Score are the same whether a session finds them by its heap or
// Candidates sorts everything.
func TestSessionFollowsTheScore(t *testing.T) {
	w := newWorld(t, by(func(c Candidate) int64 { return int64(c.Tip/gwei) % 7 }))
	for i := range 60 {
		w.add(tx(i, 0, int64(1+i*17%41)), tx(i, 1, int64(1+i*29%41)))
	}
	for i := 0; i < 60; i += 7 {
		w.remove(tx(i, 1, int64(1+i*29%41)))
	}
	w.check()
	all := offered(w)
	for _, count := range []int{1, 5, 30} {
		same(t, all[:count], w.drain(Budget{Count: count}).Transactions())
	}
}

// A score follows the base fee, also that of a transaction whose place in the
// pool does not change, because an earlier one of its sender pays less.
func TestScoreFollowsBaseFee(t *testing.T) {
	w := newWorld(t, by(firstByTip))
	child, other := capped(0, 1, 50, 50), capped(1, 1, 12, 90)
	w.add(capped(0, 0, 1, 90), child, capped(1, 0, 1, 90), other)
	w.baseFee(40) // the child's tip is 10 now
	same(t, []*types.Transaction{other, child}, w.drain(Budget{}).Transactions()[2:])
}
