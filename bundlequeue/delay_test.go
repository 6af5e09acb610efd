package bundlequeue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// useless answers the only open build with a package that is dead on arrival.
func (s *scene) useless(context jamq.RefineContext) {
	s.t.Helper()
	require.Len(s.t, s.builds, 1)
	b := s.builds[0]
	s.builds = nil
	s.hashes++
	context.Prerequisites = b.Prerequisites
	s.step(Built{Ticket: b.Ticket, Package: jamq.PackageHash{2, s.hashes}, Context: context, Bundle: b.Bundle})
}

// If the lookup anchor of a package is too old (D3), the package is not built
// again until finality moves. Then the bundle continues.
func TestOldLookupAnchorWaitsForFinality(t *testing.T) {
	s := newScene(t, nil)
	s.blocks(40)
	s.enqueue(1)
	s.useless(jamq.RefineContext{Anchor: s.builds[0].Anchor.Hash, LookupAnchorSlot: 1})
	for range 30 {
		s.block(nil)
		require.Empty(t, s.builds)
	}
	s.restart()
	s.block(nil)
	require.Empty(t, s.builds, "a restart does not change that")
	delay, _ := s.q.Delayed()
	require.Equal(t, "finality does not move, and the last package was dead when it was ready (D3: unreported, lookup anchor expired)", delay.Reason)
	s.step(FinalizedBlock{Hash: s.parent})
	require.Len(t, s.builds, 1)
	require.Len(t, s.run(), 1)
	_, delayed := s.q.Delayed()
	require.False(t, delayed)
}

// Finality that comes a moment after each block is enough, also if it is so old that no package can
// be built before it moves: then the next package is another one, on the same best block.
func TestOldLookupAnchorNeedsNoNewBlock(t *testing.T) {
	s := newScene(t, nil)
	var chain []jamq.HeaderHash
	for range 40 {
		chain = append(chain, s.block(nil))
	}
	age := int(s.q.cfg.Spec.MaxLookupAnchorAge)
	s.step(FinalizedBlock{Hash: chain[len(chain)-1-age]})
	s.enqueue(1)
	slotOf := func(hash jamq.HeaderHash) jamq.Slot {
		at, known := s.q.view.Locate(hash)
		require.True(t, known)
		return at.Slot
	}
	s.useless(jamq.RefineContext{Anchor: s.builds[0].Anchor.Hash, LookupAnchorSlot: slotOf(chain[len(chain)-1-age])})
	require.Equal(t, uint64(1), s.q.Stats().Totals.Useless)
	require.Empty(t, s.builds)
	final := chain[len(chain)-age]
	s.step(FinalizedBlock{Hash: final})
	require.Len(t, s.builds, 1)
	b := s.builds[0]
	s.step(Built{Ticket: b.Ticket, Package: jamq.PackageHash{9}, Bundle: b.Bundle, Context: jamq.RefineContext{
		Anchor: b.Anchor.Hash, LookupAnchorSlot: slotOf(final),
	}})
	require.Len(t, s.sends, 1)
}

// A package whose evidence was reorganized away is built again on the next
// block and not before.
func TestUselessBuildWaitsForABlock(t *testing.T) {
	s := newScene(t, nil)
	other := s.otherFork()
	s.enqueue(1)
	for i := range 5 {
		s.useless(jamq.RefineContext{Anchor: other})
		if i < 2 {
			s.step(FinalizedBlock{Hash: s.parent})
		}
		s.now = s.now.Add(time.Minute)
		s.step(Tick{})
		s.restart()
		s.step(Tick{})
		require.Empty(t, s.builds)
		s.block(nil)
	}
	require.Equal(t, uint64(5), s.q.Stats().Totals.Useless)
	require.Len(t, s.run(), 1)
}

