package jamtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
)

// decodeText reads payloads such as "7 a b s6 s7": number, transactions, states before and after.
func decodeText(payload []byte) jamtest.Execution {
	words := strings.Fields(string(payload))
	var e jamtest.Execution
	fmt.Sscan(words[0], &e.Number)
	n := len(words)
	e.Txs, e.PreRoot, e.PostRoot = words[1:n-2], words[n-2], words[n-1]
	return e
}

// observed plays payloads, each in a separate package, to finality.
func observed(t *testing.T, oracle *jamtest.Oracle, payloads ...string) (*jamtest.Oracle, *jamtest.Chain) {
	t.Helper()
	c := newChain(t, nil)
	for i, text := range payloads {
		p := packageAt(t, c, 1, text)
		p = jamtest.NewPackage(rollup, p.Context, []byte(text))
		require.NoError(t, c.Submit(p, jamq.CoreIndex(i%2), 0))
		for range 3 {
			oracle.Observe(c.Advance())
		}
	}
	for range 6 {
		oracle.Observe(c.Advance())
	}
	return oracle, c
}

func TestOracleIsContent(t *testing.T) {
	oracle := jamtest.NewOracle(rollup, decodeText)
	oracle.Expect("a", "b", "c")
	oracle, c := observed(t, oracle, "1 a b s0 s1", "2 c s1 s2")
	v := oracle.Check()
	require.True(t, v.OK(), v.String())
	require.Equal(t, []uint64{1, 2}, v.Blocks)
	at, err := oracle.CheckAt(c, c.Best().Hash)
	require.NoError(t, err)
	require.True(t, at.OK())
	_, err = oracle.CheckAt(c, jamq.HeaderHash{9})
	require.ErrorIs(t, err, jamtest.ErrUnknownBlock)
}

func TestOracleFindsWhatIsWrong(t *testing.T) {
	oracle := jamtest.NewOracle(rollup, decodeText)
	oracle.Expect("a", "b", "c", "d")
	oracle, _ = observed(t, oracle, "1 b s0 s1", "2 a s1 s2", "2 a x s1 s2")
	v := oracle.Check()
	require.Equal(t, []string{"a"}, v.Twice)
	require.Equal(t, []string{"c", "d"}, v.Lost)
	require.Equal(t, []string{"x"}, v.Unexpected)
	require.Equal(t, []string{"a"}, v.Disorder)
	require.Equal(t, "3 transactions in 3 blocks; 1 twice: a; 2 lost: c d; 1 unexpected: x; 1 out of order: a", v.String())
}

// A service that defends itself applies each rollup block once, in order, whatever it is given.
func TestGuardedService(t *testing.T) {
	oracle := jamtest.NewOracle(rollup, decodeText)
	oracle.Guarded = true
	oracle.Expect("a", "b", "c")
	oracle, _ = observed(t, oracle, "1 a s0 s1", "3 c s2 s3", "1 a s0 s1", "2 wrong sX sY", "2 b s1 s2")
	v := oracle.Check()
	require.True(t, v.OK(), v.String())
	require.Equal(t, []uint64{1, 2, 3}, v.Blocks)
}

// Whatever a feed does, a host that fetches missing parents receives every block.
func TestFeedLosesNothingForEver(t *testing.T) {
	feed, err := jamtest.NewFeed(jamtest.FeedFaults{Duplicate: 0.2, Late: 0.2, Batch: 0.2, Miss: 0.2}, 3)
	require.NoError(t, err)
	c := newChain(t, func(cfg *jamtest.Config) {
		cfg.FinalityLag, cfg.MaxForkDepth, cfg.ForkProbability = 4, 3, 0.2
	})
	known := map[jamq.HeaderHash]bool{}
	for b, ok := c.Best(), true; ok; b, ok = c.Block(b.Parent) {
		known[b.Hash] = true
	}
	missed, twice, batches := 0, 0, 0
	hear := func(updates []jamtest.Update) {
		if len(updates) > 1 {
			batches++
		}
		for _, u := range updates {
			for _, b := range u.Imported {
				if known[b.Hash] {
					twice++
				}
				for parent := b.Parent; !known[parent]; {
					p, ok := c.Block(parent)
					require.True(t, ok)
					known[parent], parent = true, p.Parent
					missed++
				}
				known[b.Hash] = true
			}
		}
	}
	for range 500 {
		hear(feed.Push(c.Advance()))
	}
	hear(feed.Flush())
	require.Positive(t, missed)
	require.Positive(t, twice)
	require.Positive(t, batches)
	for h := c.Best(); h.Slot > 0; h, _ = c.Block(h.Parent) {
		require.True(t, known[h.Hash] || h.Hash == c.Best().Hash)
	}
	_, err = jamtest.NewFeed(jamtest.FeedFaults{Late: 2}, 0)
	require.ErrorIs(t, err, jamtest.ErrInvalidConfig)
}
