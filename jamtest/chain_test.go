package jamtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
)

const rollup jamq.ServiceID = 7

// newChain returns a chain of the default configuration, changed by f, with a few blocks on it.
func newChain(t *testing.T, f func(*jamtest.Config)) *jamtest.Chain {
	t.Helper()
	cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
	if f != nil {
		f(&cfg)
	}
	c, err := jamtest.New(cfg)
	require.NoError(t, err)
	advance(c, 3)
	return c
}

func advance(c *jamtest.Chain, slots int) {
	for range slots {
		c.Advance()
	}
}

// packageAt returns a package anchored offset blocks behind the best block.
func packageAt(t *testing.T, c *jamtest.Chain, offset int, payload string, needs ...jamq.PackageHash) jamtest.Package {
	t.Helper()
	context, err := c.Context(offset, needs...)
	require.NoError(t, err)
	return jamtest.NewPackage(rollup, context, []byte(payload))
}

func status(t *testing.T, c *jamtest.Chain, p jamtest.Package) jamtest.Status {
	t.Helper()
	s, err := c.Status(p.Hash, c.Best().Hash)
	require.NoError(t, err)
	return s
}

func requireStage(t *testing.T, c *jamtest.Chain, p jamtest.Package, want jamtest.Stage) {
	t.Helper()
	require.Equal(t, want, status(t, c, p).Stage, "%s: %s\n%s", p.Payload, status(t, c, p), c.Describe(20))
}

func TestStraightRoad(t *testing.T) {
	c := newChain(t, nil)
	p := packageAt(t, c, 1, "one")
	require.NoError(t, c.Submit(p, 0, 0))
	requireStage(t, c, p, jamtest.Unreported)
	c.Advance()
	requireStage(t, c, p, jamtest.OnCore)
	c.Advance()
	requireStage(t, c, p, jamtest.Accumulated)
	s := status(t, c, p)
	require.Equal(t, "accumulated: reported 4/4, available 5/5, accumulated 5/5", s.String())
	require.Empty(t, c.Advance().Final)
	final := c.Advance().Final
	require.Len(t, final, 1)
	require.Equal(t, p, final[0].Package)
	require.Equal(t, s.Accumulated, final[0].In)
	inbox, err := c.Inbox(rollup, c.Finalized().Hash)
	require.NoError(t, err)
	require.Equal(t, final, inbox)
	inbox, err = c.Inbox(rollup+1, c.Finalized().Hash)
	require.NoError(t, err)
	require.Empty(t, inbox)
}

func TestUpdateShowsWhatTheBlockDoes(t *testing.T) {
	c := newChain(t, nil)
	p := packageAt(t, c, 2, "one")
	require.NoError(t, c.Submit(p, 1, 0))
	u := c.Advance()
	require.Len(t, u.Imported, 1)
	b := u.Imported[0]
	require.Len(t, b.Reported, 1)
	require.NotZero(t, b.Reported[0].Hash)
	b.Reported[0].Hash, b.Reported[0].SegmentRoot = [32]byte{}, [32]byte{}
	require.Equal(t, []jamq.Report{{Package: p.Hash, Core: 1, Anchor: p.Context.Anchor}}, b.Reported)
	require.Equal(t, u.Best, b.Hash)
	b = c.Advance().Imported[0]
	require.Equal(t, []jamq.CoreIndex{1}, b.Available)
	require.Equal(t, []jamq.PackageHash{p.Hash}, b.Accumulated)
	spec := jamq.Tiny()
	require.NoError(t, b.Validate(&spec))
	b.Accumulated[0] = jamq.PackageHash{}
	again, ok := c.Block(b.Hash)
	require.True(t, ok)
	require.Equal(t, p.Hash, again.Accumulated[0], "a user's changes do not reach the chain")
}

