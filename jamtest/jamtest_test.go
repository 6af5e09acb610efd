package jamtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
)

func newChain(t require.TestingT, change func(*Config)) *Chain {
	cfg := DefaultConfig(jamq.Tiny(), 1)
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	require.NoError(t, err)
	return c
}

// pkg makes a package anchored offset blocks behind the best block.
func pkg(c *Chain, name byte, offset int, needs ...jamq.PackageHash) Package {
	recent := c.Anchors()
	a := recent[max(0, len(recent)-1-offset)]
	lookup := c.LookupAnchor()
	return Package{Hash: jamq.PackageHash{name}, Payload: []byte{name}, Context: jamq.RefineContext{
		Anchor: a.Hash, StateRoot: a.StateRoot, BeefyRoot: a.BeefyRoot, LookupAnchor: lookup.Hash, LookupAnchorSlot: lookup.Slot, Prerequisites: needs,
	}}
}

func advance(c *Chain, slots int) (last Update) {
	for range slots {
		last = c.Advance()
	}
	return last
}

func TestStraightRoad(t *testing.T) {
	c := newChain(t, nil)
	advance(c, 10)
	require.NoError(t, c.Submit(pkg(c, 1, 4), 1, 0))
	u := c.Advance()
	require.Equal(t, jamq.PackageHash{1}, u.Imported[0].Reported[0].Package)
	require.True(t, c.Trace(jamq.PackageHash{1}).OnCore)
	u = c.Advance()
	require.Equal(t, []jamq.CoreIndex{1}, u.Imported[0].Available)
	require.Equal(t, []jamq.PackageHash{{1}}, u.Imported[0].Accumulated)
	require.Empty(t, u.Final)
	u = advance(c, 2)
	require.Equal(t, []byte{1}, u.Final[0].Payload, "final two blocks later")
}

// R1: reportable in exactly the H blocks after the anchor.
func TestR1AnchorWindow(t *testing.T) {
	for offset, want := range map[int]bool{1: true, 6: true, 7: true, 20: true} {
		c := newChain(t, nil)
		advance(c, 20)
		p := pkg(c, 1, offset)
		ok, why := c.Reportable(&p, 0, c.Slot()+1)
		require.Equal(t, want, ok, "offset %d: %s", offset, why)
	}
	c := newChain(t, nil)
	advance(c, 20)
	p := pkg(c, 1, 7)
	c.Advance()
	ok, why := c.Reportable(&p, 0, c.Slot()+1)
	require.False(t, ok)
	require.Equal(t, "anchor is not recent", why)

	p = pkg(c, 1, 2)
	p.Context.StateRoot[0] ^= 1
	ok, why = c.Reportable(&p, 0, c.Slot()+1)
	require.False(t, ok)
	require.Equal(t, "anchor has other roots", why)
}

// R2: a hash is reported once, even if its first report came to nothing.
func TestR2Once(t *testing.T) {
	c := newChain(t, func(cfg *Config) { cfg.UnavailableProbability = 1 })
	advance(c, 10)
	p := pkg(c, 1, 1)
	require.NoError(t, c.Submit(p, 0, 0))
	c.Advance()
	require.NotNil(t, c.Trace(p.Hash).Reported)
	for guarantor := range 5 {
		require.NoError(t, c.Submit(p, 1, guarantor))
		require.Empty(t, c.Advance().Imported[0].Reported)
	}
}

// R3: a package needs its prerequisite in recent history, and accumulates after it.
func TestR3Prerequisites(t *testing.T) {
	c := newChain(t, func(cfg *Config) { cfg.AvailabilityLatency = [2]jamq.Slot{1, 1} })
	advance(c, 10)
	child := pkg(c, 2, 1, jamq.PackageHash{1})
	ok, why := c.Reportable(&child, 1, c.Slot()+1)
	require.False(t, ok)
	require.Equal(t, "prerequisite is not in recent history", why)
	require.NoError(t, c.Submit(pkg(c, 1, 1), 0, 0))
	require.NoError(t, c.Submit(child, 1, 0))
	require.Len(t, c.Advance().Imported[0].Reported, 2, "both in one block")
	require.Equal(t, []jamq.PackageHash{{1}, {2}}, c.Advance().Imported[0].Accumulated)
}