// Delayed gives the reason for which the first bundle without a package waits, and since when.
func TestDelayedReasons(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		play   func(s *scene)
		want   string
	}{
		"reserved":     {nil, func(s *scene) { s.step(Reserve{Number: 1}) }, "its number is reserved and not filled"},
		"building":     {nil, func(s *scene) { s.enqueue(1) }, "a package is being built"},
		"build failed": {nil, func(s *scene) { s.enqueue(1); s.step(BuildFailed{Ticket: s.builds[0].Ticket}) }, "1 builds failed"},
		"useless build": {nil, func(s *scene) {
			s.enqueue(1)
			s.useless(jamq.RefineContext{Anchor: s.otherFork()})
		}, "no new block, and the last package was dead when it was ready (D1: anchor on another fork)"},
		"building after useless ones": {nil, func(s *scene) {
			s.enqueue(1)
			s.useless(jamq.RefineContext{Anchor: s.otherFork()})
			s.block(nil)
		}, "a package is being built; the last 1 were dead when they were ready (D1: anchor on another fork)"},
		"no core": {func(c *Config) { c.Cores = c.Cores[:1] }, func(s *scene) {
			s.enqueue(1)
			s.run()
			s.enqueue(2)
		}, "no core is free"},
		"no anchor": {nil, func(s *scene) {
			s.enqueue(1)
			s.run()
			s.blocks(2)
		}, "no block can be its anchor yet"},
		"predecessor is not in recent history": {nil, func(s *scene) {
			s.enqueue(1)
			s.block(report(s.run()[0], 0))
			s.blocks(4)
			s.now = s.now.Add(time.Minute)
			s.enqueue(2)
			s.step(BuildFailed{Ticket: s.builds[0].Ticket})
			s.now = s.now.Add(time.Minute)
			s.q.buildTimes = []int{8} // a builder whose packages come too late to name it
			s.step(Tick{})
		}, "the package before it can be neither named nor left out yet"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, c.change)
			c.play(s)
			delay, delayed := s.q.Delayed()
			require.True(t, delayed)
			require.Equal(t, c.want, delay.Reason)
		})
	}
}

// A bundle waits since it was enqueued, or since the package before it left, or since its last
// package died.
func TestDelayedSince(t *testing.T) {
	s := newScene(t, nil)
	_, delayed := s.q.Delayed()
	require.False(t, delayed)
	s.enqueue(1)
	enqueued := s.now
	s.enqueue(2)
	s.now = s.now.Add(time.Second)
	s.step(Tick{})
	delay, _ := s.q.Delayed()
	require.Equal(t, Delay{Number: 1, Since: enqueued, Reason: "a package is being built"}, delay)
	b := s.builds[0]
	s.builds = nil
	s.step(Built{Ticket: b.Ticket, Package: jamq.PackageHash{1}, Context: jamq.RefineContext{Anchor: b.Anchor.Hash, LookupAnchorSlot: 8}})
	delay, _ = s.q.Delayed()
	require.Equal(t, Delay{Number: 2, Since: s.now, Reason: "a package is being built"}, delay)
	s.run()
	s.blocks(2)
	delay, _ = s.q.Delayed()
	require.Equal(t, uint64(1), delay.Number)
	require.Equal(t, s.now, delay.Since, "its package died in this block")
}

// A host may name packages of others besides those that the queue asks for.
func TestHostPrerequisites(t *testing.T) {
	foreign := jamq.PackageHash{0xf0}
	s := newScene(t, nil)
	s.enqueue(1)
	s.enqueue(2)
	build := func(prerequisites ...jamq.PackageHash) error {
		b := s.builds[0]
		s.hashes++
		return s.try(Built{
			Ticket: b.Ticket, Package: jamq.PackageHash{byte(b.Number), byte(b.Version), s.hashes}, Bundle: b.Bundle,
			Context: jamq.RefineContext{Anchor: jamq.HeaderHash{'a', 7}, LookupAnchorSlot: s.slot, Prerequisites: prerequisites},
		})
	}
	require.NoError(t, build(foreign))
	s.builds = s.builds[1:]
	first := s.deliver()[0]
	require.ErrorIs(t, build(foreign), ErrInadmissible, "it does not name the package of bundle 1")
	require.ErrorIs(t, build(), ErrInadmissible)
	require.NoError(t, build(foreign, first))
	s.builds = nil
	second := s.deliver()[0]
	info, _ := s.q.Info(2)
	require.Equal(t, []jamq.PackageHash{foreign, first}, info.Versions[0].Prerequisites)

	// The foreign package is reported and never becomes available (D5). Both packages die with it
	// (D4), and neither death counts against its bundle.
	s.block(report(foreign, 0))
	s.log = nil
	s.blockOn(s.parent, s.slot+5, 'a', nil)
	require.Contains(t, s.log[0], "dead 1v1 since")
	require.Contains(t, s.log[0], anchor.PrerequisiteGone.String())
	require.Zero(t, s.q.items[0].losses()+s.q.items[1].losses())
	s.sends = nil
	again := s.run()
	require.NotContains(t, again, first)
	require.NotContains(t, again, second)
}
