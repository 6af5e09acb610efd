package bundlequeue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// build answers the only open build with a package at an anchor, and returns its hash.
func (s *scene) build(at jamq.HeaderHash, prerequisites ...jamq.PackageHash) jamq.PackageHash {
	s.t.Helper()
	require.Len(s.t, s.builds, 1)
	b := s.builds[0]
	s.builds = nil
	s.hashes++
	pkg := jamq.PackageHash{byte(b.Number), byte(b.Version), s.hashes}
	s.step(Built{
		Ticket: b.Ticket, Package: pkg, Bundle: b.Bundle,
		Context: jamq.RefineContext{Anchor: at, LookupAnchorSlot: s.slot, Prerequisites: prerequisites},
	})
	return pkg
}

// B1: versions that are forgotten still bound the anchors of those after them, across a restart and
// with the newest of their deaths.
func TestPruneKeepsTheEvidence(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	for version := 1; version <= 3; version++ {
		s.answer() // no guarantor is reached, so no death counts as a loss
		for s.state(1) != Queued {
			s.sends = nil
			s.block(nil)
		}
		died := s.parent
		s.step(FinalizedBlock{Hash: s.parent})
		s.block(nil)
		require.Len(t, s.builds, 1)
		require.Equal(t, died, s.builds[0].MinAnchor.Hash)
		info, _ := s.q.Info(1)
		require.Empty(t, info.Versions, "the dead version is forgotten")
		s.step(BuildFailed{Ticket: s.builds[0].Ticket})
		s.builds, s.now = nil, s.now.Add(time.Minute)
		s.restart()
		s.step(Tick{})
		require.Len(t, s.builds, 1)
		require.Equal(t, died, s.builds[0].MinAnchor.Hash)
	}
}

// B1 holds for a bundle with a predecessor as well, whether it names it or leaves it out.
func TestMinAnchorOfASuccessor(t *testing.T) {
	for name, accumulated := range map[string]bool{"named": false, "left out": true} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, nil)
			s.enqueue(1)
			first := s.run()[0]
			s.block(report(first, 0))
			s.enqueue(2)
			s.run() // 2v1 dies one block after its predecessor is accumulated
			if accumulated {
				done := s.block(accumulate(first, 0))
				require.NotEqual(t, Queued, s.state(2), "2v1 is alive at %s", done)
			}
			for s.state(2) == Submitted { // 2v1 is never reported
				s.block(nil)
			}
			died := s.parent
			s.block(nil)
			require.Len(t, s.builds, 1)
			require.Equal(t, uint64(2), s.builds[0].Number)
			require.Equal(t, died, s.builds[0].MinAnchor.Hash)
			require.Equal(t, accumulated, len(s.builds[0].Prerequisites) == 0)
		})
	}
}

// A package that is being built when its predecessor changes is of no use (B3).
func TestBuiltForAnotherPredecessor(t *testing.T) {
	t.Run("another version", func(t *testing.T) {
		s := newScene(t, nil)
		s.enqueue(1)
		s.answer()
		s.deliver()
		s.blocks(1)
		s.enqueue(2)
		late := s.builds[0]
		s.builds = nil
		s.blocks(2) // 1v1 is dead
		s.run()     // 1v2
		s.builds, s.log = []Build{late}, nil
		s.build(s.parentOf(1), late.Prerequisites...)
		require.Contains(t, s.log[0], anchor.Overtaken.String())
	})
	t.Run("no package", func(t *testing.T) {
		s := newScene(t, nil)
		s.enqueue(1)
		s.answer()
		s.deliver()
		s.blocks(1)
		s.enqueue(2)
		s.blocks(1) // 1v1 is dead
		s.log = nil
		s.build(s.parentOf(1), s.builds[0].Prerequisites...)
		require.Contains(t, s.log[0], anchor.Overtaken.String())
	})
	t.Run("left out on a chain that has not accumulated it", func(t *testing.T) {
		s, _, fork := leftOut(t)
		// On the other branch the package is still on its core, and alive.
		at := s.blockOn(fork, 10, 'b', nil)
		s.blockOn(at, 11, 'b', nil)
		s.blockOn(s.parent, 12, 'b', nil)
		require.Equal(t, Guaranteed, s.state(1))
		s.log = nil
		s.build(at)
		require.Contains(t, s.log[0], anchor.Overtaken.String())
	})
	t.Run("left out at an anchor before it", func(t *testing.T) {
		s, first, fork := leftOut(t)
		// On the other branch the package is accumulated two blocks later.
		s.blockOn(fork, s.slot+1, 'b', nil)
		at := s.parent
		s.blockOn(at, s.slot+1, 'b', nil)
		s.blockOn(s.parent, s.slot+1, 'b', accumulate(first, 0))
		s.blockOn(s.parent, s.slot+1, 'b', nil)
		s.log = nil
		s.build(at)
		require.Contains(t, s.log[0], anchor.Overtaken.String())
	})
}