// R4: a report keeps its core until it is available or U slots are over, and the block that frees a core may fill it.
func TestR4Cores(t *testing.T) {
	c := newChain(t, func(cfg *Config) { cfg.UnavailableProbability = 1 })
	advance(c, 10)
	require.NoError(t, c.Submit(pkg(c, 1, 1), 0, 0))
	c.Advance()
	reported := c.Slot()
	for c.Slot() < reported+4 {
		p := pkg(c, byte(10+c.Slot()), 1)
		require.NoError(t, c.Submit(p, 0, 0))
		require.Empty(t, c.Advance().Imported[0].Reported)
	}
	require.Len(t, c.Advance().Imported[0].Reported, 1, "five slots after the first report")
}

// R6: what waits for a prerequisite that never comes is dropped after an epoch.
func TestR6ReadyQueue(t *testing.T) {
	c := newChain(t, func(cfg *Config) { cfg.AvailabilityLatency = [2]jamq.Slot{1, 1} })
	advance(c, 10)
	// The parent is reported, never available; the child is available, and waits.
	require.NoError(t, c.Submit(pkg(c, 1, 1), 0, 0))
	require.NoError(t, c.Submit(pkg(c, 2, 1, jamq.PackageHash{1}), 1, 0))
	c.Advance()
	c.best.cores[0].availableAt = jamq.MaxSlot
	c.Advance()
	since := c.Slot()
	for c.Slot() < since+11 {
		c.Advance()
		require.True(t, c.Trace(jamq.PackageHash{2}).Ready, "slot %d", c.Slot()-since)
	}
	c.Advance()
	require.False(t, c.Trace(jamq.PackageHash{2}).Ready)
	require.Nil(t, c.Trace(jamq.PackageHash{2}).Accumulated)
}

func TestRefusedSubmissions(t *testing.T) {
	c := newChain(t, nil)
	advance(c, 3)
	require.ErrorIs(t, c.Submit(pkg(c, 1, 1), 2, 0), ErrRefused)
	require.ErrorIs(t, c.Submit(pkg(c, 1, 1, make([]jamq.PackageHash, 9)...), 0, 0), ErrRefused)
}

// chaos is a configuration with every fault.
func chaos(t *rapid.T) func(*Config) {
	seed := rapid.Uint64().Draw(t, "seed")
	return func(cfg *Config) {
		cfg.Seed = seed
		cfg.SkipProbability, cfg.LossProbability, cfg.UnavailableProbability = 0.2, 0.3, 0.1
		cfg.ReportLatency, cfg.AvailabilityLatency = [2]jamq.Slot{1, 4}, [2]jamq.Slot{1, 5}
		cfg.FinalityLag, cfg.ForkProbability, cfg.MaxForkDepth = 6, 0.3, 5
	}
}

// play submits packages at random and returns all updates.
func play(t *rapid.T, c *Chain, slots int) (updates []Update) {
	for i := range slots {
		if i%2 == 0 {
			_ = c.Submit(pkg(c, byte(i), i%8), jamq.CoreIndex(i%2), i)
		}
		updates = append(updates, c.Advance())
	}
	return updates
}

// Any chain: blocks follow their parents, finality is a chain that never moves back, nothing final was accumulated twice, and the same seed
// gives the same chain.
func TestChainInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		change := chaos(t)
		c := newChain(t, change)
		known := map[jamq.HeaderHash]jamq.Slot{c.Best().Hash: 0}
		parents := map[jamq.HeaderHash]jamq.HeaderHash{}
		final := c.Finalized().Hash
		once := map[jamq.PackageHash]bool{}
		updates := play(t, c, 150)
		for _, u := range updates {
			for _, b := range u.Imported {
				if parent, ok := known[b.Parent]; !ok || b.Slot <= parent {
					t.Fatalf("block %s in slot %d on parent %s", b.Hash, b.Slot, b.Parent)
				}
				known[b.Hash], parents[b.Hash] = b.Slot, b.Parent
			}
			for at := u.Finalized; at != final; at = parents[at] {
				if _, ok := parents[at]; !ok {
					t.Fatalf("finality left its chain at %s", at)
				}
			}
			final = u.Finalized
			for _, p := range u.Final {
				if once[p.Hash] {
					t.Fatalf("%s became final twice", p.Hash)
				}
				once[p.Hash] = true
			}
		}
		if again := newChain(t, change); fmt.Sprint(updates) != fmt.Sprint(play(t, again, 150)) {
			t.Fatal("the same seed gave another chain")
		}
	})
}

