package bundlequeue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// A package of bundle 2 named that of bundle 1, and is dead because that one
// left recent history (D4). The queue forgets bundle 1 when it is final. Its
// report is still the proof that the package of bundle 2 is dead.
func TestRetentionKeepsProofOfDeath(t *testing.T) {
	for _, retention := range []int{0, 1} {
		s := newScene(t, func(c *Config) { c.RetentionWindow = retention })
		s.enqueue(1)
		first := s.run()[0]
		s.block(report(first, 0))
		s.blocks(2)
		s.enqueue(2)
		require.Equal(t, []jamq.PackageHash{first}, s.builds[0].Prerequisites)
		// The anchor is newer than the queue's, so that D4 is the first rule that holds.
		at := s.parent
		s.block(nil)
		s.step(Built{Ticket: s.builds[0].Ticket, Package: jamq.PackageHash{99}, Context: jamq.RefineContext{
			Anchor: at, LookupAnchorSlot: s.slot, Prerequisites: []jamq.PackageHash{first},
		}})
		s.builds = nil
		s.deliver()
		s.block(accumulate(first, 0))
		final := s.parent
		for s.version(2, 1).Dead == anchor.Alive {
			s.block(nil)
		}
		require.Equal(t, anchor.PrerequisiteGone, s.version(2, 1).Dead)
		s.block(nil)
		require.Len(t, s.builds, 1, "version 2 is requested")
		s.step(FinalizedBlock{Hash: final})
		_, known := s.q.Info(1)
		require.Equal(t, retention > 0, known)
		for _, window := range []int{retention, 0, 1, 0} {
			s.q.cfg.RetentionWindow = window
			s.killed()
			require.Equal(t, anchor.PrerequisiteGone, s.version(2, 1).Dead)
			require.Len(t, s.builds, 1)
		}
		s.block(nil)
		require.Equal(t, anchor.PrerequisiteGone, s.version(2, 1).Dead)
		require.True(t, s.q.Expects(s.builds[0].Ticket))
	}
}

// version returns a version of a bundle, which the queue holds.
func (s *scene) version(number uint64, version int) VersionInfo {
	s.t.Helper()
	info, ok := s.q.Info(number)
	require.True(s.t, ok)
	return info.Versions[version-1]
}
