package bundlequeue

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

func TestStraightRoad(t *testing.T) {
	s := newScene(t, nil)
	s.log = nil
	s.enqueue(1)
	pkgs := s.run()
	s.block(report(pkgs[0], 0))
	s.block(accumulate(pkgs[0], 0))
	s.step(FinalizedBlock{Hash: s.parent})
	require.Equal(t, []string{
		"1v0 queued → building at none",
		"build 1v1 core=0 anchor=2/2:61020000 min=none needs=0",
		"1v1 building → sending at none",
		"send 1v1 core=0 attempt=1",
		"1v1 sending → submitted at none",
		"1v1 submitted → guaranteed at 9/9:61090000",
		"1v1 guaranteed → accumulated at 10/10:610a0000",
		"1v1 accumulated → finalized at 10/10:610a0000",
	}, s.log)
}

// The older the queue, the fresher the anchor; successors name their predecessor's package.
func TestB3Order(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.enqueue(2)
	s.enqueue(3)
	require.Len(t, s.builds, 1, "2 cannot name a package of 1 that does not exist yet")
	s.answer()
	require.Len(t, s.sends, 2)
	require.Equal(t, uint64(1), s.sends[0].Number)
	require.Equal(t, uint64(2), s.sends[1].Number)
	pkgs := s.deliver()
	info, _ := s.q.Info(2)
	require.Equal(t, pkgs[:1], info.Versions[0].Prerequisites)
	require.Equal(t, Queued, s.state(3), "both cores are held")

	// Once 1 is accumulated on the chain of a possible anchor, a new package of its child leaves it
	// out.
	s.block(report(pkgs[0], 0))
	s.run()
	require.Equal(t, Submitted, s.state(3), "1 is guaranteed, so its core is free for 3")
}

// A child of an accumulated parent is anchored at the block that accumulated
// the parent, and names no prerequisite.
func TestPrerequisiteLeftOutOnlyWhereParentIsAccumulated(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	pkgs := s.run()
	s.block(report(pkgs[0], 0))
	done := s.block(accumulate(pkgs[0], 0))
	s.enqueue(2)
	require.Equal(t, pkgs, s.builds[0].Prerequisites, "the accumulating block has no child yet: it cannot be the anchor")
	s.step(BuildFailed{Ticket: s.builds[0].Ticket})
	s.builds = nil
	s.block(nil)
	require.Empty(t, s.builds[0].Prerequisites)
	require.Equal(t, done, s.builds[0].MinAnchor.Hash)
	require.Equal(t, done, s.builds[0].Anchor.Hash)
}

// B1: a new version is built only if all earlier ones are dead, and is anchored
// at the block of the last death or later.
func TestB1NoDuplicate(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.run() // 1v1, anchored at height 2, is lost
	s.blocks(1)
	s.run()
	require.Equal(t, Submitted, s.state(1), "at height 9 it may still be reported")
	dead := s.block(nil) // height 10 = 2 + H
	require.Equal(t, Queued, s.state(1))
	require.Empty(t, s.builds, "the block of its death has no child, so nothing can be anchored there yet")
	s.block(nil)
	require.Len(t, s.builds, 1)
	require.Equal(t, dead, s.builds[0].MinAnchor.Hash)
	require.Equal(t, 2, s.builds[0].Version)

	b := s.builds[0]
	require.ErrorIs(t, s.try(Built{Ticket: b.Ticket, Package: jamq.PackageHash{7}, Context: jamq.RefineContext{Anchor: jamq.HeaderHash{'a', 9}}}),
		ErrInadmissible, "an anchor before the death of 1v1")
	info, _ := s.q.Info(1)
	require.ErrorIs(t, s.try(Built{Ticket: b.Ticket, Package: info.Versions[0].Package, Context: jamq.RefineContext{Anchor: b.Anchor.Hash}}),
		ErrInadmissible, "the same hash again")
	require.ErrorIs(t, s.try(Built{Ticket: b.Ticket, Package: jamq.PackageHash{7}, Context: jamq.RefineContext{Anchor: b.Anchor.Hash, Prerequisites: []jamq.PackageHash{{7}}}}),
		ErrInadmissible, "a package that needs itself")
	require.ErrorIs(t, s.try(Built{Ticket: b.Ticket, Package: jamq.PackageHash{7}, Context: jamq.RefineContext{Anchor: b.Anchor.Hash, Prerequisites: make([]jamq.PackageHash, 9)}}),
		ErrInadmissible, "more prerequisites than the chain allows")
	s.run()
	require.Equal(t, Submitted, s.state(1))
}

