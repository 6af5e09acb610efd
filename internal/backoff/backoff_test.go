package backoff

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestWait: the wait doubles, never overflows, and ends at the longest.
func TestWait(t *testing.T) {
	for _, c := range []struct {
		first, most time.Duration
		failures    int
		want        time.Duration
	}{
		{time.Second, time.Minute, -1, time.Second},
		{time.Second, time.Minute, 0, time.Second},
		{time.Second, time.Minute, 1, time.Second},
		{time.Second, time.Minute, 2, 2 * time.Second},
		{time.Second, time.Minute, 6, 32 * time.Second},
		{time.Second, time.Minute, 7, time.Minute},
		{time.Second, time.Minute, math.MaxInt, time.Minute},
		{time.Hour, time.Minute, 1, time.Minute},
		{3, math.MaxInt64, 100, math.MaxInt64},
	} {
		require.Equal(t, c.want, Wait(c.first, c.most, c.failures), "%v", c)
	}
	rapid.Check(t, func(t *rapid.T) {
		first := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "first"))
		most := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "most"))
		n := rapid.IntRange(1, 100).Draw(t, "failures")
		wait, next := Wait(first, most, n), Wait(first, most, n+1)
		require.LessOrEqual(t, wait, next)
		require.LessOrEqual(t, next, most)
		if next < most {
			require.Equal(t, 2*wait, next)
		}
	})
}
