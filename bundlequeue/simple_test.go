package bundlequeue

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// toldScene is a simple queue that goes by what it is told.
type toldScene struct {
	t   *testing.T
	s   *Simple[string]
	now time.Time
	log []string
	n   byte
}

func newToldScene(t *testing.T, change func(*Config)) *toldScene {
	t.Helper()
	cfg := DefaultConfig(jamq.Tiny())
	cfg.Evidence = ToldEvidence
	if change != nil {
		change(&cfg)
	}
	q, err := New[string](cfg, jamq.Block{})
	require.NoError(t, err)
	return &toldScene{t: t, s: NewSimple(q), now: jamq.CommonEra()}
}

func (s *toldScene) ok(news []Effect, err error) {
	s.t.Helper()
	require.NoError(s.t, err)
	for _, e := range news {
		s.log = append(s.log, e.String())
	}
	require.NoError(s.t, s.s.queue.checkOnAnyChain())
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

func (s *toldScene) state(n uint64) State {
	info, _ := s.s.queue.Info(n)
	return info.State
}

func TestSimpleRoad(t *testing.T) {
	s := newToldScene(t, nil)
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, "one"))
	s.ok(s.s.Enqueue(s.now, 2, common.Hash{}, "two"))
	pkgs := s.submit()
	require.Len(t, pkgs, 2)
	s.ok(s.s.OnGuaranteed(s.now, pkgs[0]))
	s.ok(s.s.OnGuaranteed(s.now, jamq.PackageHash{0xff}))
	s.ok(s.s.OnAccumulated(s.now, pkgs[0]))
	s.ok(s.s.OnGuaranteed(s.now, pkgs[0]))
	require.Equal(t, Accumulated, s.state(1), "a late guarantee does not move it back")
	s.ok(s.s.OnFinalized(s.now, pkgs[1]))
	require.Equal(t, Accumulated, s.state(2), "not before its predecessor")
	s.ok(s.s.OnFinalized(s.now, pkgs[0]))
	require.Equal(t, Finalized, s.state(1))
	require.Equal(t, Finalized, s.state(2))
	totals := s.s.Stats().Totals
	require.Equal(t, uint64(1), totals.DuplicateGuaranteeRejected)
	require.Zero(t, totals.DuplicateAccumulateRejected)
}

// By the clock: a time-out counts from the last send, a guaranteed package is given more time, and a late guarantee wins.
func TestToldTimeouts(t *testing.T) {
	s := newToldScene(t, func(c *Config) { c.MaxSubmitRetries = 1 })
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, "one"))
	s.ok(s.s.Enqueue(s.now, 2, common.Hash{}, "two"))
	first := s.submit()
	s.wait(6 * time.Second)
	require.Equal(t, first, s.submit(), "the same bytes again")
	s.wait(53 * time.Second)
	require.Equal(t, Submitted, s.state(1))
	s.log = nil
	s.wait(time.Second)
	require.Equal(t, []string{
		"dead 1v1 since none (clock: given up without evidence)",
		"1v0 submitted → queued at none",
		"dead 2v1 since none (clock: given up without evidence)",
		"2v0 submitted → queued at none",
		"1v0 queued → building at none",
	}, s.log)
	second := s.submit()
	require.Len(t, second, 2)
	info, _ := s.s.queue.Info(2)
	require.Equal(t, second[:1], info.Versions[1].Prerequisites, "2 is rebuilt on the new version")

	s.ok(s.s.OnGuaranteed(s.now, first[0]))
	info, _ = s.s.queue.Info(1)
	require.Equal(t, Guaranteed, info.State)
	require.Equal(t, anchor.Alive, info.Versions[0].Dead)
	s.ok(s.s.OnGuaranteed(s.now, second[0]))
	require.Equal(t, uint64(1), s.s.Stats().Totals.DuplicateGuaranteeRejected)
	third := s.submit()
	info, _ = s.s.queue.Info(2)
	require.Equal(t, anchor.ClockExpired, info.Versions[1].Dead, "2v2 named 1v2, which lost")
	require.Len(t, third, 1)
	require.Equal(t, first[:1], info.Versions[2].Prerequisites)

	s.wait(170 * time.Second)
	require.Equal(t, Guaranteed, s.state(1), "three times 60 s")
	s.wait(60 * time.Second)
	s.wait(60 * time.Second)
	require.NotEqual(t, Guaranteed, s.state(1))
}

