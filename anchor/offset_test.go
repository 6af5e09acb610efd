package anchor_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

func TestOffsetByPositionAndCores(t *testing.T) {
	tiny := jamq.Tiny()
	for _, c := range []struct {
		cores     int
		positions [2]int // first and last bundle in the queue with this offset
		want      int
	}{
		{1, [2]int{0, 0}, 6}, {1, [2]int{1, 1}, 5}, {1, [2]int{5, 100}, 1},
		{2, [2]int{0, 1}, 6}, {2, [2]int{2, 3}, 5}, {2, [2]int{4, 5}, 4}, {2, [2]int{8, 9}, 2}, {2, [2]int{10, 100}, 1},
		{3, [2]int{0, 2}, 6}, {3, [2]int{3, 5}, 5}, {3, [2]int{15, 100}, 1},
	} {
		for position := c.positions[0]; position <= c.positions[1]; position++ {
			require.Equal(t, c.want, anchor.Offset(&tiny, position, c.cores), "position %d on %d cores", position, c.cores)
		}
	}
}

func TestOffsetIsNeverZeroNorStale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := jamq.Tiny()
		spec.RecentHistory = rapid.IntRange(3, 64).Draw(t, "H")
		ahead, cores := rapid.Int().Draw(t, "ahead"), rapid.Int().Draw(t, "cores")
		offset := anchor.Offset(&spec, ahead, cores)
		require.GreaterOrEqual(t, offset, 1)
		require.LessOrEqual(t, offset, spec.RecentHistory-2)
	})
}
