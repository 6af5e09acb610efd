package txpool

import (
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Any score keeps each sender's nonces in order, and drains what it shows.
func TestOwnScore(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.Score = func(c Candidate) int64 { return -int64(c.Tip) } })
	add(t, p, tx(0, 0, 9), tx(0, 1, 1), tx(1, 0, 5), tx(2, 0, 5), tx(3, 0, 2))
	want := hashes([]*types.Transaction{tx(3, 0, 2), tx(1, 0, 5), tx(2, 0, 5), tx(0, 0, 9), tx(0, 1, 1)})
	require.Equal(t, want, hashes(p.Candidates()))
	require.Equal(t, want[:3], hashes(p.Drain(Budget{Count: 3}).Transactions()))
}

// byTipAndSize is a score by tip, with a bonus for small transactions.
func byTipAndSize(c Candidate) int64 { return int64(c.Tip>>2) - int64(c.Size) }

// Property: if no two transactions pay the same, the index has the order of a
// builder that always takes the best next transaction of any sender.
func TestIndexIsGreedy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := New(DefaultConfig(chainID), newWorld())
		if err != nil {
			t.Fatal(err)
		}
		for _, tip := range rapid.Permutation([]int64{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}).Draw(t, "tips") {
			_ = p.Add(tx(sender(t), rapid.Uint64Range(0, 3).Draw(t, "nonce"), tip))
		}
		byIndex := hashes(p.Candidates())
		p.cfg.Score = func(c Candidate) int64 { return int64(c.Tip >> 1) }
		if greedy := hashes(p.Candidates()); !slices.Equal(byIndex, greedy) {
			t.Fatalf("the index gives %v, want %v", byIndex, greedy)
		}
	})
}

// Pending and sessions give transactions of equal price in the same order: by
// their own arrival, not by that of their sender's first transaction.
func TestPendingIsTheOrderOfASession(t *testing.T) {
	first, second, third := tx(0, 0, 5), tx(1, 0, 5), tx(0, 1, 5)
	p := newPool(t, newWorld(), nil)
	for _, tx := range []*types.Transaction{first, second, third} {
		require.NoError(t, p.Add(tx))
	}
	want := []*types.Transaction{first, second, third}
	require.Equal(t, want, p.Candidates())
	require.Equal(t, want, p.Drain(Budget{}).Transactions())
}

// If the host's score differs each time, only the order suffers. The session takes
// all transactions and ends.
func TestImpureScore(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.Score = new(restless).score })
	for i := range 20 {
		add(t, p, tx(i, 0, 2), tx(i, 1, 3))
	}
	require.Len(t, p.Drain(Budget{}).Transactions(), 40)
}

// restless gives a transaction another score each time, and panics if a session
// does not end.
type restless struct{ calls int64 }

func (r *restless) score(Candidate) int64 {
	if r.calls++; r.calls > 10_000 {
		panic("the session asks forever")
	}
	return r.calls
}
