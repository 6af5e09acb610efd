package bundlequeue

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

// A bundle of which nothing left fails at once, and all after it with it.
func TestGiveUpBeforeAnythingLeft(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.enqueue(2)
	s.log = nil
	s.step(GiveUp{Number: 1, Reason: "its witness is too large"})
	require.Equal(t, []string{
		"1v0 building → queued at none",
		"1v0 queued → failed at none",
		"failed 1: block 1: given up by the host: its witness is too large",
		"2v0 queued → failed at none",
		"failed 2: block 1: given up by the host: its witness is too large",
	}, s.log)
	require.ErrorIs(t, s.try(Built{Ticket: s.builds[0].Ticket}), ErrNotExpected)
	require.ErrorIs(t, s.try(GiveUp{Number: 1}), ErrWrongNumber)
}

// While a package is out, a bundle that was given up is neither sent nor built again, and is handed
// back only when the package is dead on the finalized chain.
func TestGiveUpWhileAPackageIsOut(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.enqueue(2)
	require.Len(t, s.run(), 2)
	s.step(GiveUp{Number: 1})
	s.blocks(4) // 1v1 dies at height 10
	s.sends = slices.DeleteFunc(s.sends, func(e Send) bool { return e.Number == 2 })
	for range 30 {
		s.now = s.now.Add(time.Minute)
		s.step(Tick{})
	}
	require.Empty(t, s.builds)
	require.Empty(t, s.sends)
	s.step(FinalizedBlock{Hash: jamq.HeaderHash{'a', 9}})
	require.Empty(t, s.failed, "another branch from height 9 may still report it")
	delay, _ := s.q.Delayed()
	require.Equal(t, "it is given up, and waits until its packages are dead on the finalized chain", delay.Reason)
	s.step(FinalizedBlock{Hash: jamq.HeaderHash{'a', 10}})
	require.Len(t, s.failed, 2)
	require.Equal(t, "block 1: given up by the host", s.failed[0].Reason)
	require.Equal(t, uint64(1), s.failed[1].Cause)
}

// A report wins over the order to give up, even if it comes late and on another branch.
func TestGiveUpLosesAgainstAReport(t *testing.T) {
	for name, late := range map[string]bool{"in time": false, "on another branch after its death": true} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, nil)
			s.enqueue(1)
			s.enqueue(2)
			sent := s.run()
			fork := s.block(nil)
			s.step(GiveUp{Number: 1})
			if late {
				s.blocks(3)
				require.Equal(t, Queued, s.state(1))
				s.parent = fork
			}
			for i, pkg := range sent {
				s.blockOn(s.parent, s.slot+jamq.Slot(6*(1-i)), 'b', report(pkg, jamq.CoreIndex(i)))
				s.blockOn(s.parent, s.slot+1, 'b', accumulate(pkg, jamq.CoreIndex(i)))
			}
			s.step(FinalizedBlock{Hash: s.parent})
			require.Equal(t, Finalized, s.state(1))
			require.Equal(t, Finalized, s.state(2))
			require.Empty(t, s.failed)
		})
	}
}

// A guarantor's final refusal ends the sends of these bytes. The package counts as out until it is
// dead, and then as lost.
func TestRefusedIsNotSentAgain(t *testing.T) {
	s := newScene(t, func(c *Config) { c.MaxVersionRetries = 0 })
	s.enqueue(1)
	s.answer()
	require.Len(t, s.sends, 1)
	s.step(Sent{Ticket: s.sends[0].Ticket, Refused: true})
	_, wakes := s.q.NextWake(s.now)
	require.False(t, wakes)
	s.sends = nil
	require.NoError(t, s.try(Retry{Number: 1}))
	for range 10 {
		s.now = s.now.Add(time.Minute)
		s.step(Tick{})
	}
	require.Empty(t, s.sends)
	require.Empty(t, s.builds)
	require.Equal(t, Sending, s.state(1))
	s.blocks(4)
	require.Equal(t, Queued, s.state(1))
	require.Empty(t, s.builds, "its only package is lost")
	s.step(FinalizedBlock{Hash: s.parent})
	require.Len(t, s.failed, 1)
}

// A Refused beside OK has no meaning.
func TestRefusedIsIgnoredWithOK(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.answer()
	s.step(Sent{Ticket: s.sends[0].Ticket, OK: true, Refused: true})
	s.sends = nil
	s.now = s.now.Add(s.q.cfg.SubmitRetryInterval)
	s.step(Tick{})
	require.Len(t, s.sends, 1)
}
