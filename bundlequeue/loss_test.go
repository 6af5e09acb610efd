package bundlequeue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// TestWhatIsALoss: a package that a guarantor knew is lost if it died
//
//   - by D5;
//   - by D2, and each package that it names is alive and was reported or accumulated;
//   - by D6, and each package that it names is alive.
func TestWhatIsALoss(t *testing.T) {
	alone, arrived, waits, dead, gone := []need{}, need{arrived: true}, need{}, need{dead: true}, need{dead: true, arrived: true}
	for _, c := range []struct {
		needs []need
		want  []anchor.Reason
	}{
		{alone, []anchor.Reason{anchor.AnchorExpired, anchor.Unavailable, anchor.NeverReady}},
		{[]need{arrived}, []anchor.Reason{anchor.AnchorExpired, anchor.Unavailable, anchor.NeverReady}},
		{[]need{waits}, []anchor.Reason{anchor.Unavailable, anchor.NeverReady}},
		{[]need{dead}, []anchor.Reason{anchor.Unavailable}},
		{[]need{gone}, []anchor.Reason{anchor.Unavailable}},
		{[]need{arrived, waits}, []anchor.Reason{anchor.Unavailable, anchor.NeverReady}},
		{[]need{arrived, gone}, []anchor.Reason{anchor.Unavailable}},
	} {
		for reason := anchor.Alive; reason <= anchor.Overtaken; reason++ {
			require.Equal(t, slices.Contains(c.want, reason), isLossBy(reason, c.needs), "%v, %v", reason, c.needs)
		}
	}
}

// TestLossNeedsAGuarantor: a package that no guarantor has accepted or refused is never lost.
func TestLossNeedsAGuarantor(t *testing.T) {
	for name, c := range map[string]struct {
		answer Sent
		lost   int
	}{
		"taken": {Sent{OK: true}, 1}, "refused": {Sent{Refused: true}, 1}, "not reached": {Sent{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, func(c *Config) { c.MaxSubmitRetries = 0 })
			s.enqueue(1)
			s.answer()
			c.answer.Ticket = s.sends[0].Ticket
			s.step(c.answer)
			s.blocks(2)
			require.Equal(t, anchor.AnchorExpired, s.q.items[0].versions[0].trace.Dead())
			require.Equal(t, c.lost, s.q.items[0].losses())
		})
	}
}

// A bundle gets MaxVersionRetries packages after its first lost one, and fails with the next loss.
func TestFailsAfterTheLastRetry(t *testing.T) {
	for retries := range 4 {
		s := newScene(t, func(c *Config) { c.MaxVersionRetries = retries })
		s.enqueue(1)
		sent := make(map[jamq.PackageHash]bool)
		for range 100 {
			for _, pkg := range s.run() {
				sent[pkg] = true
			}
			if len(s.failed) > 0 {
				break
			}
			s.block(nil)
			s.step(FinalizedBlock{Hash: s.parent})
		}
		require.Len(t, s.failed, 1, "retries %d", retries)
		require.Len(t, sent, retries+1)
		require.Equal(t, fmt.Sprintf("block 1: %d packages lost", retries+1), s.failed[0].Reason)
	}
}

// Builds that fail and packages that are of no use are no losses, whatever their number.
func TestOnlyLossesEndABundle(t *testing.T) {
	s := newScene(t, func(c *Config) { c.MaxVersionRetries = 0 })
	other := s.otherFork()
	s.enqueue(1)
	for i := range 20 {
		for len(s.builds) > 0 {
			b := s.builds[0]
			s.builds = nil
			if i%2 == 0 {
				s.step(BuildFailed{Ticket: b.Ticket})
				continue
			}
			s.hashes++
			s.step(Built{Ticket: b.Ticket, Package: jamq.PackageHash{s.hashes, 2}, Context: jamq.RefineContext{Anchor: other}})
		}
		s.now = s.now.Add(time.Minute)
		s.block(nil)
		s.step(FinalizedBlock{Hash: s.parent})
	}
	require.Empty(t, s.failed)
	require.Len(t, s.run(), 1, "it goes on as soon as a build succeeds")
	require.Equal(t, Submitted, s.state(1))
}

// After a loss a reorg may bring the package back to life. Then it is no loss any more.
func TestLossIsTakenBackByAReorg(t *testing.T) {
	s := newScene(t, func(c *Config) { c.MaxVersionRetries = 0 })
	s.enqueue(1)
	pkg := s.run()[0]
	fork := s.block(nil)
	s.blocks(2)
	delay, _ := s.q.Delayed()
	require.Equal(t, "1 packages are lost, and their death is not final", delay.Reason)
	s.blockOn(fork, 20, 'b', report(pkg, 0))
	s.blockOn(s.parent, 21, 'b', nil)
	require.Equal(t, Guaranteed, s.state(1))
	s.step(FinalizedBlock{Hash: fork})
	require.Empty(t, s.failed)
	require.Zero(t, s.q.items[0].losses())
}