// leftOut returns a scene in which the build of bundle 2 names no prerequisite,
// because the first package is accumulated on the best chain. The fork begins at
// the returned block, which reports that package.
func leftOut(t *testing.T) (s *scene, first jamq.PackageHash, fork jamq.HeaderHash) {
	t.Helper()
	s = newScene(t, nil)
	s.enqueue(1)
	first = s.run()[0]
	s.block(report(first, 0))
	fork = s.parent
	s.block(accumulate(first, 0))
	s.block(nil)
	s.enqueue(2)
	require.Empty(t, s.builds[0].Prerequisites)
	return s, first, fork
}

// parentOf returns the block of the best chain that lies the given number of
// blocks behind the newest one.
func (s *scene) parentOf(blocks int) jamq.HeaderHash {
	s.t.Helper()
	at, _, ok := s.q.anchorAt(anchor.Point{}, blocks)
	require.True(s.t, ok)
	return at.Hash
}

// B5: a version that is accumulated counts in any case, also if another one is reported. Only
// blocks that break the rules of the chain show that.
func TestAccumulatedVersionWins(t *testing.T) {
	for wins := range 2 {
		s := newScene(t, nil)
		s.enqueue(1)
		versions := s.run()[:1]
		s.blocks(3)
		sent := s.run()
		versions = append(versions, sent[len(sent)-1])
		// step imports a block that no chain has.
		step := func(fill func(*jamq.Block)) {
			s.slot++
			b := jamq.Block{Hash: jamq.HeaderHash{'a', byte(s.slot)}, Parent: s.parent, Slot: s.slot, AccumulatedKnown: true}
			fill(&b)
			_, err := s.q.Step(s.now, Imported{Block: b, Best: b.Hash})
			require.NoError(t, err)
			s.parent = b.Hash
		}
		step(report(versions[1-wins], 0))
		require.Equal(t, 2-wins, s.q.items[0].winner().number)
		require.Equal(t, Guaranteed, s.state(1))
		step(func(b *jamq.Block) { b.Accumulated = []jamq.PackageHash{versions[wins]} })
		require.Equal(t, 1+wins, s.q.items[0].winner().number)
		require.Equal(t, Accumulated, s.state(1))
		require.Equal(t, uint64(1), s.q.Stats().Totals.DuplicateGuaranteeRejected)
		require.Len(t, s.q.items[0].versions, 2, "a package that left is kept, whichever wins")
	}
}

// A bundle never becomes final before the one before it, even if the chain accumulates them in
// another order.
func TestFinalInOrder(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.enqueue(2)
	pkgs := s.run()
	finalize := func(pkg jamq.PackageHash) {
		s.block(func(b *jamq.Block) { b.AccumulatedKnown, b.Accumulated = true, []jamq.PackageHash{pkg} })
		s.step(FinalizedBlock{Hash: s.parent})
	}
	finalize(pkgs[1])
	require.Equal(t, []State{Submitted, Accumulated}, []State{s.state(1), s.state(2)})
	finalize(pkgs[0])
	require.Equal(t, []State{Finalized, Finalized}, []State{s.state(1), s.state(2)})
}

