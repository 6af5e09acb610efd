package jamtest_test

import (
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
)

// R1: the anchor must be one of the last H blocks; a package anchored at height a can be reported
// up to height a+H.
func TestR1AnchorLivesForHBlocks(t *testing.T) {
	for _, wait := range []int{0, 5, 6, 7, 8} {
		c := newChain(t, nil)
		p := packageAt(t, c, 1, "p") // height 2
		advance(c, wait)             // best is 3+wait, and the next block 4+wait
		err := c.Reportable(p, 0, c.Slot()+1)
		require.NoError(t, c.Submit(p, 0, 0))
		advance(c, 2)
		if 4+wait <= 2+8 {
			require.NoError(t, err)
			requireStage(t, c, p, jamtest.Accumulated)
		} else {
			require.ErrorIs(t, err, jamtest.ErrAnchorNotRecent)
			requireStage(t, c, p, jamtest.Unreported)
		}
	}
}

func TestR1ContextMustBeTrue(t *testing.T) {
	c := newChain(t, nil)
	for name, test := range map[string]struct {
		change func(*jamq.RefineContext)
		want   error
	}{
		"unknown anchor":    {func(x *jamq.RefineContext) { x.Anchor = jamq.HeaderHash{1} }, jamtest.ErrAnchorNotRecent},
		"state root":        {func(x *jamq.RefineContext) { x.StateRoot = common.Hash{1} }, jamtest.ErrAnchorRoots},
		"beefy root":        {func(x *jamq.RefineContext) { x.BeefyRoot = common.Hash{1} }, jamtest.ErrAnchorRoots},
		"unknown lookup":    {func(x *jamq.RefineContext) { x.LookupAnchor = jamq.HeaderHash{1} }, jamtest.ErrLookupAnchor},
		"other lookup slot": {func(x *jamq.RefineContext) { x.LookupAnchorSlot++ }, jamtest.ErrLookupAnchor},
	} {
		p := packageAt(t, c, 1, name)
		test.change(&p.Context)
		p = jamtest.NewPackage(rollup, p.Context, p.Payload)
		require.ErrorIs(t, c.Reportable(p, 0, c.Slot()+1), test.want, name)
		require.NoError(t, c.Submit(p, 0, 0))
		advance(c, 2)
		requireStage(t, c, p, jamtest.Unreported)
	}
	p := packageAt(t, c, 1, "p")
	require.ErrorIs(t, c.Reportable(p, 2, c.Slot()+1), jamtest.ErrRefused)
	require.ErrorIs(t, c.Reportable(p, 0, c.Best().Slot), jamtest.ErrRefused)
}

// R1, second half: slots count for the lookup anchor, blocks for the anchor.
func TestR1LookupAnchorLivesForLSlots(t *testing.T) {
	c := newChain(t, nil)
	p := packageAt(t, c, 1, "p")
	last := p.Context.LookupAnchorSlot + jamq.Tiny().MaxLookupAnchorAge
	require.NoError(t, c.Reportable(p, 0, last))
	require.ErrorIs(t, c.Reportable(p, 0, last+1), jamtest.ErrLookupAnchor)
}

// R2: a hash is reported once, whatever became of the report.
func TestR2OnceForEver(t *testing.T) {
	for _, unavailable := range []float64{0, 1} {
		c := newChain(t, func(cfg *jamtest.Config) { cfg.UnavailableProbability = unavailable })
		p := packageAt(t, c, 1, "p")
		require.NoError(t, c.Submit(p, 0, 0))
		c.Advance()
		for guarantor := range 6 { // as long as its anchor lives
			require.NoError(t, c.Submit(p, 1, guarantor))
			require.ErrorIs(t, c.Reportable(p, 1, c.Slot()+1), jamtest.ErrDuplicate)
			for _, b := range c.Advance().Imported {
				require.Empty(t, b.Reported)
			}
		}
	}
}

// R1: the lookup anchor is an ancestor (GP 11.35), not a block of a fork that lost.
func TestR1LookupAnchorIsAnAncestor(t *testing.T) {
	c := scripted(t, "", func(cfg *jamtest.Config) { cfg.FinalityLag = 5 })
	advance(c, 20)
	old := c.Best()
	p := packageAt(t, c, 2, "p")
	p.Context.LookupAnchor, p.Context.LookupAnchorSlot = old.Hash, old.Slot
	require.NoError(t, c.Reportable(p, 0, c.Slot()+1))
	inject(t, c, "at 1 fork 1\nat 1 reorg\nat 1 abandon")
	advance(c, 2)
	require.False(t, c.Contains(c.Best().Hash, old.Hash))
	require.ErrorIs(t, c.Reportable(p, 0, c.Slot()+1), jamtest.ErrLookupAnchor)
}

