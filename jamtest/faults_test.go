package jamtest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
)

// scripted returns a chain with a script and nothing left to chance.
func scripted(t *testing.T, script string, change func(*jamtest.Config)) *jamtest.Chain {
	t.Helper()
	s, err := jamtest.ParseScript(script)
	require.NoError(t, err)
	c, err := jamtest.New(func() jamtest.Config {
		cfg := jamtest.DefaultConfig(jamq.Tiny(), 5)
		cfg.Script = s
		if change != nil {
			change(&cfg)
		}
		return cfg
	}())
	require.NoError(t, err)
	return c
}

// submitAt brings the chain to a slot and submits a package there.
func submitAt(t *testing.T, c *jamtest.Chain, slot jamq.Slot, core jamq.CoreIndex) jamtest.Package {
	t.Helper()
	for c.Slot() < slot {
		c.Advance()
	}
	p := packageAt(t, c, 1, fmt.Sprint("slot ", slot))
	require.NoError(t, c.Submit(p, core, 0))
	return p
}

func TestScriptSkips(t *testing.T) {
	c := scripted(t, "at 3 skip 4", nil)
	var with []jamq.Slot
	for range 10 {
		if u := c.Advance(); len(u.Imported) > 0 {
			with = append(with, u.Slot)
		}
	}
	require.Equal(t, []jamq.Slot{1, 2, 7, 8, 9, 10}, with)
}

func TestScriptLosesDelaysAndHolds(t *testing.T) {
	c := scripted(t, "at 3 lose 1\nat 5 delay 4\nat 7 hold 1", nil)
	lost := submitAt(t, c, 4, 0)
	advance(c, 1)
	late := submitAt(t, c, 5, 0)
	held := submitAt(t, c, 7, 1)
	anchor := c.Height() - 1
	advance(c, 20)
	requireStage(t, c, lost, jamtest.Unreported)
	require.Equal(t, jamq.Slot(10), status(t, c, late).Reported.Slot, "a slot, and four more")
	require.Equal(t, anchor+8, status(t, c, held).Reported.Height, "the last block that may report it")
}

func TestScriptTakesAvailabilityAway(t *testing.T) {
	c := scripted(t, "at 3 unavailable 1\nat 22 verdict 1", nil)
	p := submitAt(t, c, 3, 0)
	advance(c, 8)
	requireStage(t, c, p, jamtest.TimedOut)
	p = submitAt(t, c, 20, 1)
	advance(c, 2)
	requireStage(t, c, p, jamtest.Cleared)
}

func TestScriptForksBackAndForth(t *testing.T) {
	c := scripted(t, "at 10 fork 2\nat 11 reorg\nat 15 reorg", func(cfg *jamtest.Config) { cfg.FinalityLag = 8 })
	heads := []jamq.HeaderHash{}
	reorgs := 0
	parents := map[jamq.HeaderHash]jamq.HeaderHash{}
	for range 30 {
		u := c.Advance()
		for _, b := range u.Imported {
			parents[b.Hash] = b.Parent
		}
		if n := len(heads); n > 0 {
			on := u.Best
			for on != heads[n-1] && parents[on] != (jamq.HeaderHash{}) {
				on = parents[on]
			}
			if on != heads[n-1] {
				reorgs++
			}
		}
		heads = append(heads, u.Best)
	}
	require.GreaterOrEqual(t, reorgs, 2, "there and back")
}

func TestScriptStallsFinality(t *testing.T) {
	c := scripted(t, "at 10 stall 12", nil)
	for c.Slot() < 21 {
		c.Advance()
	}
	require.Equal(t, jamq.Slot(7), c.Finalized().Slot)
	advance(c, 1)
	require.Equal(t, jamq.Slot(20), c.Finalized().Slot)
}

func TestScriptFillsCores(t *testing.T) {
	c := scripted(t, "at 5 fill 3", nil)
	p := submitAt(t, c, 4, 0)
	foreign := 0
	for range 10 {
		for _, b := range c.Advance().Imported {
			for _, r := range b.Reported {
				if r.Package != p.Hash {
					foreign++
				}
			}
		}
	}
	require.Equal(t, 5, foreign, "both cores for three slots, but the one that was taken first")
	requireStage(t, c, p, jamtest.Accumulated)
	require.ErrorIs(t, c.Submit(jamtest.NewPackage(jamtest.ForeignService, p.Context, nil), 0, 0), jamtest.ErrRefused)
}

// Every fault happens by chance as well.
func TestFaultsByChance(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*jamtest.Config)
		seen   func(u jamtest.Update, c *jamtest.Chain) bool
	}{
		"burst": {func(cfg *jamtest.Config) { cfg.SkipProbability, cfg.SkipBurst = 0.1, [2]int{4, 4} },
			func(u jamtest.Update, c *jamtest.Chain) bool {
				return len(u.Imported) > 0 && c.Slot() > 4 && u.Imported[0].Slot-c.Finalized().Slot > 6
			}},
		"foreign": {func(cfg *jamtest.Config) { cfg.ForeignLoad = 0.5 },
			func(u jamtest.Update, _ *jamtest.Chain) bool {
				return len(u.Imported) > 0 && len(u.Imported[0].Accumulated) > 0
			}},
		"stall": {func(cfg *jamtest.Config) { cfg.FinalityStallProbability, cfg.FinalityStall = 0.05, 12 },
			func(_ jamtest.Update, c *jamtest.Chain) bool { return c.Best().Slot-c.Finalized().Slot > 10 }},
	} {
		cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
		test.change(&cfg)
		c, err := jamtest.New(cfg)
		require.NoError(t, err)
		seen := false
		for range 300 {
			seen = test.seen(c.Advance(), c) || seen
		}
		require.True(t, seen, name)
	}
}

func TestParseScript(t *testing.T) {
	s, err := jamtest.ParseScript("# nothing\nat 9 reorg\n  at 3 lose 2 # twice\n\n")
	require.NoError(t, err)
	require.Equal(t, "at 3 lose 2\nat 9 reorg\n", s.String())
	for _, bad := range []string{"at", "at x lose 1", "at 1 dance 1", "at 1 lose", "at 1 lose 0", "at 1 reorg 2", "lose 1 at 2", "at 1 lose 1 2", "at 99999999999 lose 1"} {
		_, err := jamtest.ParseScript(bad)
		require.ErrorIs(t, err, jamtest.ErrInvalidScript, bad)
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add("at 1 lose 2\nat 4 fork 1\nat 5 reorg")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := jamtest.ParseScript(text)
		if err != nil {
			require.ErrorIs(t, err, jamtest.ErrInvalidScript)
			return
		}
		again, err := jamtest.ParseScript(s.String())
		require.NoError(t, err)
		require.Equal(t, s.String(), again.String())
	})
}

func ExampleParseScript() {
	script, _ := jamtest.ParseScript("at 2 skip 3 # three slots without a block")
	cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
	cfg.Script = script
	chain, _ := jamtest.New(cfg)
	for range 5 {
		u := chain.Advance()
		fmt.Print(u.Slot, ":", len(u.Imported), " ")
	}
	// Output: 1:1 2:0 3:0 4:0 5:1
}

// BenchmarkChain10000 authors 10,000 blocks of the tiny chain with busy cores and forks.
func BenchmarkChain10000(b *testing.B) {
	for b.Loop() {
		cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
		cfg.FinalityLag, cfg.MaxForkDepth, cfg.ForkProbability, cfg.ForeignLoad = 4, 3, 0.05, 0.5
		c, err := jamtest.New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		for c.Height() < 10_000 {
			c.Advance()
		}
	}
}