// B3: a package that is ready does not leave before the package of the bundle before it. A reorg
// that takes back a report can leave the one before without a package.
func TestSuccessorWaitsForItsPredecessor(t *testing.T) {
	s := newScene(t, func(c *Config) { c.MaxSubmitRetries = 0 })
	s.enqueue(1)
	s.enqueue(2)
	s.answer()
	require.Equal(t, []uint64{1, 2}, []uint64{s.sends[0].Number, s.sends[1].Number})

	// White box: bundle 1 has a package that has not left.
	v := s.q.items[0].versions[0]
	w := s.q.items[1].versions[0]
	v.sent, w.sent, w.attempts = false, false, 0
	delete(s.q.sends, w.ticket)
	w.ticket = 0
	s.q.out = nil
	s.q.send(w.item, w)
	require.Empty(t, s.q.out)
	v.sent = true
	s.q.send(w.item, w)
	require.NotEmpty(t, s.q.out)
}

// The same bytes are sent MaxSubmitRetries times more, and no more.
func TestSendsAreBounded(t *testing.T) {
	for retries := range 4 {
		s := newScene(t, func(c *Config) { c.MaxSubmitRetries = retries })
		s.enqueue(1)
		s.run()
		for range 10 {
			s.now = s.now.Add(time.Minute)
			s.step(Tick{})
			s.run()
		}
		require.Equal(t, uint64(retries+1), s.q.Stats().Totals.Sends)
	}
}

// The wait after a failed send doubles with each failure in a row. A send that succeeds ends the
// row.
func TestBackoffBeginsAnew(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.answer()
	wait := func(ok bool) time.Duration {
		t.Helper()
		e := s.sends[0]
		s.sends = nil
		s.step(Sent{Ticket: e.Ticket, OK: ok})
		wake, waits := s.q.NextWake(s.now)
		require.True(t, waits)
		waited := wake.Sub(s.now)
		s.now = wake
		s.step(Tick{})
		return waited
	}
	first := wait(false)
	second := wait(false)
	require.GreaterOrEqual(t, second, 2*first)
	require.Equal(t, s.q.cfg.SubmitRetryInterval, wait(true))
	require.Equal(t, first, wait(false))
}

// Failures of builds count since the last package left.
func TestTroubleEndsWithASend(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	for range 6 {
		s.step(BuildFailed{Ticket: s.builds[0].Ticket})
		s.builds, s.now = nil, s.now.Add(time.Minute)
		s.step(Tick{})
	}
	s.run()
	for s.state(1) != Queued {
		s.block(nil)
	}
	delay, _ := s.q.Delayed()
	require.Zero(t, delay.FailedBuilds)
	s.block(nil)
	s.step(BuildFailed{Ticket: s.builds[0].Ticket})
	s.builds = nil
	wake, waits := s.q.NextWake(s.now)
	require.True(t, waits)
	require.Less(t, wake.Sub(s.now), 2*s.q.cfg.BackoffBase, "as after a first failure")
}

// The queue expects a build to take as long as the slowest of the last eight.
func TestBuildTimesAreForgotten(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	for builds := range 12 {
		if builds == 2 {
			s.blocks(3)
		}
		s.useless(jamq.RefineContext{Anchor: s.otherFork()})
		want := 0
		if builds >= 2 && builds < 2+buildMemory {
			want = 3
		}
		require.Equal(t, want, s.q.buildBlocks(), "after %d builds", builds+1)
		if len(s.builds) == 0 {
			s.block(nil)
		}
	}
}

// Open asks for an open request again with an anchor that Built takes on the chain as it is now.
func TestOpenAsksForAnAnchorThatServes(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.run()
	for s.state(1) != Queued {
		s.block(nil)
	}
	s.blocks(12)
	s.restart()
	again := s.q.Open()[0].(Build)
	require.Equal(t, s.builds[0].Ticket, again.Ticket)
	require.Equal(t, s.builds[0].MinAnchor, again.MinAnchor)
	require.GreaterOrEqual(t, again.Anchor.Height, again.MinAnchor.Height)
	require.Greater(t, again.Anchor.Height, s.builds[0].Anchor.Height, "the chain grew meanwhile")
	s.builds, s.sends = []Build{again}, nil
	require.Len(t, s.run(), 1)
}

