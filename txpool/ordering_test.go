package txpool

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The fixed-point score is the formula.
func TestByScore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Candidate{
			Tip:  rapid.Uint64().Draw(t, "tip"),
			Size: rapid.Uint64Range(1, 1<<20).Draw(t, "size"),
		}
		waited := time.Duration(rapid.Int64Range(-1, int64(3*time.Hour)).Draw(t, "age"))
		age := min(max(waited, 0), time.Hour).Truncate(time.Millisecond).Seconds()
		want := math.Log1p(float64(c.Tip)/gwei) + 0.15*1024/float64(c.Size) + 0.10*math.Sqrt(age)
		got := float64(ByScore{}.Score(c)+ByScore{}.Bonus(waited)) / (1 << fraction)
		if math.Abs(got-want) > 1e-4 {
			t.Fatalf("score of %+v is %v, want %v", c, got, want)
		}
	})
}

// The weaknesses that its documentation names.
func TestByScoreWeaknesses(t *testing.T) {
	old := ByScore{}.Score(Candidate{Tip: gwei, Size: 110}) + ByScore{}.Bonus(time.Hour)
	rich := ByScore{}.Score(Candidate{Tip: 800 * gwei, Size: 110})
	require.Greater(t, old, rich)
	require.Equal(t, ByScore{Fee: 1000, Size: 150, Age: 100, BaseTip: gwei}.Score(Candidate{Tip: 7}), ByScore{}.Score(Candidate{Tip: 7}))
}

// Any ordering keeps each sender's nonces in order, and drains what it shows.
func TestOwnOrdering(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.Ordering = poorestFirst{} })
	add(t, p, tx(0, 0, 9), tx(0, 1, 1), tx(1, 0, 5), tx(2, 0, 5), tx(3, 0, 2))
	want := hashes([]*types.Transaction{tx(3, 0, 2), tx(1, 0, 5), tx(2, 0, 5), tx(0, 0, 9), tx(0, 1, 1)})
	require.Equal(t, want, hashes(p.Candidates()))
	require.Equal(t, want[:3], hashes(p.Drain(Budget{Count: 3}).Transactions()))
}

type poorestFirst struct{}

func (poorestFirst) Score(c Candidate) int64   { return -int64(c.Tip) }
func (poorestFirst) Bonus(time.Duration) int64 { return 0 }

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
		p.cfg.Ordering = tips{}
		if greedy := hashes(p.Candidates()); !slices.Equal(byIndex, greedy) {
			t.Fatalf("the index gives %v, want %v", byIndex, greedy)
		}
	})
}

// tips is ByTip for the slow way.
type tips struct{}

func (tips) Score(c Candidate) int64   { return ByTip{}.Score(c) }
func (tips) Bonus(time.Duration) int64 { return 0 }

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
	p := newPool(t, newWorld(), func(c *Config) { c.Ordering = new(restless) })
	for i := range 20 {
		add(t, p, tx(i, 0, 2), tx(i, 1, 3))
	}
	require.Len(t, p.Drain(Budget{}).Transactions(), 40)
}

// restless gives a transaction another score each time, and panics if a session
// does not end.
type restless struct{ calls int64 }

func (r *restless) Score(Candidate) int64 {
	if r.calls++; r.calls > 10_000 {
		panic("the session asks forever")
	}
	return r.calls
}

func (*restless) Bonus(time.Duration) int64 { return 0 }