// R2: one block reports a package once, also if two cores have it (GP 11.32).
func TestR2OnceInABlock(t *testing.T) {
	c := newChain(t, nil)
	p := packageAt(t, c, 1, "p")
	require.NoError(t, c.Submit(p, 0, 0))
	require.NoError(t, c.Submit(p, 1, 1))
	require.Len(t, c.Advance().Imported[0].Reported, 1)
}

// R2: when a package has left recent history, its core, the ready queue and the memory of
// accumulated packages still keep a package of the same hash out, with whatever context (GP 11.36
// to 11.38).
func TestR2OutlivesRecentHistory(t *testing.T) {
	again := func(t *testing.T, c *jamtest.Chain, p jamtest.Package) error {
		fresh := packageAt(t, c, 1, "fresh")
		fresh.Hash = p.Hash
		return c.Reportable(fresh, 0, c.Slot()+1)
	}
	for name, test := range map[string]struct {
		unavailable float64
		lost        bool // its prerequisite
		first       jamq.Slot
	}{
		"core":        {1, false, 10},    // the time-out
		"memory":      {0, false, 1 + 6}, // available one slot later, then E blocks
		"ready queue": {0, true, 1 + 6},  // available one slot later, then E slots
	} {
		t.Run(name, func(t *testing.T) {
			c := newChain(t, func(cfg *jamtest.Config) {
				cfg.Spec.RecentHistory, cfg.Spec.AvailabilityTimeout, cfg.Spec.EpochLength = 3, 10, 6
				cfg.UnavailableProbability = test.unavailable
			})
			var needs []jamq.PackageHash
			if test.lost {
				parent := packageAt(t, c, 1, "parent")
				require.NoError(t, c.Submit(parent, 1, 0))
				needs = append(needs, parent.Hash)
			}
			p := packageAt(t, c, 1, "p", needs...)
			require.NoError(t, c.Submit(p, 0, 0))
			c.Advance()
			if test.lost {
				require.NoError(t, c.Kill(needs[0]))
			}
			reported := status(t, c, p).Reported.Slot
			require.Equal(t, c.Slot(), reported)
			for c.Slot() < reported+test.first {
				require.ErrorIs(t, again(t, c, p), jamtest.ErrDuplicate, "%d slots later", c.Slot()-reported)
				c.Advance()
			}
			require.NoError(t, again(t, c, p))
		})
	}
}

// R2: the rule is about the hash. Two packages for the same rollup block are both welcome.
func TestR2TwoVersionsAreWelcome(t *testing.T) {
	c := newChain(t, nil)
	a, b := packageAt(t, c, 1, "same block"), packageAt(t, c, 2, "same block")
	require.NoError(t, c.Submit(a, 0, 0))
	require.NoError(t, c.Submit(b, 1, 0))
	advance(c, 2)
	requireStage(t, c, a, jamtest.Accumulated)
	requireStage(t, c, b, jamtest.Accumulated)
}

// R3: a prerequisite counts while its report is among the last H blocks; accumulated but older does
// not.
func TestR3PrerequisiteMustBeRecent(t *testing.T) {
	for _, wait := range []int{6, 7} {
		c := newChain(t, nil)
		parent := packageAt(t, c, 1, "parent")
		require.NoError(t, c.Submit(parent, 0, 0))
		advance(c, 2) // reported in the block before the best one
		requireStage(t, c, parent, jamtest.Accumulated)
		advance(c, wait)
		child := packageAt(t, c, 1, "child", parent.Hash)
		require.NoError(t, c.Submit(child, 0, 0))
		advance(c, 2)
		if wait+2 <= 8 {
			requireStage(t, c, child, jamtest.Accumulated)
		} else {
			requireStage(t, c, child, jamtest.Unreported)
			require.ErrorIs(t, c.Reportable(child, 0, c.Slot()+1), jamtest.ErrPrerequisite)
		}
	}
}

func TestR3SameBlockInAnyOrder(t *testing.T) {
	c := newChain(t, nil)
	parent := packageAt(t, c, 1, "parent")
	child := packageAt(t, c, 1, "child", parent.Hash)
	require.NoError(t, c.Submit(child, 0, 0))
	require.NoError(t, c.Submit(parent, 1, 0))
	advance(c, 2)
	s := status(t, c, child)
	require.Equal(t, jamtest.Accumulated, s.Stage)
	require.Equal(t, s.Reported, status(t, c, parent).Reported)
	all, err := c.Accumulated(c.Best().Hash)
	require.NoError(t, err)
	require.Equal(t, []string{"parent", "child"}, payloads(all))
}