// If a bundle omits its predecessor, Open repeats its request with the block
// that accumulated the predecessor, or a later one.
func TestOpenRequestKeepsItsMinimum(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	first := s.run()[0]
	s.block(report(first, 0))
	done := s.block(accumulate(first, 0))
	s.block(nil)
	s.enqueue(2)
	require.Equal(t, done, s.builds[0].MinAnchor.Hash)
	s.restart()
	again := s.q.Open()[0].(Build)
	require.Equal(t, done, again.MinAnchor.Hash)
	require.Equal(t, done, again.Anchor.Hash)
}

// B2: a bundle is not handed back while a package of a bundle after it may be accumulated. After a
// reorg the death of the later package can be final later.
func TestFailureWaitsForSuccessors(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	first := s.run()[0]
	s.block(report(first, 0))
	s.block(accumulate(first, 0))
	s.blocks(8)
	s.enqueue(2)
	s.answer() // its package may have left, although no guarantor has confirmed that
	require.NoError(t, s.try(GiveUp{Number: 1}))
	branch := []jamq.HeaderHash{{'a', 8}} // from here on nothing is reported
	for slot := s.slot + 1; slot < 40; slot++ {
		branch = append(branch, s.blockOn(branch[len(branch)-1], slot, 'b', nil))
	}
	early, late := s.q.items[0].versions[0].trace.Status(), s.q.items[1].versions[0].trace.Status()
	require.Less(t, early.DeadSince.Height, late.DeadSince.Height)
	for i, hash := range branch {
		s.step(FinalizedBlock{Hash: hash})
		if height := uint64(8 + i); height < late.DeadSince.Height {
			require.Empty(t, s.failed, "at height %d, deaths at %d and %d", height, early.DeadSince.Height, late.DeadSince.Height)
		}
	}
	require.Equal(t, []uint64{1, 2}, []uint64{s.failed[0].Number, s.failed[1].Number})
}

// A clock that goes back by less than a second stands still. One that goes back by more is
// believed.
func TestSmallStepsBack(t *testing.T) {
	s := newScene(t, nil)
	s.now = s.now.Add(time.Hour)
	s.step(Tick{})
	at := s.q.now
	s.now = at.time().Add(-time.Second)
	s.step(Tick{})
	require.Equal(t, at, s.q.now)
	s.now = at.time().Add(-time.Second - 1)
	s.step(Tick{})
	require.Equal(t, instantOf(s.now), s.q.now)
}

// After a clock has gone back, no wait is longer than one that begins now.
func TestClockShortensEveryWait(t *testing.T) {
	s := newScene(t, nil)
	right := s.now
	s.now = right.Add(24 * time.Hour)
	s.enqueue(1)
	s.enqueue(2)
	s.answer()
	s.step(Sent{Ticket: s.sends[0].Ticket})
	s.sends = nil
	s.enqueue(3)
	s.step(Reserve{Number: 4})
	s.step(Tick{})
	s.q.items[2].notBefore = instantOf(s.now.Add(time.Minute)) // as after failed builds
	s.now = right
	s.step(Tick{})
	longest := instantOf(right.Add(s.q.cfg.BackoffMax + s.q.cfg.BackoffMax/8))
	require.LessOrEqual(t, s.q.items[0].versions[0].nextSend, longest)
	require.LessOrEqual(t, s.q.items[2].notBefore, longest)
	require.Equal(t, instantOf(right.Add(s.q.cfg.ReservationTimeout)), s.q.items[3].notBefore)
	for _, it := range s.q.items[:3] {
		require.LessOrEqual(t, it.queuedAt, instantOf(right))
	}
}
