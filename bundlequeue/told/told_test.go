package told_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/bundlequeue/told"
)

// scene is a simple queue with a feed, on the tiny chain: H is 8 blocks, U 5 and E 12 slots of 6 s.
type scene struct {
	t   *testing.T
	s   *told.Simple
	cfg bundlequeue.Config
	now time.Time
	log []string
	n   byte
}

func newScene(t *testing.T, change func(*bundlequeue.Config)) *scene {
	t.Helper()
	cfg := bundlequeue.DefaultConfig(jamq.Tiny())
	cfg.MaxSubmitRetries = 0
	if change != nil {
		change(&cfg)
	}
	s, err := told.New(cfg, quick(cfg.Spec))
	require.NoError(t, err)
	return &scene{t: t, s: s, cfg: cfg, now: jamq.CommonEra()}
}

// quick returns a configuration with a block in each slot.
func quick(spec jamq.ChainSpec) told.Config {
	cfg := told.DefaultConfig(spec)
	cfg.BlockTime = spec.SlotDuration
	return cfg
}

func (s *scene) ok(news []bundlequeue.Effect, err error) {
	s.t.Helper()
	require.NoError(s.t, err)
	for _, e := range news {
		s.log = append(s.log, e.String())
	}
}

func (s *scene) enqueue(number uint64) {
	s.t.Helper()
	s.ok(s.s.Enqueue(s.now, number, common.Hash{}, []byte("bundle")))
}

// submit builds and submits all that can be, and returns the packages.
func (s *scene) submit() (out []jamq.PackageHash) {
	s.t.Helper()
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

// blocks lets the time of some blocks pass.
func (s *scene) blocks(n int) {
	s.t.Helper()
	for range n {
		s.now = s.now.Add(6 * time.Second)
		s.ok(s.s.CheckTimeouts(s.now))
	}
}

func (s *scene) state(number uint64) bundlequeue.State {
	info, _ := s.s.Queue().Info(number)
	return info.State
}

// TestReportsBecomeBlocks: the queue follows what the host reports, with the next blocks.
func TestReportsBecomeBlocks(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.enqueue(2)
	pkgs := s.submit()
	require.Len(t, pkgs, 2)
	s.ok(s.s.OnGuaranteed(s.now, pkgs[0]))
	s.ok(s.s.OnGuaranteed(s.now, jamq.PackageHash{0xff})) // of another builder
	require.Equal(t, bundlequeue.Submitted, s.state(1), "the next block is not due")
	s.blocks(1)
	require.Equal(t, bundlequeue.Guaranteed, s.state(1))
	s.ok(s.s.OnAccumulated(s.now, pkgs[0]))
	s.ok(s.s.OnGuaranteed(s.now, pkgs[0]))
	s.blocks(1)
	require.Equal(t, bundlequeue.Accumulated, s.state(1), "an old report does not move it back")
	s.ok(s.s.OnFinalized(s.now, pkgs[1]))
	s.blocks(2)
	require.Equal(t, bundlequeue.Finalized, s.state(2), "its finality is that of the blocks before it as well")
	require.Equal(t, bundlequeue.Finalized, s.state(1))
}

// TestUnreportedPackageDies: without a report a package is given up when its anchor is H blocks
// old, and all that name it are, too. The next version of the successor names the new package.
func TestUnreportedPackageDies(t *testing.T) {
	s := newScene(t, nil)
	s.blocks(10)
	s.enqueue(1)
	s.enqueue(2)
	first := s.submit()
	info, _ := s.s.Queue().Info(1)
	left := 8 - int(s.s.Queue().Best().Height-info.Versions[0].Anchor.Height)
	s.blocks(left - 1)
	require.Equal(t, bundlequeue.Submitted, s.state(1))
	s.blocks(1)
	info, _ = s.s.Queue().Info(1)
	require.Equal(t, anchor.AnchorExpired, info.Versions[0].Dead)
	info, _ = s.s.Queue().Info(2)
	require.NotEqual(t, anchor.Alive, info.Versions[0].Dead)
	s.blocks(1)
	second := s.submit()
	require.Len(t, second, 2)
	info, _ = s.s.Queue().Info(2)
	require.Equal(t, second[:1], info.Versions[1].Prerequisites)

	// The clock was wrong: the first package is accumulated.
	s.ok(s.s.OnAccumulated(s.now, first[0]))
	s.blocks(2)
	info, _ = s.s.Queue().Info(1)
	require.Equal(t, bundlequeue.Accumulated, info.State)
	require.False(t, info.Versions[0].Accumulated.IsZero(), "a late report wins")
}

// TestGuaranteedPackageDies: a guaranteed package that is not accumulated is given up after an
// epoch, or by the host.
func TestGuaranteedPackageDies(t *testing.T) {
	for name, c := range map[string]struct {
		giveUp bool
		blocks int
	}{"by time": {false, 14}, "by the host": {true, 1}} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, nil)
			s.enqueue(1)
			pkg := s.submit()[0]
			s.ok(s.s.OnGuaranteed(s.now, pkg))
			s.blocks(1)
			require.Equal(t, bundlequeue.Guaranteed, s.state(1))
			if c.giveUp {
				s.ok(s.s.OnTimeoutOrFailure(s.now, pkg))
			} else {
				s.blocks(c.blocks - 3)
				require.Equal(t, bundlequeue.Guaranteed, s.state(1))
			}
			s.blocks(3)
			require.NotEqual(t, bundlequeue.Guaranteed, s.state(1))
		})
	}
}

