package jamtest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
)

// auditor checks the imported blocks against the rules, from the blocks alone.
type auditor struct {
	spec      jamq.ChainSpec
	blocks    map[jamq.HeaderHash]jamq.Block
	finalized jamq.HeaderHash
	final     []jamtest.Accumulation
	reorgs    int
	best      jamq.HeaderHash
}

func newAuditor(c *jamtest.Chain) *auditor {
	genesis := c.Best()
	return &auditor{
		spec: c.Config().Spec, blocks: map[jamq.HeaderHash]jamq.Block{genesis.Hash: genesis},
		finalized: genesis.Hash, best: genesis.Hash,
	}
}

// chainTo returns the blocks from genesis to head.
func (a *auditor) chainTo(head jamq.HeaderHash) []jamq.Block {
	var out []jamq.Block
	for b, ok := a.blocks[head]; ok; b, ok = a.blocks[b.Parent] {
		out = append(out, b)
	}
	slices.Reverse(out)
	return out
}

func (a *auditor) onChain(hash, head jamq.HeaderHash) bool {
	return slices.ContainsFunc(a.chainTo(head), func(b jamq.Block) bool { return b.Hash == hash })
}

func (a *auditor) update(t require.TestingT, u jamtest.Update) {
	for _, b := range u.Imported {
		require.NoError(t, b.Validate(&a.spec))
		parent, ok := a.blocks[b.Parent]
		require.True(t, ok, "parents come first")
		require.Greater(t, b.Slot, parent.Slot)
		require.NotContains(t, a.blocks, b.Hash)
		a.blocks[b.Hash] = b
		a.block(t, b)
	}
	require.True(t, a.onChain(u.Finalized, u.Best), "the finalized block is on the best chain")
	require.True(t, a.onChain(a.finalized, u.Finalized), "finality never moves back")
	if !a.onChain(a.best, u.Best) {
		a.reorgs++
	}
	a.best, a.finalized = u.Best, u.Finalized
	a.final = append(a.final, u.Final...)
}

// life is the auditor's record of a package on one chain.
type life struct {
	reported, accumulated int // heights, or -1
	slot                  jamq.Slot
	available             bool
}

// block replays the chain that ends in a block and checks its last block.
func (a *auditor) block(t require.TestingT, last jamq.Block) {
	chain := a.chainTo(last.Hash)
	lives := map[jamq.PackageHash]*life{}
	needs := map[jamq.PackageHash][]jamq.PackageHash{}
	cores := make([]jamq.PackageHash, a.spec.Cores)
	hashes := make([]common.Hash, a.spec.Cores)
	for height, b := range chain {
		for core, pkg := range cores { // a core is freed by R4 or R7
			switch {
			case pkg.IsZero():
				require.NotContains(t, b.Available, jamq.CoreIndex(core))
				continue
			case slices.Contains(b.Condemned, hashes[core]):
			case slices.Contains(b.Available, jamq.CoreIndex(core)):
				lives[pkg].available = true
			case b.Slot >= lives[pkg].slot+a.spec.AvailabilityTimeout:
			default:
				continue
			}
			cores[core] = jamq.PackageHash{}
		}
		for _, r := range b.Reported {
			require.NotContains(t, lives, r.Package, "R2: once per chain")
			lives[r.Package] = &life{reported: height, accumulated: -1, slot: b.Slot}
			needs[r.Package] = r.Prerequisites
			recent := chain[max(0, height-a.spec.RecentHistory):height]
			require.True(t, slices.ContainsFunc(recent, func(b jamq.Block) bool { return b.Hash == r.Anchor }), "R1")
			require.True(t, cores[r.Core].IsZero(), "R4")
			cores[r.Core], hashes[r.Core] = r.Package, r.Hash
		}
		for _, r := range b.Reported {
			for _, need := range r.Prerequisites {
				require.Contains(t, lives, need, "R3")
				require.LessOrEqual(t, height-lives[need].reported, a.spec.RecentHistory, "R3")
			}
		}
		for _, pkg := range b.Accumulated {
			l := lives[pkg]
			require.True(t, l != nil && l.available && l.accumulated < 0, "R6: available, and once")
			for _, need := range needs[pkg] {
				require.GreaterOrEqual(t, lives[need].accumulated, 0, "R6: prerequisites first")
			}
			l.accumulated = height
		}
	}
}

