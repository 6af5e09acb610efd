package told_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/bundlequeue/told"
)

// three returns a scene with three bundles whose packages are out.
func three(t *testing.T) (*toldScene, []jamq.PackageHash) {
	t.Helper()
	s := newToldScene(t, func(c *bundlequeue.Config) {
		c.Spec.Cores = 3
		c.Cores = []jamq.CoreIndex{0, 1, 2}
		c.MaxSubmitRetries = 0
	})
	for number := uint64(1); number <= 3; number++ {
		s.ok(s.s.Enqueue(s.now, number, common.Hash{}, []byte("bundle")))
	}
	pkgs := s.submit()
	require.Len(t, pkgs, 3)
	return s, pkgs
}

func (s *toldScene) dead(number uint64) anchor.Reason {
	info, _ := s.s.Queue().Info(number)
	return info.Versions[0].Dead
}

// Death spreads to all bundles behind a package (D4). When a late guarantee brings the package
// back, they come back as well.
func TestToldLifeSpreads(t *testing.T) {
	s, pkgs := three(t)
	s.ok(s.s.OnTimeoutOrFailure(s.now, pkgs[0]))
	require.Equal(t, anchor.ClockExpired, s.dead(1))
	require.Equal(t, anchor.PrerequisiteGone, s.dead(2))
	require.Equal(t, anchor.PrerequisiteGone, s.dead(3))
	s.ok(s.s.OnGuaranteed(s.now, pkgs[0]))
	for number := uint64(1); number <= 3; number++ {
		require.Equal(t, anchor.Alive, s.dead(number))
	}
	s.wait(54 * time.Second)
	require.Equal(t, anchor.ClockExpired, s.dead(2), "its time-out runs again")
}

// A package that was accumulated is not given up, whatever the host says.
func TestToldGiveUpLoses(t *testing.T) {
	s, pkgs := three(t)
	s.ok(s.s.OnAccumulated(s.now, pkgs[0]))
	s.ok(s.s.OnTimeoutOrFailure(s.now, pkgs[0]))
	require.Equal(t, anchor.Alive, s.dead(1))
	require.Equal(t, bundlequeue.Accumulated, s.state(1))
}

// A package names the one before it until that is accumulated.
func TestToldLeavesThePredecessorOut(t *testing.T) {
	s := newToldScene(t, nil)
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, []byte("one")))
	pkg := s.submit()[0]
	s.ok(s.s.Enqueue(s.now, 2, common.Hash{}, []byte("two")))
	job, ok := s.s.Dequeue()
	require.True(t, ok)
	require.Equal(t, []jamq.PackageHash{pkg}, job.Prerequisites)
	s.ok(s.s.MarkFailed(s.now, job))
	s.ok(s.s.OnAccumulated(s.now, pkg))
	s.wait(2 * time.Second)
	job, ok = s.s.Dequeue()
	require.True(t, ok)
	require.Empty(t, job.Prerequisites)
}

// Only packages of bundles that failed are remembered for Resurrected, and no more than
// Config.Remember.
func TestOnlyFailedPackagesAreBuried(t *testing.T) {
	s := newToldScene(t, func(c *bundlequeue.Config) { c.RetentionWindow, c.MaxSubmitRetries = 0, 0 })
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, []byte("one")))
	first := s.submit()[0]
	s.ok(s.s.OnTimeoutOrFailure(s.now, first))
	second := s.submit()[0]
	s.ok(s.s.OnFinalized(s.now, second))
	require.Empty(t, s.s.Queue().Infos(), "final and retired")
	s.log = nil
	s.ok(s.s.OnAccumulated(s.now, first))
	s.ok(s.s.OnAccumulated(s.now, second))
	require.Empty(t, s.log)
}

func TestBuriedAreBounded(t *testing.T) {
	cfg := bundlequeue.DefaultConfig(jamq.Tiny())
	cfg.MaxVersionRetries, cfg.MaxSubmitRetries = 0, 0
	evidence := told.DefaultConfig(cfg.Spec)
	evidence.Remember = 2
	simple, err := told.New(cfg, evidence)
	require.NoError(t, err)
	s := &toldScene{t: t, s: simple, cfg: cfg, now: jamq.CommonEra()}
	var pkgs []jamq.PackageHash
	for range 3 {
		s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, []byte("one")))
		pkg := s.submit()[0]
		pkgs = append(pkgs, pkg)
		s.ok(s.s.OnTimeoutOrFailure(s.now, pkg))
		s.wait(300 * time.Second)
	}
	s.log = nil
	for _, pkg := range pkgs {
		s.ok(s.s.OnAccumulated(s.now, pkg))
	}
	require.Len(t, s.log, 2, "the oldest is forgotten")
}

