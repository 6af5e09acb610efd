package bundlequeue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// asked answers a build as it was asked, and requires that the queue discards
// the package without an error.
func (s *scene) asked(b Build, reason anchor.Reason) {
	s.t.Helper()
	effects, err := s.q.Step(s.now, Built{
		Ticket: b.Ticket, Package: jamq.PackageHash{99}, Context: jamq.RefineContext{Anchor: b.Anchor.Hash, Prerequisites: b.Prerequisites},
	})
	require.NoError(s.t, err)
	require.NoError(s.t, s.q.Check())
	died := effects[0].(Died)
	require.Equal(s.t, reason, died.Reason)
	require.True(s.t, died.Unsent)
	require.False(s.t, s.q.Expects(b.Ticket))
}

// An answer that names the anchor for which it was asked is never a mistake of
// the host, even if the queue has forgotten that block meanwhile.
func TestAnswerAsAskedWithForgottenAnchor(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	b := s.builds[0]
	before := s.parent
	fork := jamq.HeaderHash{'a', 1}
	for slot := range jamq.Slot(300) { // more than the queue remembers of abandoned forks
		s.blockOn(before, 100+slot, 'x', nil)
		before = s.parent
	}
	s.blockOn(fork, 1000, 'b', nil)
	s.step(FinalizedBlock{Hash: s.parent})
	require.False(t, s.q.view.Knows(b.Anchor.Hash))
	s.asked(b, anchor.OtherFork)
}

// A reorg removes the block that accumulated the bundle before. After a restart
// the queue requests an older anchor. The host answers when the chain is back.
func TestAnswerAsAskedOnTheOtherFork(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	first := s.run()[0]
	fork := s.parent
	s.block(report(first, 0))
	s.block(accumulate(first, 0))
	back := s.block(nil)
	s.enqueue(2)
	before := s.builds[0]
	require.Empty(t, before.Prerequisites)
	s.blockOn(fork, 12, 'b', nil)
	s.killed()
	var again Build
	for _, b := range s.builds {
		if b.Ticket == before.Ticket {
			again = b
		}
	}
	require.Less(t, again.Anchor.Height, before.MinAnchor.Height)
	s.step(Imported{Block: jamq.Block{Hash: back}, Best: back})
	s.asked(again, anchor.Overtaken)
}

// killed restores the queue from its snapshot and asks for all that is open.
func (s *scene) killed() {
	s.t.Helper()
	q, err := Restore(s.q.cfg, s.q.AppendSnapshot(nil))
	require.NoError(s.t, err)
	s.q, s.builds, s.sends = q, nil, nil
	for _, e := range q.Open() {
		switch e := e.(type) {
		case Build:
			s.builds = append(s.builds, e)
		case Send:
			s.sends = append(s.sends, e)
		}
	}
}

// After a reorg to a fork on which the earlier version died in the newest block,
// no block can be the anchor yet. Open then returns the best block, and an
// answer with it is no mistake.
func TestOpenWithoutAnchor(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	beside := s.builds[0].Anchor.Height
	s.run()
	for len(s.builds) == 0 {
		s.block(nil)
	}
	head := s.blockOn(jamq.HeaderHash{'a', byte(beside - 1)}, s.slot+1, 'b', nil)
	s.killed()
	require.Equal(t, head, s.builds[0].Anchor.Hash)
	require.NoError(t, s.try(Built{Ticket: s.builds[0].Ticket, Package: jamq.PackageHash{99}, Context: jamq.RefineContext{Anchor: head}}))
}

// A package was reported before its build ended, and becomes available after it.
// Its deadline is that of an unreported package, so the snapshot stays true.
func TestReportedBeforeBuilt(t *testing.T) {
	s := newScene(t, nil)
	early := jamq.PackageHash{42}
	s.block(report(early, 0))
	s.enqueue(1)
	b := s.builds[0]
	s.step(Built{Ticket: b.Ticket, Package: early, Context: jamq.RefineContext{Anchor: b.Anchor.Hash, LookupAnchorSlot: s.slot}})
	s.block(func(b *jamq.Block) { b.Available, b.AccumulatedKnown = []jamq.CoreIndex{0}, true })
	for range 12 {
		s.block(nil)
		s.killed()
	}
}

// A restored queue wakes at the same time: it knows the bundle at which the last
// step stopped.
func TestWakeAfterRestart(t *testing.T) {
	s := newScene(t, func(c *Config) { c.SubmitRetryInterval = time.Minute })
	s.enqueue(1)
	pkg := s.run()[0]
	fork := s.parent
	s.block(report(pkg, 0))
	s.blockOn(fork, s.slot+1, 'b', nil)
	s.enqueue(2)
	s.step(BuildFailed{Ticket: s.builds[0].Ticket})
	before, ok := s.q.NextWake(s.now)
	require.True(t, ok)
	s.killed()
	after, _ := s.q.NextWake(s.now)
	require.Equal(t, before, after)
}