// B1 and B5: when a reorg takes the evidence of death away, the first version lives again and the
// second is dead.
func TestB5FirstWinsAcrossReorg(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	v1 := s.run()[0]
	fork := s.block(nil) // height 9
	s.block(nil)         // height 10: v1 is dead here
	s.block(nil)
	sent := s.run() // v1 once more at height 9, then v2
	v2 := sent[len(sent)-1]
	require.NotEqual(t, v1, v2)

	// Another branch from height 9 reports v1 in its last possible block.
	s.blockOn(fork, 12, 'b', report(v1, 0))
	s.blockOn(s.parent, 13, 'b', nil)
	require.Equal(t, Guaranteed, s.state(1))
	info, _ := s.q.Info(1)
	require.Equal(t, anchor.Alive, info.Versions[0].Dead)
	require.Equal(t, anchor.OtherFork, info.Versions[1].Dead, "v2's anchor is not on this branch")

	// And back again.
	s.step(Imported{Block: jamq.Block{Hash: jamq.HeaderHash{'a', 12}, Parent: jamq.HeaderHash{'a', 11}, Slot: 12}, Best: jamq.HeaderHash{'a', 12}})
	info, _ = s.q.Info(1)
	require.Equal(t, anchor.AnchorExpired, info.Versions[0].Dead)
	require.Equal(t, anchor.Alive, info.Versions[1].Dead)
	s.run()
	require.Equal(t, Submitted, s.state(1), "v2 is sent again")
}

// A package of the old branch that is still being built when the reorg comes is dropped, not sent.
func TestBuildOvertakenByReorg(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.run()
	fork := s.block(nil)
	s.blocks(2)
	require.Len(t, s.builds, 1)
	late := s.builds[0]
	s.builds = nil
	s.blockOn(fork, 12, 'b', nil)
	s.blockOn(s.parent, 13, 'b', nil)
	err := s.try(Built{Ticket: late.Ticket, Package: jamq.PackageHash{99}, Context: jamq.RefineContext{Anchor: late.Anchor.Hash}})
	require.NoError(t, err)
	info, _ := s.q.Info(1)
	require.Len(t, info.Versions, 1, "its anchor is on the branch that lost")
}

// B4: cores bound what is under way, whatever happens.
func TestB4Cores(t *testing.T) {
	s := newScene(t, func(c *Config) { c.Cores = []jamq.CoreIndex{1} })
	for n := range uint64(4) {
		s.enqueue(n + 1)
	}
	pkgs := s.run()
	require.Len(t, pkgs, 1)
	s.block(report(pkgs[0], 1))
	more := s.run()
	require.Len(t, more, 1, "guaranteed: the core serves the next bundle")
	// A reorg takes the report back: the bundle must wait for the core.
	s.blockOn(jamq.HeaderHash{'a', 8}, 20, 'b', nil)
	require.Equal(t, Queued, s.state(1))
	require.Equal(t, Submitted, s.state(2))
}

// Death spreads to the children at once; they are rebuilt in order, naming the new parent.
func TestDeathSpreadsToChildren(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.enqueue(2)
	first := s.run()
	s.blocks(2) // 1v1 dies at height 10, and 2v1 with it
	s.run()
	require.Equal(t, Queued, s.state(1))
	require.Equal(t, Queued, s.state(2))
	s.blocks(1)
	second := s.run()
	require.Len(t, second, 2)
	info, _ := s.q.Info(2)
	require.Equal(t, second[:1], info.Versions[1].Prerequisites)
	require.NotEqual(t, first, second)
}

// A resend carries the same bytes, to another guarantor, after the interval and not before.
func TestFastRetry(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.run()
	wake, ok := s.q.NextWake(s.now)
	require.True(t, ok)
	require.Equal(t, s.now.Add(6*time.Second), wake)
	s.step(Tick{})
	require.Empty(t, s.sends)
	s.now = wake
	s.step(Tick{})
	require.Equal(t, 2, s.sends[0].Attempt)
	again := s.sends[0]

	// A failed send backs off, longer each time.
	s.sends = nil
	s.step(Sent{Ticket: again.Ticket})
	first, _ := s.q.NextWake(s.now)
	s.now = first
	s.step(Tick{})
	s.step(Sent{Ticket: s.sends[0].Ticket})
	second, _ := s.q.NextWake(s.now)
	require.Greater(t, second.Sub(s.now), first.Sub(wake))
	require.ErrorIs(t, s.try(Sent{Ticket: again.Ticket, OK: true}), ErrNotExpected)
}

