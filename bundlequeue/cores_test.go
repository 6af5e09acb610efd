package bundlequeue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

// Bundles that wait for a core start as soon as the set grows.
func TestCoresGrow(t *testing.T) {
	s := newScene(t, func(c *Config) { c.Cores = []jamq.CoreIndex{1} })
	s.enqueue(1)
	s.enqueue(2)
	require.Len(t, s.run(), 1)
	s.step(Cores{Cores: []jamq.CoreIndex{1, 0}})
	require.Len(t, s.builds, 1)
	require.Equal(t, uint64(2), s.builds[0].Number)
	require.Equal(t, jamq.CoreIndex(0), s.builds[0].Core)
	require.Equal(t, 2, s.q.Stats().Cores)
	for name, cores := range map[string][]jamq.CoreIndex{"none": nil, "twice": {0, 0}, "not on the chain": {2}} {
		require.ErrorIs(t, s.try(Cores{Cores: cores}), ErrUnknownEvent, name)
		require.Equal(t, []jamq.CoreIndex{1, 0}, s.q.cores.indices())
	}
}

// A bundle keeps its core when the set shrinks, across a restart as well. No other bundle gets the
// core afterwards, unless it is in the set again.
func TestCoresShrinkWhileHeld(t *testing.T) {
	for name, back := range map[string]bool{"it leaves": false, "it comes back": true} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, nil)
			s.enqueue(1)
			s.enqueue(2)
			s.enqueue(3)
			sent := s.run()
			info, _ := s.q.Info(2)
			require.Equal(t, jamq.CoreIndex(1), info.Core)
			s.step(Cores{Cores: []jamq.CoreIndex{0}})
			require.Equal(t, []jamq.CoreIndex{0}, s.q.cores.indices())
			s.restart()
			require.Equal(t, []jamq.CoreIndex{0}, s.q.cores.indices())
			require.Equal(t, Submitted, s.state(2))
			require.NoError(t, s.try(Retry{Number: 2}))
			require.Len(t, s.sends, 1, "it is still sent to its core")
			require.Equal(t, jamq.CoreIndex(1), s.sends[0].Core)
			s.sends = nil
			if back {
				s.step(Cores{Cores: []jamq.CoreIndex{0, 1}})
			}
			s.block(report(sent[1], 1))
			require.Equal(t, Guaranteed, s.state(2))
			if back {
				require.Len(t, s.builds, 1)
				require.Equal(t, jamq.CoreIndex(1), s.builds[0].Core)
				return
			}
			require.Empty(t, s.builds, "core 1 is not in the set")
			s.block(report(sent[0], 0))
			require.Len(t, s.builds, 1)
			require.Equal(t, jamq.CoreIndex(0), s.builds[0].Core)
			require.Len(t, s.q.cores.list, 1)
		})
	}
}

// A core that the next block can use is preferred to one that is busy on the chain.
func TestFreeCoreIsPreferred(t *testing.T) {
	s := newScene(t, nil)
	s.block(report(jamq.PackageHash{0xee}, 0)) // of another rollup
	s.enqueue(1)
	require.Equal(t, jamq.CoreIndex(1), s.builds[0].Core)
}