// R4: a core is taken until availability or for U slots, and is free again in that very block.
func TestR4CoreIsTakenUntilTheTimeOut(t *testing.T) {
	c := newChain(t, func(cfg *jamtest.Config) { cfg.UnavailableProbability = 1 })
	a := packageAt(t, c, 1, "a")
	require.NoError(t, c.Submit(a, 0, 0))
	c.Advance()
	reported := status(t, c, a).Reported.Slot
	b := packageAt(t, c, 1, "b")
	require.NoError(t, c.Submit(b, 0, 0))
	for c.Slot()+1 < reported+5 {
		require.ErrorIs(t, c.Reportable(b, 0, c.Slot()+1), jamtest.ErrCoreEngaged)
		c.Advance()
		requireStage(t, c, a, jamtest.OnCore)
	}
	require.NoError(t, c.Reportable(b, 0, c.Slot()+1))
	c.Advance()
	requireStage(t, c, a, jamtest.TimedOut)
	require.Equal(t, reported+5, status(t, c, a).Lost.Slot)
	requireStage(t, c, b, jamtest.OnCore)
}

// R8: another number of validators clears the cores, and a third of it is the number of active
// cores. The core is free again in that very block.
func TestR8AnotherNumberOfValidators(t *testing.T) {
	c := newChain(t, func(cfg *jamtest.Config) {
		cfg.Spec.Cores, cfg.Spec.Validators, cfg.SetSizes = 3, 9, []int{9, 9, 6}
		cfg.UnavailableProbability = 1
	})
	epoch := jamq.Tiny().EpochLength
	for next := epoch; next <= 3*epoch; next += epoch { // 9 validators, then 6, then 9 again
		for c.Slot() < next-2 {
			c.Advance()
		}
		a := packageAt(t, c, 1, fmt.Sprint("before slot ", next))
		require.NoError(t, c.Submit(a, 1, 0))
		c.Advance()
		requireStage(t, c, a, jamtest.OnCore)
		b := packageAt(t, c, 1, fmt.Sprint("in slot ", next))
		inactive, free := c.Reportable(b, 2, next), c.Reportable(b, 1, next)
		u := c.Advance()
		require.Equal(t, next != epoch, u.Imported[0].CoresCleared)
		switch next {
		case epoch:
			requireStage(t, c, a, jamtest.OnCore)
			require.NoError(t, inactive)
			require.ErrorIs(t, free, jamtest.ErrCoreEngaged)
		case 2 * epoch:
			requireStage(t, c, a, jamtest.TimedOut)
			require.ErrorIs(t, inactive, jamtest.ErrCoreInactive)
			require.NoError(t, free)
		default:
			requireStage(t, c, a, jamtest.TimedOut)
			require.NoError(t, inactive)
		}
	}
	for _, sizes := range [][]int{{3}, {7}, {12}, {9, 0}} {
		cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
		cfg.Spec.Cores, cfg.Spec.Validators, cfg.SetSizes = 3, 9, sizes
		require.ErrorIs(t, cfg.Validate(), jamtest.ErrInvalidConfig)
	}
}

// R4: availability in the block of the time-out wins, however late that block is.
func TestR4LateAvailabilityWins(t *testing.T) {
	c := newChain(t, func(cfg *jamtest.Config) { cfg.AvailabilityLatency = [2]jamq.Slot{9, 9} })
	p := packageAt(t, c, 1, "p")
	require.NoError(t, c.Submit(p, 0, 0))
	c.Advance()
	c.AdvanceTo(c.Slot() + 601)
	requireStage(t, c, p, jamtest.Accumulated)

	advance(c, 3) // until finality, and with it the lookup anchor, is past the gap
	p = packageAt(t, c, 1, "q")
	require.NoError(t, c.Submit(p, 0, 0))
	advance(c, 10)
	requireStage(t, c, p, jamtest.TimedOut)
}