// A restored queue goes on exactly like the one that was saved.
func TestToldSnapshotKeepsEverything(t *testing.T) {
	s, pkgs := three(t)
	s.wait(10 * time.Second)
	s.ok(s.s.OnGuaranteed(s.now, pkgs[0]))
	s.wait(60 * time.Second) // one time-out of the first, and the others are given up
	restored := func() {
		before := s.s.AppendSnapshot(nil)
		back, _, err := told.Restore(s.cfg, told.DefaultConfig(s.cfg.Spec), before)
		require.NoError(t, err)
		require.Equal(t, before, back.AppendSnapshot(nil))
	}
	restored()
	s.ok(s.s.OnFinalized(s.now, pkgs[0]))
	restored()
	_, err := s.s.Step(s.now, bundlequeue.GiveUp{Number: 2})
	require.NoError(t, err)
	for range 10 {
		s.wait(100 * time.Second)
	}
	require.Positive(t, s.s.Stats().Totals.Entered(bundlequeue.FailedState))
	restored()
}

// A time-out that began while the clock was ahead is shortened when the clock goes back. No further
// send restarts it.
func TestClockGoesBackUnderATimeout(t *testing.T) {
	s := newToldScene(t, func(c *bundlequeue.Config) { c.MaxSubmitRetries = 0 })
	right := s.now
	s.now = right.Add(24 * time.Hour)
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, []byte("one")))
	s.submit()
	s.now = right
	s.wait(time.Second)
	s.wait(10 * time.Minute)
	require.Equal(t, uint64(1), s.s.Stats().Totals.Died)
}

// A package names one that was given up. The queue forgets that one, and another
// package of its bundle wins. The package that names it stays dead.
func TestForgottenPackageRevivesNothing(t *testing.T) {
	cfg := bundlequeue.DefaultConfig(jamq.Tiny())
	e, err := told.NewEvidence(cfg.Spec, told.DefaultConfig(cfg.Spec))
	require.NoError(t, err)
	q, err := bundlequeue.NewWith(cfg, e)
	require.NoError(t, err)
	begin := jamq.CommonEra()
	var builds []bundlequeue.Build
	sends := map[jamq.PackageHash]uint64{}
	step := func(at int, ev bundlequeue.Event) {
		t.Helper()
		out, err := q.Step(begin.Add(time.Duration(at)*time.Second), ev)
		require.NoError(t, err)
		require.NoError(t, q.Check())
		for _, e := range out {
			t.Logf("%3d s: %v", at, e)
			switch e := e.(type) {
			case bundlequeue.Build:
				builds = append(builds, e)
			case bundlequeue.Send:
				sends[e.Package] = e.Ticket
			}
		}
	}
	built := func(at int, pkg byte) {
		t.Helper()
		b := builds[0]
		builds = builds[1:]
		step(at, bundlequeue.Built{Ticket: b.Ticket, Package: jamq.PackageHash{pkg}, Context: jamq.RefineContext{Prerequisites: b.Prerequisites}})
	}
	dead := func() anchor.Reason {
		info, _ := q.Info(2)
		return info.Versions[0].Dead
	}
	step(0, bundlequeue.Enqueue{Number: 1})
	step(0, bundlequeue.Enqueue{Number: 2})
	built(0, 0x11)  // 1v1, whose send is never answered
	built(30, 0x21) // 2v1 names it
	step(60, bundlequeue.Tick{})
	require.Equal(t, anchor.PrerequisiteGone, dead())
	// This answer is late, for example after a restart.
	step(302, bundlequeue.Sent{Ticket: sends[jamq.PackageHash{0x21}], OK: true})
	step(303, bundlequeue.BuildFailed{Ticket: builds[0].Ticket}) // 1v2
	builds = builds[1:]
	step(310, bundlequeue.Tick{}) // 1v3 is requested, and 1v1 pruned
	built(311, 0x13)
	require.Equal(t, anchor.PrerequisiteGone, dead())
	step(312, bundlequeue.Told{Package: jamq.PackageHash{0x13}, State: bundlequeue.Guaranteed})
	t.Log("open requests of bundle 2:", builds)
	require.Equal(t, anchor.PrerequisiteGone, dead(), "it names 1v1, which the queue gave up")
}