// TestFailureIsHeld: a bundle that has used its tries is handed back when the death of its package
// is final. If the package is accumulated even later, the host learns it.
func TestFailureIsHeld(t *testing.T) {
	s := newScene(t, func(c *bundlequeue.Config) { c.MaxVersionRetries = 0 })
	s.enqueue(1)
	pkg := s.submit()[0]
	finality := told.DefaultConfig(s.cfg.Spec).Finality
	for s.s.Stats().Totals.Died == 0 {
		s.blocks(1)
	}
	s.blocks(finality - 1)
	require.Equal(t, bundlequeue.Queued, s.state(1))
	s.log = nil
	s.blocks(1)
	require.Equal(t, "failed 1: block 1: 1 packages lost", s.log[1])
	s.log = nil
	s.ok(s.s.OnAccumulated(s.now, pkg))
	s.blocks(3)
	require.Equal(t, []string{bundlequeue.Resurrected{Package: pkg}.String()}, s.log)
}

// TestFailuresAndStaleJobs: a job that failed comes again, a stale answer is refused, and a restart
// in between changes nothing.
func TestFailuresAndStaleJobs(t *testing.T) {
	s := newScene(t, func(c *bundlequeue.Config) { c.MaxSubmitRetries = 3 })
	s.enqueue(1)
	job, _ := s.s.Dequeue()
	s.ok(s.s.MarkFailed(s.now, job))
	require.False(t, s.s.CanSubmit(), "it waits a little")
	_, err := s.s.MarkSubmitted(s.now, job, jamq.PackageHash{1}, jamq.RefineContext{}, []byte(""))
	require.ErrorIs(t, err, bundlequeue.ErrNotExpected)
	s.blocks(1)
	first := s.submit()[0]
	s.ok(s.s.Requeue(s.now, 1))
	again, ok := s.s.Dequeue()
	require.True(t, ok)
	require.Equal(t, first, again.Package)
	require.Equal(t, 2, again.Attempt)
	s.ok(s.s.MarkFailed(s.now, again))
	s.ok(s.s.OnGuaranteed(s.now, first))
	s.blocks(1)
	s.ok(s.s.OnAccumulated(s.now, first)) // which no block has yet

	raw := s.s.AppendSnapshot(nil)
	back, err := told.Restore(s.cfg, quick(s.cfg.Spec), raw)
	require.NoError(t, err)
	require.Equal(t, raw, back.AppendSnapshot(nil))
	s.s = back
	s.blocks(1)
	require.Equal(t, bundlequeue.Accumulated, s.state(1))
	for _, damaged := range [][]byte{nil, raw[:len(raw)/2], []byte("{}"), []byte(`{"Queue":"AA=="}`)} {
		_, err := told.Restore(s.cfg, quick(s.cfg.Spec), damaged)
		require.ErrorIs(t, err, bundlequeue.ErrCorrupt)
	}
}

// TestEventBetween: an event between Dequeue and MarkSubmitted is not lost.
func TestEventBetween(t *testing.T) {
	s := newScene(t, func(c *bundlequeue.Config) { c.MaxSubmitRetries = 3 })
	s.enqueue(1)
	pkg := s.submit()[0]
	s.blocks(1)
	job, ok := s.s.Dequeue()
	require.True(t, ok)
	s.ok(s.s.OnAccumulated(s.now, pkg))
	s.ok(s.s.MarkSubmitted(s.now, job, pkg, jamq.RefineContext{}, []byte("")))
	s.blocks(2)
	require.Equal(t, bundlequeue.Accumulated, s.state(1))
	s.blocks(600)
	require.False(t, s.s.CanSubmit())
	require.Equal(t, bundlequeue.Finalized, s.state(1), "by its age")
}

// TestYoungerBundlesLive: the death of one package costs no bundle that does not name it.
func TestYoungerBundlesLive(t *testing.T) {
	s := newScene(t, nil)
	s.blocks(10)
	s.enqueue(1)
	pkg := s.submit()[0]
	s.ok(s.s.OnAccumulated(s.now, pkg))
	s.blocks(2)
	s.enqueue(2)
	s.submit()
	s.enqueue(3)
	s.submit()
	require.Equal(t, bundlequeue.Submitted, s.state(2))
	require.Equal(t, bundlequeue.Submitted, s.state(3))
	require.Zero(t, s.s.Stats().Totals.Died)
}