func TestSkippedSlots(t *testing.T) {
	c := newChain(t, nil)
	before := c.Best()
	u := c.AdvanceTo(c.Slot() + 50)
	require.Len(t, u.Imported, 1)
	require.Equal(t, before.Hash, u.Imported[0].Parent)
	require.Equal(t, before.Slot+50, u.Imported[0].Slot)
	require.Empty(t, c.AdvanceTo(c.Slot()).Imported, "time does not stand still or go back")
	require.Equal(t, u.Best, c.AdvanceTo(1).Best)

	c = newChain(t, func(cfg *jamtest.Config) { cfg.SkipProbability = 0.5 })
	advance(c, 1000)
	require.InDelta(t, 500, float64(c.Height()), 100)
}

func TestLossIsSilentAndAnotherGuarantorIsANewChance(t *testing.T) {
	c := newChain(t, func(cfg *jamtest.Config) { cfg.LossProbability = 0.5 })
	first, second, retried := 0, 0, 0
	for i := range 200 {
		p := packageAt(t, c, 1, fmt.Sprint(i))
		require.NoError(t, c.Submit(p, 0, 0))
		advance(c, 2)
		if status(t, c, p).Stage == jamtest.Accumulated {
			first++
			continue
		}
		require.NoError(t, c.Submit(p, 0, 0))
		advance(c, 2)
		if status(t, c, p).Stage == jamtest.Accumulated {
			second++
		}
		require.NoError(t, c.Submit(p, 0, 1))
		advance(c, 2)
		if status(t, c, p).Stage == jamtest.Accumulated {
			retried++
		}
	}
	require.InDelta(t, 100, first, 30)
	require.Zero(t, second, "the same guarantor ignores what it has seen")
	require.InDelta(t, 50, retried, 25)
}

func TestSubmitRefusesWhatNoGuarantorTakes(t *testing.T) {
	c := newChain(t, nil)
	good := packageAt(t, c, 1, "good")
	require.NoError(t, c.Submit(good, 0, 0))
	before := c.Describe(99)
	other := good
	other.Payload = []byte("evil")
	unsorted := packageAt(t, c, 1, "x")
	unsorted.Context.Prerequisites = []jamq.PackageHash{{2}, {1}}
	many := packageAt(t, c, 1, "x")
	for i := range 9 {
		many.Context.Prerequisites = append(many.Context.Prerequisites, jamq.PackageHash{byte(i + 1)})
	}
	large := packageAt(t, c, 1, strings.Repeat("x", jamq.Tiny().MaxBundleSize+1))
	for name, p := range map[string]jamtest.Package{"zero hash": {}, "other contents": other, "unsorted": unsorted, "many": many, "large": large} {
		require.ErrorIs(t, c.Submit(p, 0, 1), jamtest.ErrRefused, name)
	}
	require.ErrorIs(t, c.Submit(good, 2, 0), jamtest.ErrRefused)
	require.Equal(t, before, c.Describe(99))
}

func TestConfigValidateNamesTheField(t *testing.T) {
	for field, change := range map[string]func(*jamtest.Config){
		"Spec":                   func(c *jamtest.Config) { c.Spec.Cores = 0 },
		"SkipProbability":        func(c *jamtest.Config) { c.SkipProbability = 1 },
		"LossProbability":        func(c *jamtest.Config) { c.LossProbability = -0.1 },
		"UnavailableProbability": func(c *jamtest.Config) { c.UnavailableProbability = 1.1 },
		"VerdictProbability":     func(c *jamtest.Config) { c.VerdictProbability = 2 },
		"ForkProbability":        func(c *jamtest.Config) { c.ForkProbability = -1 },
		"MaxForkDepth":           func(c *jamtest.Config) { c.MaxForkDepth = 3 },
		"MaxForkDepth is 0":      func(c *jamtest.Config) { c.ForkProbability = 0.1 },
		"ReportLatency":          func(c *jamtest.Config) { c.ReportLatency = [2]jamq.Slot{0, 1} },
		"AvailabilityLatency":    func(c *jamtest.Config) { c.AvailabilityLatency = [2]jamq.Slot{3, 2} },
		"StartSlot":              func(c *jamtest.Config) { c.StartSlot = jamq.MaxSlot },
		"FinalityLag":            func(c *jamtest.Config) { c.FinalityLag = 0 },
		"Retention":              func(c *jamtest.Config) { c.Retention = -1 },
	} {
		cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
		require.NoError(t, cfg.Validate())
		change(&cfg)
		_, err := jamtest.New(cfg)
		require.ErrorIs(t, err, jamtest.ErrInvalidConfig, field)
		require.ErrorContains(t, err, field)
	}
}

