package repeat

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTimes: the deep stage repeats most often, the race detector least, and none never.
func TestTimes(t *testing.T) {
	t.Setenv(seed, "")
	require.Zero(t, First())
	gate, step := Times(16, 100), Step()
	require.Positive(t, Times(1, 1))
	t.Setenv(seed, "7")
	require.EqualValues(t, 7, First())
	if race {
		require.Equal(t, []int{2, 2, 11, 11}, []int{gate, Times(16, 100), step, Step()})
	} else {
		require.Equal(t, []int{16, 100, 5, 1}, []int{gate, Times(16, 100), step, Step()})
	}
}