// B2: after its tries a bundle fails only when nothing of it can come back, and hands everything
// back in order.
func TestB2NoLoss(t *testing.T) {
	s := newScene(t, func(c *Config) { c.MaxVersionRetries = 1 })
	s.enqueue(1)
	s.enqueue(2)
	for range 40 {
		s.run()
		s.block(nil)
	}
	require.Equal(t, Queued, s.state(1), "both versions are dead on the best chain, but nothing is final")
	require.ErrorIs(t, s.try(Enqueue{Number: 2, Bundle: []byte("again")}), ErrWrongNumber)

	s.log = nil
	s.step(FinalizedBlock{Hash: s.parent})
	require.Equal(t, []string{
		"1v0 queued → failed at none",
		"failed 1: block 1: 2 packages lost",
		"2v0 queued → failed at none",
		"failed 2: block 1: 2 packages lost",
	}, s.log)
	require.Equal(t, uint64(1), s.q.Next(), "the numbers are used again")

	// A host that crashes before it has them gets them again from the last record.
	var last []Effect
	again, err := New(s.q.cfg, jamq.Block{Hash: jamq.HeaderHash{'g'}})
	require.NoError(t, err)
	require.NoError(t, Replay(again, s.records, func(_ Event, effects []Effect) { last = effects }))
	require.Contains(t, last, Effect(s.failed[0]))
	require.Contains(t, last, Effect(s.failed[1]))
	require.Equal(t, "bundle 1", string(s.failed[0].Bundle))
	require.Empty(t, s.q.Open())

	s.enqueue(1)
	s.block(nil)
	require.NotEmpty(t, s.builds)
	require.True(t, s.builds[0].MinAnchor.IsZero(), "what is dead on the finalized chain is dead wherever a new package can go")
}

// A late report wins over the local opinion that a bundle is exhausted.
func TestLateReportWinsOverExhaustion(t *testing.T) {
	s := newScene(t, func(c *Config) { c.MaxVersionRetries = 0 })
	s.enqueue(1)
	v1 := s.run()[0]
	fork := s.block(nil)
	s.blocks(3)
	require.Equal(t, Queued, s.state(1))
	s.blockOn(fork, 14, 'b', report(v1, 0))
	s.blockOn(s.parent, 15, 'b', accumulate(v1, 0))
	require.Equal(t, Accumulated, s.state(1))
}

// Builds that fail delay a bundle without limit and without a loop; the host can give it up.
func TestBuildFailuresDelay(t *testing.T) {
	s := newScene(t, func(c *Config) { c.MaxVersionRetries = 2 })
	s.enqueue(1)
	for failures := 1; failures <= 50; failures++ {
		require.Len(t, s.builds, 1)
		b := s.builds[0]
		s.builds = nil
		s.step(BuildFailed{Ticket: b.Ticket})
		delay, delayed := s.q.Delayed()
		require.True(t, delayed)
		require.Equal(t, failures, delay.FailedBuilds)
		require.Equal(t, fmt.Sprintf("%d builds failed", failures), delay.Reason)
		wake, ok := s.q.NextWake(s.now)
		require.True(t, ok)
		s.now = wake
		s.step(Tick{})
	}
	require.Empty(t, s.failed)
	s.step(GiveUp{Number: 1, Reason: "its witness is too large"})
	require.Len(t, s.failed, 1)
	require.Equal(t, "block 1: given up by the host: its witness is too large", s.failed[0].Reason)
	require.Equal(t, uint64(1), s.q.Next())
}

// B6: memory is bounded by depth, cores, retention and retries, whatever the
// chain does.
func TestB6Bounded(t *testing.T) {
	s := newScene(t, func(c *Config) { c.RetentionWindow, c.MaxQueueDepth = 3, 2 })
	for n := uint64(1); n <= 30; n++ {
		s.enqueue(n)
		pkgs := s.run()
		s.block(report(pkgs[0], 0))
		s.block(accumulate(pkgs[0], 0))
		s.step(FinalizedBlock{Hash: s.parent})
	}
	stats := s.q.Stats()
	require.Equal(t, 3, stats.Count[Finalized])
	require.Equal(t, uint64(28), stats.Base)
	require.Equal(t, uint64(30), stats.Totals.Entered(Finalized))
	_, held := s.q.Info(1)
	require.False(t, held)

	for n := uint64(31); n <= 34; n++ { // two cores and two that wait
		s.enqueue(n)
		s.answer()
	}
	require.ErrorIs(t, s.try(Enqueue{Number: 35}), ErrQueueFull)
	require.False(t, s.q.CanEnqueue())
}