func drawConfig(t *rapid.T) jamtest.Config {
	cfg := jamtest.DefaultConfig(jamq.Tiny(), rapid.Uint64().Draw(t, "seed"))
	cfg.Spec.Cores = rapid.IntRange(1, 4).Draw(t, "cores")
	chance := func(name string, most float64) float64 { return rapid.Float64Range(0, most).Draw(t, name) }
	cfg.SkipProbability = chance("skip", 0.5)
	cfg.LossProbability = chance("loss", 0.5)
	cfg.UnavailableProbability = chance("unavailable", 0.3)
	cfg.VerdictProbability = chance("verdict", 0.1)
	cfg.ReportLatency[1] = jamq.Slot(rapid.IntRange(1, 4).Draw(t, "report latency"))
	cfg.AvailabilityLatency[1] = jamq.Slot(rapid.IntRange(1, 8).Draw(t, "availability latency"))
	cfg.FinalityLag = rapid.IntRange(1, 6).Draw(t, "lag")
	cfg.MaxForkDepth = rapid.IntRange(0, cfg.FinalityLag).Draw(t, "fork depth")
	if cfg.MaxForkDepth > 0 {
		cfg.ForkProbability = chance("fork", 0.3)
	}
	cfg.SkipBurst[1] = rapid.IntRange(1, 6).Draw(t, "burst")
	cfg.DelayProbability, cfg.Delay[1] = chance("delay", 0.3), 5
	cfg.LastMomentProbability = chance("last moment", 0.3)
	cfg.ForeignLoad = chance("foreign", 0.6)
	cfg.FinalityStallProbability, cfg.FinalityStall = chance("stall", 0.1), jamq.Slot(rapid.IntRange(0, 20).Draw(t, "stalled"))
	cfg.Spec.BlockAccumulateGas = cfg.Spec.MaxAccumulateGas
	return cfg
}

// submitOne sends a package that may name recent ones as prerequisites, to a random core.
func submitOne(t *rapid.T, c *jamtest.Chain, sent []jamtest.Package) []jamtest.Package {
	anchors := len(c.Anchors())
	if anchors < 2 {
		return sent
	}
	var needs []jamq.PackageHash
	for range rapid.IntRange(0, 2).Draw(t, "needs") {
		if recent := sent[max(0, len(sent)-6):]; len(recent) > 0 {
			needs = append(needs, rapid.SampledFrom(recent).Draw(t, "need").Hash)
		}
	}
	context, err := c.Context(rapid.IntRange(1, anchors-1).Draw(t, "offset"), needs...)
	require.NoError(t, err)
	p := jamtest.NewPackage(rollup, context, fmt.Append(nil, len(sent)))
	core := jamq.CoreIndex(rapid.IntRange(0, c.Config().Spec.Cores-1).Draw(t, "core"))
	require.NoError(t, c.Submit(p, core, rapid.IntRange(0, 2).Draw(t, "guarantor")))
	return append(sent, p)
}

func TestRulesHoldOnEveryBranch(t *testing.T) {
	reorgs, accumulated := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c, err := jamtest.New(drawConfig(t))
		require.NoError(t, err)
		audit := newAuditor(c)
		var sent []jamtest.Package
		for range rapid.IntRange(1, 60).Draw(t, "slots") {
			for range rapid.IntRange(0, 2).Draw(t, "packages") {
				sent = submitOne(t, c, sent)
			}
			audit.update(t, c.Advance())
		}
		final, err := c.Accumulated(audit.finalized)
		require.NoError(t, err)
		require.Equal(t, len(audit.final), len(final))
		for i := range final {
			require.Equal(t, final[i], audit.final[i])
		}
		requireStatusesAgree(t, c, audit)
		reorgs += audit.reorgs
		accumulated += len(final)
	})
	require.Positive(t, reorgs, "forks must be tried")
	require.Positive(t, accumulated)
}

