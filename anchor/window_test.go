package anchor_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

func TestWindow(t *testing.T) {
	spec := jamq.Tiny() // H = 8 blocks
	require.Equal(t, uint64(18), anchor.LastReportable(&spec, 10))
	require.Equal(t, uint64(math.MaxUint64), anchor.LastReportable(&spec, math.MaxUint64-3), "heights do not wrap")
}

func TestLookupAnchorAge(t *testing.T) {
	spec := jamq.Tiny() // L = 24 slots
	require.False(t, anchor.LookupStale(&spec, 100, 99))
	require.False(t, anchor.LookupStale(&spec, 100, 124))
	require.True(t, anchor.LookupStale(&spec, 100, 125))
	require.False(t, anchor.LookupStale(&spec, jamq.MaxSlot-1, jamq.MaxSlot))

	facts := anchor.Facts{Head: point(11, 0), AnchorOnChain: true, AnchorHeight: 10, LookupAnchorSlot: 100}
	facts.Head.Slot = 124
	require.Equal(t, anchor.LookupExpired, anchor.Dead(&spec, &facts), "no block after it may report")
	facts.Head.Slot--
	require.Equal(t, anchor.Alive, anchor.Dead(&spec, &facts))
}
