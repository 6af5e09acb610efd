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

// toldScene is a simple queue with told evidence.
type toldScene struct {
	t   *testing.T
	s   *told.Simple
	cfg bundlequeue.Config
	now time.Time
	log []string
	n   byte
}

func newToldScene(t *testing.T, change func(*bundlequeue.Config)) *toldScene {
	t.Helper()
	cfg := bundlequeue.DefaultConfig(jamq.Tiny())
	if change != nil {
		change(&cfg)
	}
	s, err := told.New(cfg, told.DefaultConfig(cfg.Spec))
	require.NoError(t, err)
	return &toldScene{t: t, s: s, cfg: cfg, now: jamq.CommonEra()}
}

func (s *toldScene) ok(news []bundlequeue.Effect, err error) {
	s.t.Helper()
	require.NoError(s.t, err)
	for _, e := range news {
		s.log = append(s.log, e.String())
	}
	require.NoError(s.t, s.s.Queue().Check())
}

// submit builds and submits what there is, and returns the packages.
func (s *toldScene) submit() []jamq.PackageHash {
	s.t.Helper()
	var out []jamq.PackageHash
	for s.s.CanSubmit() {
		job, ok := s.s.Dequeue()
		require.True(s.t, ok)
		pkg := job.Package
		if pkg.IsZero() {
			s.n++
			pkg = jamq.PackageHash{byte(job.Number), byte(job.Version), s.n}
		}
		s.ok(s.s.MarkSubmitted(s.now, job, pkg, jamq.RefineContext{Prerequisites: job.Prerequisites}, job.Bundle))
		out = append(out, pkg)
	}
	_, ok := s.s.Dequeue()
	require.False(s.t, ok)
	return out
}

func (s *toldScene) wait(d time.Duration) {
	s.t.Helper()
	s.now = s.now.Add(d)
	s.ok(s.s.CheckTimeouts(s.now))
}

func (s *toldScene) state(n uint64) bundlequeue.State {
	info, _ := s.s.Queue().Info(n)
	return info.State
}

func TestSimpleRoad(t *testing.T) {
	s := newToldScene(t, nil)
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, []byte("one")))
	s.ok(s.s.Enqueue(s.now, 2, common.Hash{}, []byte("two")))
	pkgs := s.submit()
	require.Len(t, pkgs, 2)
	s.ok(s.s.OnGuaranteed(s.now, pkgs[0]))
	s.ok(s.s.OnGuaranteed(s.now, jamq.PackageHash{0xff}))
	s.ok(s.s.OnAccumulated(s.now, pkgs[0]))
	s.ok(s.s.OnGuaranteed(s.now, pkgs[0]))
	require.Equal(t, bundlequeue.Accumulated, s.state(1), "a late guarantee does not move it back")
	s.ok(s.s.OnFinalized(s.now, pkgs[1]))
	require.Equal(t, bundlequeue.Accumulated, s.state(2), "not before its predecessor")
	s.ok(s.s.OnFinalized(s.now, pkgs[0]))
	require.Equal(t, bundlequeue.Finalized, s.state(1))
	require.Equal(t, bundlequeue.Finalized, s.state(2))
	totals := s.s.Stats().Totals
	require.Equal(t, uint64(1), totals.DuplicateGuaranteeRejected)
	require.Zero(t, totals.DuplicateAccumulateRejected)
}