// requireStatusesAgree compares Status with the blocks of the best chain.
func requireStatusesAgree(t require.TestingT, c *jamtest.Chain, a *auditor) {
	for height, b := range a.chainTo(a.best) {
		at := jamtest.Point{Hash: b.Hash, Slot: b.Slot, Height: uint64(height)}
		for _, r := range b.Reported {
			s, err := c.Status(r.Package, a.best)
			require.NoError(t, err)
			require.Equal(t, at, s.Reported)
			require.Equal(t, r.Core, s.Core)
			lost := s.Stage == jamtest.Cleared || s.Stage == jamtest.TimedOut || s.Stage == jamtest.Expired
			require.Equal(t, lost, !s.Lost.Hash.IsZero())
		}
		for _, pkg := range b.Accumulated {
			s, err := c.Status(pkg, a.best)
			require.NoError(t, err)
			require.Equal(t, jamtest.Accumulated, s.Stage)
			require.Equal(t, at, s.Accumulated)
		}
	}
}

func TestSameSeedSameHistory(t *testing.T) {
	run := func(seed uint64) (updates []jamtest.Update, described string) {
		cfg := jamtest.DefaultConfig(jamq.Tiny(), seed)
		cfg.SkipProbability, cfg.LossProbability, cfg.UnavailableProbability, cfg.VerdictProbability = 0.2, 0.2, 0.1, 0.05
		cfg.ReportLatency, cfg.AvailabilityLatency = [2]jamq.Slot{1, 3}, [2]jamq.Slot{1, 6}
		cfg.FinalityLag, cfg.MaxForkDepth, cfg.ForkProbability = 4, 3, 0.1
		c, err := jamtest.New(cfg)
		require.NoError(t, err)
		for i := range 300 {
			if context, err := c.Context(1); err == nil {
				require.NoError(t, c.Submit(jamtest.NewPackage(rollup, context, fmt.Append(nil, i)), jamq.CoreIndex(i%2), i))
			}
			updates = append(updates, c.Advance())
		}
		return updates, c.Describe(1000)
	}
	updates, described := run(1)
	again, describedAgain := run(1)
	require.Equal(t, updates, again)
	require.Equal(t, described, describedAgain)
	_, other := run(2)
	require.NotEqual(t, described, other)
}

// A package may be accumulated on one branch and lost on the other; after a reorg
// the new branch counts.
func TestForksHaveTheirOwnState(t *testing.T) {
	differs, reorgs := false, 0
	for seed := range uint64(20) {
		cfg := jamtest.DefaultConfig(jamq.Tiny(), seed)
		cfg.FinalityLag, cfg.MaxForkDepth, cfg.ForkProbability, cfg.UnavailableProbability = 4, 4, 0.2, 0.5
		c, err := jamtest.New(cfg)
		require.NoError(t, err)
		audit := newAuditor(c)
		var sent []jamtest.Package
		for i := range 100 {
			best := c.Best().Hash
			u := c.Advance()
			audit.update(t, u)
			for _, p := range sent {
				before, err := c.Status(p.Hash, best)
				require.NoError(t, err)
				after, err := c.Status(p.Hash, u.Best)
				require.NoError(t, err)
				differs = differs || before.Stage == jamtest.Accumulated && after.Stage != jamtest.Accumulated
			}
			p := packageAt(t, c, 1, fmt.Sprint(i))
			require.NoError(t, c.Submit(p, jamq.CoreIndex(i%2), 0))
			sent = append(sent[max(0, len(sent)-8):], p)
		}
		reorgs += audit.reorgs
	}
	require.Positive(t, reorgs)
	require.True(t, differs, "no reorg took an accumulation back")
}
