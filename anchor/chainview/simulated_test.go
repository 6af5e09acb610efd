package chainview_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/internal/repeat"
	"github.com/jamq/jamq/jamtest"
)

// simulatedSpec returns the constants of the chain of a seed.
func simulatedSpec(seed uint64) jamq.ChainSpec {
	spec := jamq.Tiny()
	if seed%2 == 1 {
		spec.Cores, spec.Validators = 4, 12
	}
	return spec
}

// adversarial returns a chain with every fault, drawn from its seed.
func adversarial(t *testing.T, seed uint64) *jamtest.Chain {
	t.Helper()
	spec := simulatedSpec(seed)
	cfg := jamtest.DefaultConfig(spec, seed)
	if seed%2 == 1 { // a chain of Gray Paper 0.8.0
		cfg.SetSizes = []int{12, 6, 9, 9}
	}
	pick := func(n uint64, shift uint) uint64 { return (seed*0x9e3779b97f4a7c15 + 12345) >> shift % n }
	cfg.SkipProbability, cfg.SkipBurst = float64(pick(4, 8))/20, [2]int{1, 1 + int(pick(8, 12))}
	cfg.LossProbability = float64(pick(5, 16)) / 10
	cfg.LastMomentProbability = float64(pick(3, 20)) / 5
	cfg.UnavailableProbability, cfg.VerdictProbability = float64(pick(3, 24))/10, float64(pick(3, 28))/40
	cfg.ReportLatency = [2]jamq.Slot{1, 1 + jamq.Slot(pick(6, 32))}
	cfg.AvailabilityLatency = [2]jamq.Slot{1, 1 + jamq.Slot(pick(6, 40))}
	cfg.ForeignLoad = float64(pick(5, 44)) / 10
	cfg.FinalityLag = 2 + int(pick(6, 48))
	cfg.FinalityStallProbability, cfg.FinalityStall = float64(pick(3, 52))/50, 15
	cfg.MaxForkDepth, cfg.ForkProbability = cfg.FinalityLag-1, float64(pick(4, 56))/10
	c, err := jamtest.New(cfg)
	require.NoError(t, err)
	return c
}

// TestAgainstSimulatedChain compares the view with the simulated chain, which
// was written from the same rules and shares no code with it. On every head,
// over forks and for packages that depend on each other, both agree on
// reported, available, accumulated and removed packages. The chain never
// accumulates a package that is dead in the view. The view never treats a
// package without prerequisites as dead while the chain can still report it.
func TestAgainstSimulatedChain(t *testing.T) {
	dead, done, reorgs, cleared := 0, 0, 0, 0
	for seed := range uint64(repeat.Times(60, 150)) {
		c := adversarial(t, seed)
		spec := simulatedSpec(seed)
		genesis := c.Best()
		v, err := chainview.New(&spec, genesis)
		require.NoError(t, err)
		var sent []jamtest.Package
		deadAt := map[jamq.PackageHash]anchor.Point{}
		for i := range 150 {
			if context, err := c.Context(min(1+i%6, int(c.Height())), recent(sent, i)...); err == nil {
				p := jamtest.NewPackage(1, context, []byte{byte(i)})
				watch(t, v, p.Hash, chainview.Package{Anchor: context.Anchor, LookupAnchorSlot: context.LookupAnchorSlot, Prerequisites: context.Prerequisites})
				require.NoError(t, c.Submit(p, jamq.CoreIndex(i%spec.Cores), i))
				sent = append(sent, p)
			}
			before := v.Best()
			u := c.Advance()
			for _, b := range u.Imported {
				// The view uses the chain's list or derives it. No package here
				// uses gas.
				b.AccumulatedKnown = seed%4 < 2
				if b.CoresCleared {
					cleared++
				}
				require.NoError(t, v.Import(&b))
			}
			require.NoError(t, v.SetBest(u.Best))
			if !v.OnBest(before) {
				reorgs++
			}
			require.NoError(t, v.Finalize(u.Finalized))
			for _, p := range sent[max(0, len(sent)-25):] {
				have := status(t, v, p.Hash)
				agree(t, c, v, p, have)
				if have.Dead != anchor.Alive {
					dead++
					deadAt[p.Hash] = have.DeadSince
				}
				if !have.Accumulated.IsZero() {
					done++
				}
			}
		}
		for pkg, at := range deadAt { // death is inherited
			if !v.OnBest(at) {
				continue
			}
			s, err := c.Status(pkg, v.Best().Hash)
			require.NoError(t, err)
			require.NotEqual(t, jamtest.Accumulated, s.Stage)
		}
	}
	require.Positive(t, dead)
	require.Positive(t, done)
	require.Positive(t, reorgs)
	require.Positive(t, cleared)
	t.Logf("%d verdicts of death, %d of accumulation, %d reorgs, %d blocks that clear the cores", dead, done, reorgs, cleared)
}

// recent returns the newest package for every third one to need.
func recent(sent []jamtest.Package, i int) []jamq.PackageHash {
	if i%3 == 0 || len(sent) == 0 {
		return nil
	}
	return []jamq.PackageHash{sent[len(sent)-1].Hash}
}

func agree(t *testing.T, c *jamtest.Chain, v *chainview.View, p jamtest.Package, have chainview.Status) {
	t.Helper()
	want, err := c.Status(p.Hash, v.Best().Hash)
	require.NoError(t, err)
	for _, at := range []struct {
		name string
		want jamtest.Point
		have anchor.Point
	}{{"reported", want.Reported, have.Reported}, {"available", want.Available, have.Available}, {"accumulated", want.Accumulated, have.Accumulated}} {
		require.Equal(t, at.want.Hash, at.have.Hash, at.name)
	}
	// A package whose prerequisite is lost may still be reported, although it
	// is dead.
	reportable := len(p.Context.Prerequisites) == 0 && c.Reportable(p, 0, c.Best().Slot+1) == nil
	alive := want.Stage == jamtest.Unreported && reportable || want.Stage == jamtest.Accumulated
	lost := want.Stage == jamtest.Cleared || want.Stage == jamtest.TimedOut || want.Stage == jamtest.Expired
	switch {
	case alive:
		require.Equal(t, anchor.Alive, have.Dead, "%v", want)
	case lost:
		require.NotEqual(t, anchor.Alive, have.Dead, "%v", want)
	}
}