// A bundle that has used its tries is held long after its last send before it is handed back.
func TestToldFailureHolds(t *testing.T) {
	s := newToldScene(t, func(c *Config) { c.MaxVersionRetries, c.MaxSubmitRetries = 0, 0 })
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, "one"))
	pkg := s.submit()[0]
	s.ok(s.s.OnTimeoutOrFailure(s.now, pkg))
	require.Equal(t, Queued, s.state(1))
	wake, ok := s.s.queue.NextWake(s.now)
	require.True(t, ok)
	require.Equal(t, 300*time.Second, wake.Sub(s.now))
	s.wait(299 * time.Second)
	require.Equal(t, Queued, s.state(1))
	s.log = nil
	s.wait(time.Second)
	require.Equal(t, "failed 1: block 1: 1 versions dead, 0 builds failed in a row", s.log[1])

	// The clock was wrong after all: the host hears of it.
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
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, "one"))
	job, _ := s.s.Dequeue()
	s.ok(s.s.MarkFailed(s.now, job))
	require.False(t, s.s.CanSubmit(), "it waits a little")
	_, err := s.s.MarkSubmitted(s.now, job, jamq.PackageHash{1}, jamq.RefineContext{}, "")
	require.ErrorIs(t, err, ErrNotExpected)
	s.wait(2 * time.Second)
	first := s.submit()[0]
	s.ok(s.s.Requeue(s.now, 1))
	again, ok := s.s.Dequeue()
	require.True(t, ok)
	require.Equal(t, first, again.Package)
	require.Equal(t, 2, again.Attempt)
	s.ok(s.s.MarkFailed(s.now, again))
	_, err = s.s.Step(s.now, Imported{})
	require.ErrorIs(t, err, ErrWrongEvidence)

	// Snapshots hold all of it.
	b := AppendSnapshot[string](nil, text{}, s.s.queue)
	back, err := Restore[string](s.s.queue.cfg, text{}, b)
	require.NoError(t, err)
	require.Equal(t, b, AppendSnapshot[string](nil, text{}, back))
	require.NoError(t, back.checkOnAnyChain())
}

func TestNumbers(t *testing.T) {
	s := newScene(t, nil)
	s.step(Reserve{Number: 1})
	s.enqueue(2)
	require.Empty(t, s.builds, "2 waits for what 1 will be")
	s.enqueue(1)
	require.Len(t, s.builds, 1)
	require.ErrorIs(t, s.try(Enqueue[string]{Number: 1}), ErrWrongNumber)
	require.ErrorIs(t, s.try(Release{Number: 1}), ErrWrongNumber)

	// A number that is given up takes those after it along, and is used again.
	s.step(Reserve{Number: 3})
	s.enqueue(4)
	s.log = nil
	s.step(Release{Number: 3})
	require.Equal(t, []string{
		"3v0 reserved → failed at none", "4v0 queued → failed at none", "failed 4: number 3 was released",
	}, s.log)
	require.Equal(t, uint64(3), s.q.Next())

	// Consensus gave 2 to somebody else.
	s.enqueue(3)
	s.step(Rekey{From: 2, To: 5})
	require.ErrorIs(t, s.try(Rekey{From: 2, To: 9}), ErrWrongNumber)
	require.ErrorIs(t, s.try(Rekey{From: 5, To: 1}), ErrWrongNumber)
	require.Equal(t, uint64(7), s.q.Next())
	info, ok := s.q.Info(6)
	require.True(t, ok)
	require.Equal(t, Queued, info.State)
	s.step(Rekey{From: 5, To: 2})
	require.Equal(t, uint64(4), s.q.Next())

	require.ErrorIs(t, s.try(Resize{}), ErrUnknownEvent)
	s.step(Resize{Depth: 1})
	require.False(t, s.q.CanEnqueue())
	require.Equal(t, 7, DepthFor(10, 3, 5))
}

// A reservation that nobody fills frees the road after its time.
func TestReservationExpires(t *testing.T) {
	s := newScene(t, nil)
	s.step(Reserve{Number: 1})
	s.enqueue(2)
	wake, ok := s.q.NextWake(s.now)
	require.True(t, ok)
	require.Equal(t, time.Minute, wake.Sub(s.now))
	s.now = wake
	s.log = nil
	s.step(Tick{})
	require.Equal(t, "failed 2: number 1 was reserved and never filled", s.log[2])
	require.Equal(t, uint64(1), s.q.Next())
	s.enqueue(1)
	require.Len(t, s.builds, 1)
}