func TestUnknownHeads(t *testing.T) {
	c := newChain(t, nil)
	_, err := c.Status(jamq.PackageHash{1}, jamq.HeaderHash{1})
	require.ErrorIs(t, err, jamtest.ErrUnknownBlock)
	_, err = c.Accumulated(jamq.HeaderHash{1})
	require.ErrorIs(t, err, jamtest.ErrUnknownBlock)
	_, err = c.Inbox(rollup, jamq.HeaderHash{1})
	require.ErrorIs(t, err, jamtest.ErrUnknownBlock)
	_, ok := c.Block(jamq.HeaderHash{1})
	require.False(t, ok)
	for _, offset := range []int{-1, 0, 4, 99} {
		_, err = c.Context(offset)
		require.ErrorIs(t, err, jamtest.ErrNoAnchor)
	}
	require.Equal(t, "stage 99", jamtest.Stage(99).String())
}

// Blocks that no query can reach are forgotten, and the rules still hold.
func TestRetention(t *testing.T) {
	c := newChain(t, func(cfg *jamtest.Config) { cfg.Retention = 0 })
	old := c.Best().Hash
	first := packageAt(t, c, 1, "first")
	require.NoError(t, c.Submit(first, 0, 0))
	advance(c, 500)
	_, ok := c.Block(old)
	require.False(t, ok)
	require.NoError(t, c.Submit(first, 0, 0), "a package that was forgotten can be sent again")
	p := packageAt(t, c, 6, "later")
	require.NoError(t, c.Submit(p, 0, 0))
	advance(c, 2)
	requireStage(t, c, p, jamtest.Accumulated)
	requireStage(t, c, first, jamtest.Unreported)
}

func BenchmarkTenThousandBlocks(b *testing.B) {
	for b.Loop() {
		cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
		cfg.FinalityLag, cfg.MaxForkDepth, cfg.ForkProbability = 4, 3, 0.05
		c, err := jamtest.New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		c.Advance()
		for i := range 10_000 {
			context, err := c.Context(1)
			if err != nil {
				b.Fatal(err)
			}
			p := jamtest.NewPackage(rollup, context, fmt.Append(nil, i))
			if err := c.Submit(p, jamq.CoreIndex(i%2), 0); err != nil {
				b.Fatal(err)
			}
			c.Advance()
		}
	}
}

func Example() {
	chain, err := jamtest.New(jamtest.DefaultConfig(jamq.Tiny(), 7))
	if err != nil {
		panic(err)
	}
	chain.Advance()
	context, err := chain.Context(1) // genesis, now that it has a child
	if err != nil {
		panic(err)
	}
	p := jamtest.NewPackage(rollup, context, []byte("block 1"))
	if err := chain.Submit(p, 0, 0); err != nil {
		panic(err)
	}
	for range 5 {
		u := chain.Advance()
		s, err := chain.Status(p.Hash, u.Best)
		if err != nil {
			panic(err)
		}
		fmt.Printf("slot %d: %v, %d final\n", u.Slot, s.Stage, len(u.Final))
	}
	// Output:
	// slot 2: on core, 0 final
	// slot 3: accumulated, 0 final
	// slot 4: accumulated, 0 final
	// slot 5: accumulated, 1 final
	// slot 6: accumulated, 0 final
}