// TestClockJumps: after a wrong reading of the clock, blocks come again. After a night the queue
// does not process a block for each slot.
func TestClockJumps(t *testing.T) {
	s := newScene(t, nil)
	right := s.now
	s.now = right.Add(24 * time.Hour)
	s.enqueue(1)
	s.submit()
	before := s.s.Queue().Best().Height
	s.now = right
	s.blocks(20)
	require.NotZero(t, s.s.Stats().Totals.Died)
	require.GreaterOrEqual(t, s.s.Queue().Best().Height, before+20)
	before = s.s.Queue().Best().Height
	s.now = s.now.Add(24 * time.Hour)
	s.ok(s.s.CheckTimeouts(s.now))
	require.Less(t, s.s.Queue().Best().Height, before+100)
}

// TestMemoryIsBounded: packages that are final or long dead are forgotten.
func TestMemoryIsBounded(t *testing.T) {
	s := newScene(t, nil)
	most, height := 0, uint64(0)
	for number := uint64(1); number < 300; number++ {
		s.enqueue(number)
		for _, pkg := range s.submit() {
			s.ok(s.s.OnAccumulated(s.now, pkg))
		}
		s.blocks(2)
		if height++; height > 100 {
			most = max(most, len(s.s.AppendSnapshot(nil)))
		}
	}
	var early struct {
		Feed struct{ Packages []json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(s.s.AppendSnapshot(nil), &early))
	require.Less(t, len(early.Feed.Packages), 30)
	require.Positive(t, most)
}

// TestConfig: a configuration that cannot be used is refused.
func TestConfig(t *testing.T) {
	for _, spec := range []jamq.ChainSpec{jamq.Tiny(), jamq.Full()} {
		cfg := told.DefaultConfig(spec)
		require.NoError(t, cfg.Validate(&spec))
	}
	for name, change := range map[string]func(*told.Config){
		"BlockTime": func(c *told.Config) { c.BlockTime = 0 },
		"Finality":  func(c *told.Config) { c.Finality = 13 },
		"Remember":  func(c *told.Config) { c.Remember = -1 },
	} {
		cfg := told.DefaultConfig(jamq.Tiny())
		change(&cfg)
		_, err := told.New(bundlequeue.DefaultConfig(jamq.Tiny()), cfg)
		require.ErrorIs(t, err, told.ErrInvalidConfig)
		require.ErrorContains(t, err, name)
	}
}

// MarkSubmitted says "send" only of a package that the queue follows. A package that a reorg
// overtook while it was built must not leave, or two packages of one block could be reported side
// by side.
func TestMarkSubmittedRefusesOvertaken(t *testing.T) {
	root := jamq.Block{Hash: jamq.HeaderHash{'g'}}
	q, err := bundlequeue.New(bundlequeue.DefaultConfig(jamq.Tiny()), root)
	require.NoError(t, err)
	s := told.NewSimple(q)
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

// TestGiveUpOfAnAvailablePackage: a package that is given up directly after its report is dead with
// the next block. Once it is available, it lives for an epoch as it would without this.
func TestGiveUpOfAnAvailablePackage(t *testing.T) {
	for _, after := range []int{1, 2, 3, 6} {
		s := newScene(t, nil)
		s.blocks(3)
		s.enqueue(1)
		pkg := s.submit()[0]
		s.ok(s.s.OnGuaranteed(s.now, pkg))
		s.blocks(after)
		require.Equal(t, bundlequeue.Guaranteed, s.state(1))
		s.ok(s.s.OnTimeoutOrFailure(s.now, pkg))
		s.blocks(1)
		dead := func() bool {
			info, _ := s.s.Queue().Info(1)
			return info.Versions[0].Dead != anchor.Alive
		}
		require.Equal(t, after == 1, dead(), "%d blocks after the report", after)
		s.blocks(13)
		require.True(t, dead())
	}
}

// TestSnapshotWithoutAFeed: a queue whose host imports blocks has no feed after a restart either.
func TestSnapshotWithoutAFeed(t *testing.T) {
	cfg := bundlequeue.DefaultConfig(jamq.Tiny())
	q, err := bundlequeue.New(cfg, jamq.Block{Hash: jamq.HeaderHash{1}, Slot: 1})
	require.NoError(t, err)
	before := told.NewSimple(q)
	raw := before.AppendSnapshot(nil)
	after, err := told.Restore(cfg, quick(cfg.Spec), raw)
	require.NoError(t, err)
	require.Equal(t, raw, after.AppendSnapshot(nil))
	block := jamq.Block{Hash: jamq.HeaderHash{2}, Parent: jamq.HeaderHash{1}, Slot: 2}
	_, err = after.Step(jamq.CommonEra(), bundlequeue.Imported{Block: block, Best: block.Hash})
	require.NoError(t, err)
}