func TestRefusedEventsChangeNothing(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.run()
	before := s.q.Stats()
	for _, ev := range []Event{
		Enqueue{Number: 1}, Enqueue{Number: 3}, nil,
		Built{Ticket: 99}, BuildFailed{}, Sent{}, Sent{Ticket: 99},
		FinalizedBlock{Hash: jamq.HeaderHash{1}},
		Imported{Block: jamq.Block{Hash: jamq.HeaderHash{1}, Parent: jamq.HeaderHash{2}, Slot: 3}},
	} {
		require.Error(t, s.try(ev), "%T %+v", ev, ev)
	}
	require.Equal(t, before, s.q.Stats())
}

func TestConfigValidate(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"Spec":                func(c *Config) { c.Spec.Cores = 0 },
		"Cores":               func(c *Config) { c.Cores = nil },
		"distinct cores":      func(c *Config) { c.Cores = []jamq.CoreIndex{1, 1} },
		"cores below":         func(c *Config) { c.Cores = []jamq.CoreIndex{2} },
		"MaxQueueDepth":       func(c *Config) { c.MaxQueueDepth = 0 },
		"MaxSubmitRetries":    func(c *Config) { c.MaxSubmitRetries = -1 },
		"SubmitRetryInterval": func(c *Config) { c.SubmitRetryInterval = 0 },
		"BackoffMax":          func(c *Config) { c.BackoffMax = 0 },
	} {
		cfg := DefaultConfig(jamq.Tiny())
		change(&cfg)
		require.ErrorIs(t, cfg.Validate(), ErrInvalidConfig, name)
	}
}

// The evidence for a build request may be on an abandoned branch, and another
// block of the best chain may prove the same death later. A package that is
// anchored between the two could meet its earlier version on a third branch.
func TestBuiltOnEvidenceOfALostFork(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	v1 := s.run()[0] // anchored at height 2
	s.block(nil)
	fork := s.parent // height 9
	s.blocks(2)      // dead since height 10 here
	require.Len(t, s.builds, 1)
	asked := s.builds[0]
	require.Equal(t, uint64(10), asked.MinAnchor.Height)
	best := s.parent

	parent := fork
	// v1 is reported in slot 20 and removed from its core in slot 25.
	for slot := jamq.Slot(20); slot <= 27; slot++ {
		b := jamq.Block{Hash: jamq.HeaderHash{'b', byte(slot)}, Parent: parent, Slot: slot}
		if slot == 20 {
			b.Reported = []jamq.Report{{Package: v1}}
		}
		s.step(Imported{Block: b, Best: best})
		parent = b.Hash
	}
	s.step(Imported{Block: jamq.Block{Hash: parent}, Best: parent})
	info, _ := s.q.Info(1)
	require.Equal(t, jamq.Slot(25), info.Versions[0].DeadSince.Slot)

	context := jamq.RefineContext{Anchor: jamq.HeaderHash{'b', 22}, LookupAnchorSlot: 22}
	s.step(Built{Ticket: asked.Ticket, Package: jamq.PackageHash{99}, Context: context})
	info, _ = s.q.Info(1)
	require.Len(t, info.Versions, 1, "the package is not taken")
}

// A bundle whose report a reorg took back, and that may not be sent any more, does not hold up
// those behind it: its bytes are out.
func TestReorgedBundleLetsOthersPass(t *testing.T) {
	s := newScene(t, func(c *Config) { c.MaxSubmitRetries = 0 })
	s.enqueue(1)
	v1 := s.run()[0]
	fork := s.parent
	s.block(report(v1, 0))
	s.enqueue(2)
	s.run()
	s.blockOn(fork, s.slot+1, 'b', nil)
	s.blockOn(s.parent, s.slot+1, 'b', nil)
	s.run()
	s.blockOn(fork, s.slot+1, 'c', nil)
	s.enqueue(3)
	require.Equal(t, Queued, s.state(1), "alive, without a core")
	s.run()
	require.Equal(t, Submitted, s.state(3))
}