// By the clock: a time-out counts from the last send, a guaranteed package is given more time, and
// a late guarantee wins.
func TestToldTimeouts(t *testing.T) {
	s := newToldScene(t, func(c *bundlequeue.Config) { c.MaxSubmitRetries = 1 })
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, []byte("one")))
	s.ok(s.s.Enqueue(s.now, 2, common.Hash{}, []byte("two")))
	first := s.submit()
	s.wait(6 * time.Second)
	require.Equal(t, first, s.submit(), "the same bytes again")
	s.wait(53 * time.Second)
	require.Equal(t, bundlequeue.Submitted, s.state(1))
	s.log = nil
	s.wait(time.Second)
	require.Equal(t, []string{
		"dead 1v1 since none (clock: given up without evidence)",
		"1v0 submitted → queued at none",
		"dead 2v1 since none (D4: unreported, prerequisite gone)",
		"2v0 submitted → queued at none",
		"1v0 queued → building at none",
	}, s.log)
	second := s.submit()
	require.Len(t, second, 2)
	info, _ := s.s.Queue().Info(2)
	require.Equal(t, second[:1], info.Versions[1].Prerequisites, "2 is rebuilt on the new version")

	s.ok(s.s.OnGuaranteed(s.now, first[0]))
	info, _ = s.s.Queue().Info(1)
	require.Equal(t, bundlequeue.Guaranteed, info.State)
	require.Equal(t, anchor.Alive, info.Versions[0].Dead)
	s.ok(s.s.OnGuaranteed(s.now, second[0]))
	require.Equal(t, uint64(1), s.s.Stats().Totals.DuplicateGuaranteeRejected)
	third := s.submit()
	info, _ = s.s.Queue().Info(2)
	require.Equal(t, anchor.PrerequisiteGone, info.Versions[1].Dead, "2v2 named 1v2, which lost")
	require.Len(t, third, 1)
	require.Equal(t, first[:1], info.Versions[2].Prerequisites)

	s.wait(170 * time.Second)
	require.Equal(t, bundlequeue.Guaranteed, s.state(1), "three times 60 s")
	s.wait(60 * time.Second)
	s.wait(60 * time.Second)
	require.NotEqual(t, bundlequeue.Guaranteed, s.state(1))
}

// A bundle that has used its tries is held long after its last send before it is handed back.
func TestToldFailureHolds(t *testing.T) {
	s := newToldScene(t, func(c *bundlequeue.Config) { c.MaxVersionRetries, c.MaxSubmitRetries = 0, 0 })
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, []byte("one")))
	pkg := s.submit()[0]
	s.ok(s.s.OnTimeoutOrFailure(s.now, pkg))
	require.Equal(t, bundlequeue.Queued, s.state(1))
	wake, ok := s.s.Queue().NextWake(s.now)
	require.True(t, ok)
	require.Equal(t, 300*time.Second, wake.Sub(s.now))
	s.wait(299 * time.Second)
	require.Equal(t, bundlequeue.Queued, s.state(1))
	s.log = nil
	s.wait(time.Second)
	require.Equal(t, "failed 1: block 1: 1 packages lost", s.log[1])

	// The clock was wrong: the host receives a Resurrected effect.
	s.log = nil
	s.ok(s.s.OnGuaranteed(s.now, pkg))
	s.ok(s.s.OnAccumulated(s.now, pkg))
	s.ok(s.s.OnFinalized(s.now, pkg))
	require.Len(t, s.log, 1)
	require.Contains(t, s.log[0], "resurrected")
	require.Equal(t, uint64(1), s.s.Stats().Totals.AccumulatedAfterFailed)
}

func TestSimpleFailuresAndStaleJobs(t *testing.T) {
	s := newToldScene(t, nil)
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, []byte("one")))
	job, _ := s.s.Dequeue()
	s.ok(s.s.MarkFailed(s.now, job))
	require.False(t, s.s.CanSubmit(), "it waits a little")
	_, err := s.s.MarkSubmitted(s.now, job, jamq.PackageHash{1}, jamq.RefineContext{}, []byte(""))
	require.ErrorIs(t, err, bundlequeue.ErrNotExpected)
	s.wait(2 * time.Second)
	first := s.submit()[0]
	s.ok(s.s.Requeue(s.now, 1))
	again, ok := s.s.Dequeue()
	require.True(t, ok)
	require.Equal(t, first, again.Package)
	require.Equal(t, 2, again.Attempt)
	s.ok(s.s.MarkFailed(s.now, again))
	_, err = s.s.Step(s.now, bundlequeue.Imported{})
	require.ErrorIs(t, err, bundlequeue.ErrWrongEvidence)

	// Snapshots hold all of it.
	b := s.s.AppendSnapshot(nil)
	back, news, err := told.Restore(s.cfg, told.DefaultConfig(s.cfg.Spec), b)
	require.NoError(t, err)
	require.Empty(t, news)
	require.Equal(t, b, back.AppendSnapshot(nil))
}

