package jamtest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
)

func inject(t *testing.T, c *jamtest.Chain, text string) {
	t.Helper()
	s, err := jamtest.ParseScript(text)
	require.NoError(t, err)
	c.Inject(s)
}

func TestFaultsChangeWhileTheChainRuns(t *testing.T) {
	c := scripted(t, "", nil)
	before := c.Faults()
	require.Equal(t, jamtest.Faults{ReportLatency: [2]jamq.Slot{1, 1}}, before)

	lossy := before
	lossy.LossProbability = 1
	advance(c, 3)
	require.NoError(t, c.SetFaults(lossy))
	lost := submitAt(t, c, 4, 0)
	require.NoError(t, c.SetFaults(before))
	good := submitAt(t, c, 5, 0)

	slow := before
	slow.ReportLatency = [2]jamq.Slot{4, 4}
	require.NoError(t, c.SetFaults(slow))
	late := submitAt(t, c, 6, 1)
	advance(c, 3)
	requireStage(t, c, late, jamtest.Unreported)
	advance(c, 3)
	requireStage(t, c, lost, jamtest.Unreported)
	requireStage(t, c, good, jamtest.Accumulated)
	requireStage(t, c, late, jamtest.Accumulated)
}

func TestFinalityStopsAndGoesOn(t *testing.T) {
	c := scripted(t, "", nil)
	advance(c, 5)
	require.NoError(t, c.SetFaults(jamtest.Faults{ReportLatency: [2]jamq.Slot{1, 1}, FinalityStopped: true}))
	final := c.Finalized()
	advance(c, 30)
	require.Equal(t, final, c.Finalized())
	require.NoError(t, c.SetFaults(jamtest.Faults{ReportLatency: [2]jamq.Slot{1, 1}}))
	advance(c, 1)
	require.EqualValues(t, c.Slot()-2, c.Finalized().Slot)
}

func TestBadFaultsChangeNothing(t *testing.T) {
	c := scripted(t, "", nil)
	before := c.Faults()
	for _, f := range []jamtest.Faults{
		{LossProbability: 1.1, ReportLatency: [2]jamq.Slot{1, 1}, FinalityStopped: true},
		{SkipProbability: 1, ReportLatency: [2]jamq.Slot{1, 1}},
		{ReportLatency: [2]jamq.Slot{0, 1}},
		{ReportLatency: [2]jamq.Slot{3, 2}},
	} {
		require.ErrorIs(t, c.SetFaults(f), jamtest.ErrInvalidConfig)
		require.Equal(t, before, c.Faults())
	}
}

// An injected reorg is as deep as it says, and the branch that lost is given up at once, so that
// finality goes on.
func TestInjectedReorg(t *testing.T) {
	for depth := 1; depth <= 4; depth++ {
		c := scripted(t, "", func(cfg *jamtest.Config) { cfg.FinalityLag = 5 })
		advance(c, 20)
		old := c.Best()
		inject(t, c, fmt.Sprintf("at 1 fork %d\nat 1 reorg\nat 1 abandon", depth))
		for range depth {
			require.Equal(t, old.Hash, c.Advance().Best, "the branch is not longer yet")
		}
		u := c.Advance()
		require.False(t, c.Contains(u.Best, old.Hash))
		common, _ := c.Locate(old.Hash)
		require.Equal(t, common.Height+1, c.Height())
		require.Len(t, c.Advance().Imported, 1, "one branch is left")
		advance(c, 5)
		require.EqualValues(t, c.Slot()-5, c.Finalized().Slot, "finality goes on")
	}
}

// The script of the configuration goes on beside an injected one.
func TestInjectKeepsTheScript(t *testing.T) {
	c := scripted(t, "at 6 skip 1\nat 9 skip 1", nil)
	advance(c, 4)
	inject(t, c, "at 0 skip 1\nat 4 skip 1")
	var skipped []jamq.Slot
	for range 8 {
		if u := c.Advance(); len(u.Imported) == 0 {
			skipped = append(skipped, u.Slot)
		}
	}
	require.Equal(t, []jamq.Slot{5, 6, 8, 9}, skipped)
}

func TestKill(t *testing.T) {
	never := func(cfg *jamtest.Config) { cfg.AvailabilityLatency = [2]jamq.Slot{3, 3} }
	t.Run("unreported", func(t *testing.T) {
		c := scripted(t, "", never)
		p := submitAt(t, c, 3, 0)
		require.NoError(t, c.Kill(p.Hash))
		require.NoError(t, c.Submit(p, 0, 1), "another guarantor does not help")
		advance(c, 8)
		requireStage(t, c, p, jamtest.Unreported)
	})
	t.Run("on a core", func(t *testing.T) {
		c := scripted(t, "", never)
		p := submitAt(t, c, 3, 0)
		advance(c, 2)
		requireStage(t, c, p, jamtest.OnCore)
		require.NoError(t, c.Kill(p.Hash))
		advance(c, 1)
		requireStage(t, c, p, jamtest.Cleared)
		require.NotEmpty(t, c.Best().Condemned)
		require.ErrorIs(t, c.Kill(p.Hash), jamtest.ErrNotKillable, "it is dead")
	})
	t.Run("too late", func(t *testing.T) {
		c := scripted(t, "", nil)
		p := submitAt(t, c, 3, 0)
		advance(c, 2)
		require.ErrorIs(t, c.Kill(p.Hash), jamtest.ErrNotKillable)
		requireStage(t, c, p, jamtest.Accumulated)
		require.ErrorIs(t, c.Kill(jamq.PackageHash{1}), jamtest.ErrNotKillable, "nobody knows it")
	})
}

// A change is an input: the same calls between the same slots give the same chain.
func TestControlIsDeterministic(t *testing.T) {
	play := func() jamq.HeaderHash {
		c := scripted(t, "", func(cfg *jamtest.Config) { cfg.SkipProbability, cfg.FinalityLag = 0.2, 3 })
		p := submitAt(t, c, 5, 1)
		f := c.Faults()
		f.SkipProbability, f.LossProbability = 0.5, 0.5
		require.NoError(t, c.SetFaults(f))
		inject(t, c, "at 2 fork 2\nat 3 reorg\nat 4 abandon")
		require.NoError(t, c.Kill(p.Hash))
		advance(c, 60)
		return c.Best().Hash
	}
	require.Equal(t, play(), play())
}