// R6: a prerequisite unlocks the packages that wait for it; a chain of them is
// accumulated in one block, in order.
func TestR6ReadyQueueUnlocks(t *testing.T) {
	c := newChain(t, func(cfg *jamtest.Config) {
		cfg.Spec.Cores = 4
		cfg.AvailabilityLatency = [2]jamq.Slot{1, 4}
	})
	var chain []jamtest.Package
	var needs []jamq.PackageHash
	for i := range 4 {
		p := packageAt(t, c, 1, string(rune('a'+i)), needs...)
		require.NoError(t, c.Submit(p, jamq.CoreIndex(i), 0))
		chain, needs = append(chain, p), []jamq.PackageHash{p.Hash}
	}
	advance(c, 6)
	all, err := c.Accumulated(c.Best().Hash)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c", "d"}, payloads(all))
	for i, p := range chain {
		s := status(t, c, p)
		require.LessOrEqual(t, s.Available.Height, s.Accumulated.Height)
		if i > 0 {
			require.GreaterOrEqual(t, s.Accumulated.Height, status(t, c, chain[i-1]).Accumulated.Height)
		}
	}
}

// R6: rounds. A report that a round unlocks runs after all reports that were unlocked before it.
func TestR6OrderIsByRounds(t *testing.T) {
	c := newChain(t, func(cfg *jamtest.Config) { cfg.Spec.Cores = 4 })
	root := packageAt(t, c, 1, "root")
	first := packageAt(t, c, 1, "first", root.Hash)
	second := packageAt(t, c, 1, "second", first.Hash)
	third := packageAt(t, c, 1, "third", root.Hash)
	for core, p := range []jamtest.Package{root, first, second, third} {
		require.NoError(t, c.Submit(p, jamq.CoreIndex(core), 0))
	}
	advance(c, 2)
	all, err := c.Accumulated(c.Best().Hash)
	require.NoError(t, err)
	require.Equal(t, []string{"root", "first", "third", "second"}, payloads(all))
}

// R6: a prerequisite counts as accumulated for E blocks (GP 12.1). A package that becomes available
// later waits forever.
func TestR6MemoryOfAccumulatedPackages(t *testing.T) {
	for wait := range 6 {
		c := newChain(t, func(cfg *jamtest.Config) { cfg.Spec.EpochLength = 5 })
		parent := packageAt(t, c, 1, "parent")
		require.NoError(t, c.Submit(parent, 0, 0))
		advance(c, 2) // accumulated in the best block
		requireStage(t, c, parent, jamtest.Accumulated)
		advance(c, wait)
		child := packageAt(t, c, 1, "child", parent.Hash)
		require.NoError(t, c.Submit(child, 0, 0))
		advance(c, 2)
		age := status(t, c, child).Available.Height - status(t, c, parent).Accumulated.Height
		require.EqualValues(t, wait+2, age)
		if age <= 5 {
			requireStage(t, c, child, jamtest.Accumulated)
		} else {
			requireStage(t, c, child, jamtest.Ready)
		}
	}
}

// R6: an entry of the ready queue is gone after E slots.
func TestR6ReadyQueueForgetsAfterAnEpoch(t *testing.T) {
	c := newChain(t, func(cfg *jamtest.Config) { cfg.UnavailableProbability = 0.5 })
	var child jamtest.Package
	for i := range 100 { // until the parent is lost and the child is not
		parent := packageAt(t, c, 1, string(rune(i)))
		child = packageAt(t, c, 1, string(rune(i)), parent.Hash)
		require.NoError(t, c.Submit(parent, 0, 0))
		require.NoError(t, c.Submit(child, 1, 0))
		advance(c, 6)
		if status(t, c, parent).Stage == jamtest.TimedOut && status(t, c, child).Stage == jamtest.Ready {
			break
		}
	}
	available := status(t, c, child).Available.Slot
	for c.Slot()+1 < available+jamq.Tiny().EpochLength {
		c.Advance()
		requireStage(t, c, child, jamtest.Ready)
	}
	c.Advance()
	requireStage(t, c, child, jamtest.Expired)
	require.Equal(t, available+12, status(t, c, child).Lost.Slot)
	require.Equal(t, "expired: reported", status(t, c, child).String()[:17])
}

// R7: a verdict frees the core and the package is lost.
func TestR7Verdict(t *testing.T) {
	c := newChain(t, func(cfg *jamtest.Config) { cfg.VerdictProbability = 1 })
	p := packageAt(t, c, 1, "p")
	require.NoError(t, c.Submit(p, 1, 0))
	c.Advance()
	b := c.Advance().Imported[0]
	require.Len(t, b.Condemned, 1)
	require.Empty(t, b.Available)
	requireStage(t, c, p, jamtest.Cleared)
	require.ErrorIs(t, c.Reportable(p, 1, c.Slot()+1), jamtest.ErrDuplicate)
}

func payloads(all []jamtest.Accumulation) []string {
	var out []string
	for _, a := range all {
		out = append(out, string(a.Payload))
	}
	return out
}