func timeoutBumpsYounger(t *testing.T) {
	s := newToldScene(t, nil)
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, []byte("one")))
	pkg := s.submit()[0]
	s.wait(50 * time.Second)
	s.submit()
	s.ok(s.s.OnGuaranteed(s.now, pkg))
	s.ok(s.s.OnAccumulated(s.now, pkg))
	s.ok(s.s.Enqueue(s.now, 2, common.Hash{}, []byte("two")))
	s.submit()
	s.wait(time.Second)
	s.ok(s.s.Enqueue(s.now, 3, common.Hash{}, []byte("three")))
	s.submit()
	s.wait(30 * time.Second)
	require.Equal(t, bundlequeue.Submitted, s.state(2))
	require.Equal(t, bundlequeue.Submitted, s.state(3))
	require.Zero(t, s.s.Stats().Totals.Died)
}

func eventBetween(t *testing.T) {
	s := newToldScene(t, nil)
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, []byte("one")))
	pkg := s.submit()[0]
	s.wait(6 * time.Second)
	job, ok := s.s.Dequeue()
	require.True(t, ok)
	s.ok(s.s.OnAccumulated(s.now, pkg))
	s.ok(s.s.MarkSubmitted(s.now, job, pkg, jamq.RefineContext{}, []byte("")))
	require.Equal(t, bundlequeue.Accumulated, s.state(1))
	s.wait(time.Hour)
	require.False(t, s.s.CanSubmit())
}

func timeoutFromFirstSend(t *testing.T) {
	s := newToldScene(t, nil)
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, []byte("one")))
	s.submit()
	for range 8 { // every send is another chance
		s.wait(53 * time.Second)
		s.submit()
		require.Equal(t, bundlequeue.Submitted, s.state(1))
	}
	require.Zero(t, s.s.Stats().Totals.Died)
}

func lateAccumulation(t *testing.T) {
	s := newToldScene(t, func(c *bundlequeue.Config) { c.MaxVersionRetries, c.MaxSubmitRetries = 0, 0 })
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, []byte("one")))
	pkg := s.submit()[0]
	s.ok(s.s.OnGuaranteed(s.now, pkg))
	for range 4 {
		s.wait(61 * time.Second)
	}
	require.Equal(t, uint64(1), s.s.Stats().Totals.Died)
	require.NotEmpty(t, s.s.Queue().Infos(), "given up, but not handed back")
	s.ok(s.s.OnAccumulated(s.now, pkg))
	require.Equal(t, bundlequeue.Accumulated, s.state(1))
	s.wait(time.Hour)
	require.Equal(t, bundlequeue.Accumulated, s.state(1))
	require.Zero(t, s.s.Stats().Totals.Entered(bundlequeue.FailedState))
}

func lateGuarantee(t *testing.T) {
	s := newToldScene(t, nil)
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, []byte("one")))
	pkg := s.submit()[0]
	s.ok(s.s.OnAccumulated(s.now, pkg))
	s.ok(s.s.OnGuaranteed(s.now, pkg))
	require.Equal(t, bundlequeue.Accumulated, s.state(1))
}

func foreignIsFree(t *testing.T) {
	s := newToldScene(t, func(c *bundlequeue.Config) { c.MaxQueueDepth = 10_000 })
	for s.s.Queue().CanEnqueue() {
		s.now = s.now.Add(time.Second)
		news, err := s.s.Enqueue(s.now, s.s.Queue().Next(), common.Hash{}, []byte(""))
		require.NoError(t, err)
		_ = news
	}
	foreign := jamq.PackageHash{0xff}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if news, err := s.s.OnGuaranteed(s.now, foreign); news != nil || err != nil {
			t.Error("a foreign package is news")
		}
	}))
}