func TestPruneForgets(t *testing.T) {
	c := newChain(t, nil)
	for i := range 2000 {
		p := pkg(c, 0, 3)
		p.Hash = jamq.PackageHash{byte(i), byte(i >> 8), 1}
		require.NoError(t, c.Submit(p, jamq.CoreIndex(i%2), 0))
		c.Advance()
	}
	require.Less(t, len(c.blocks), 200)
	require.Less(t, len(c.packages), 400)
	require.Less(t, len(c.seen), 400)
	require.Less(t, len(c.offers), 400)
}

func TestConfigValidate(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"SkipProbability":     func(c *Config) { c.SkipProbability = 1 },
		"LossProbability":     func(c *Config) { c.LossProbability = -0.1 },
		"ReportLatency":       func(c *Config) { c.ReportLatency = [2]jamq.Slot{0, 1} },
		"AvailabilityLatency": func(c *Config) { c.AvailabilityLatency = [2]jamq.Slot{2, 1} },
		"FinalityLag":         func(c *Config) { c.FinalityLag = 0 },
		"MaxForkDepth":        func(c *Config) { c.MaxForkDepth = 3 },
		"Spec":                func(c *Config) { c.Spec.Cores = 0 },
	} {
		cfg := DefaultConfig(jamq.Tiny(), 1)
		change(&cfg)
		_, err := New(cfg)
		require.ErrorIs(t, err, ErrInvalidConfig)
		require.ErrorContains(t, err, name)
	}
}

func TestDriverTicksOncePerSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra().Add(time.Hour + time.Second)))
		cfg := DefaultConfig(jamq.Tiny(), 1)
		cfg.StartSlot = jamq.NewSlotClock(cfg.Spec).SlotAt(time.Now())
		chain, err := New(cfg)
		require.NoError(t, err)
		d := NewDriver(chain)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var slots []jamq.Slot
		err = d.Run(ctx, func(u Update) { slots = append(slots, u.Slot) })
		require.True(t, errors.Is(err, context.DeadlineExceeded))
		require.Equal(t, []jamq.Slot{600, 601, 602, 603, 604, 605, 606, 607, 608, 609, 610}, slots)
		best, _ := d.Heads()
		require.Equal(t, jamq.Slot(610), best.Slot)
		recent, lookup := d.Anchors()
		require.Len(t, recent, 8)
		require.NotZero(t, lookup.Hash)
	})
}

func ExampleChain() {
	chain, err := New(DefaultConfig(jamq.Tiny(), 7))
	if err != nil {
		panic(err)
	}
	for range 3 {
		chain.Advance()
	}
	anchor, lookup := chain.Anchors()[1], chain.LookupAnchor()
	p := Package{Hash: jamq.PackageHash{1}, Context: jamq.RefineContext{
		Anchor: anchor.Hash, StateRoot: anchor.StateRoot, BeefyRoot: anchor.BeefyRoot,
		LookupAnchor: lookup.Hash, LookupAnchorSlot: lookup.Slot,
	}}
	if err := chain.Submit(p, 0, 0); err != nil {
		panic(err)
	}
	for range 2 {
		for _, b := range chain.Advance().Imported {
			fmt.Printf("slot %d: %d reported, %d accumulated\n", b.Slot, len(b.Reported), len(b.Accumulated))
		}
	}
	// Output:
	// slot 4: 1 reported, 0 accumulated
	// slot 5: 0 reported, 1 accumulated
}
