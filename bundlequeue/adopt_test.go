package bundlequeue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

// TestAdopt: a bundle that JAM has accumulated with a package of which the record was lost is
// final, and the next one is packed on its own.
func TestAdopt(t *testing.T) {
	lost := jamq.PackageHash{0xfe}
	for name, before := range map[string]func(*scene){
		"no package was built":  func(*scene) {},
		"its package was built": (*scene).answer,
		"its package has left":  func(s *scene) { s.run() },
		"its package is dead":   func(s *scene) { s.run(); s.blocks(4) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, nil)
			s.enqueue(1)
			s.step(FinalizedBlock{Hash: s.block(accumulate(s.run()[0], 0))})
			require.Equal(t, Finalized, s.state(1))
			s.enqueue(2)
			s.enqueue(3)
			before(s)
			s.log, s.builds, s.sends = nil, nil, nil
			s.step(Adopt{Number: 2, Package: lost})
			require.Contains(t, s.log[0], "→ finalized at")
			require.Empty(t, s.failed)
			for _, number := range []uint64{1, 2} {
				_, found := s.q.Info(number)
				require.False(t, found, "block %d is forgotten", number)
			}
			s.blocks(4)
			require.NotEmpty(t, s.builds)
			require.Equal(t, uint64(3), s.builds[0].Number)
			require.Empty(t, s.builds[0].Prerequisites)
			require.ErrorIs(t, s.try(Adopt{Number: 2, Package: lost}), ErrWrongNumber)
		})
	}
}

// TestAdoptIsRefused: only the oldest bundle that is not final can be adopted, with a package that
// the queue does not know.
func TestAdoptIsRefused(t *testing.T) {
	s := newScene(t, nil)
	require.ErrorIs(t, s.try(Adopt{Number: 1}), ErrWrongNumber, "there is none")
	s.step(Reserve{Number: 1})
	require.ErrorIs(t, s.try(Adopt{Number: 1}), ErrWrongNumber, "it is reserved")
	s.enqueue(1)
	s.enqueue(2)
	require.ErrorIs(t, s.try(Adopt{Number: 2}), ErrWrongNumber, "an older one is not final")
	sent := s.run()
	require.ErrorIs(t, s.try(Adopt{Number: 1, Package: sent[0]}), ErrInadmissible, "it is a version")
	require.NoError(t, s.q.Check())
}