// MarkSubmitted says "send" only of a package that the queue follows. A package that a reorg
// overtook while it was built must not leave, or two packages of one block could be reported side
// by side.
func TestMarkSubmittedRefusesOvertaken(t *testing.T) {
	root := jamq.Block{Hash: jamq.HeaderHash{'g'}}
	q, err := bundlequeue.New(bundlequeue.DefaultConfig(jamq.Tiny()), root)
	require.NoError(t, err)
	s, _ := told.NewSimple(q)
	step := func(ev bundlequeue.Event) {
		t.Helper()
		_, err := s.Step(jamq.CommonEra(), ev)
		require.NoError(t, err)
	}
	grow := func(fork byte, parent jamq.HeaderHash, from, to jamq.Slot) {
		for slot := from; slot <= to; slot++ {
			b := jamq.Block{Hash: jamq.HeaderHash{fork, byte(slot)}, Parent: parent, Slot: slot}
			best := b.Hash
			if fork != 'a' && slot < to {
				best = q.Best().Hash
			}
			step(bundlequeue.Imported{Block: b, Best: best})
			parent = b.Hash
		}
	}
	grow('a', root.Hash, 1, 8)
	step(bundlequeue.Enqueue{Number: 1, Bundle: []byte("one")})
	job, ok := s.Dequeue()
	require.True(t, ok)
	grow('b', jamq.HeaderHash{'a', 6}, 17, 19)
	context := jamq.RefineContext{Anchor: jamq.HeaderHash{'a', 7}, LookupAnchorSlot: 7, Prerequisites: job.Prerequisites}
	news, err := s.MarkSubmitted(jamq.CommonEra(), job, jamq.PackageHash{1}, context, []byte("one"))
	require.ErrorIs(t, err, bundlequeue.ErrNotExpected)
	require.False(t, q.Holds(jamq.PackageHash{1}))
	require.Equal(t, anchor.OtherFork, news[0].(bundlequeue.Died).Reason)
}

// One wrong reading of the clock does not stop the time-outs for as long as it was off.
func TestClockJumpsAndComesBack(t *testing.T) {
	s := newToldScene(t, nil)
	right := s.now
	s.now = right.Add(24 * time.Hour)
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, []byte("one")))
	s.submit()
	s.now = right
	s.wait(time.Second)
	for range 10 {
		s.wait(60 * time.Second)
	}
	require.NotZero(t, s.s.Stats().Totals.Died, "time-outs run again")
}

// A package that is being sent is out, although the answer to the send has not come.
func TestUnansweredSendIsHeld(t *testing.T) {
	s := newToldScene(t, func(c *bundlequeue.Config) { c.MaxVersionRetries, c.MaxSubmitRetries = 0, 0 })
	step := func(ev bundlequeue.Event) []bundlequeue.Effect {
		t.Helper()
		effects, err := s.s.Queue().Step(s.now, ev)
		require.NoError(t, err)
		return effects
	}
	build := step(bundlequeue.Enqueue{Number: 1, Bundle: []byte("one")})[1].(bundlequeue.Build)
	step(bundlequeue.Built{Ticket: build.Ticket, Package: jamq.PackageHash{1}, Bundle: []byte("one")})
	step(bundlequeue.GiveUp{Number: 1})
	step(bundlequeue.Told{Package: jamq.PackageHash{1}, State: bundlequeue.Queued})
	s.wait(299 * time.Second)
	require.Equal(t, bundlequeue.Queued, s.state(1))
	s.wait(time.Second)
	require.Equal(t, uint64(1), s.s.Stats().Totals.Entered(bundlequeue.FailedState))
}
