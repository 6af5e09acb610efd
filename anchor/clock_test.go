package anchor_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

func TestDefaultGuaranteeTimeout(t *testing.T) {
	tiny, full := jamq.Tiny(), jamq.Full()
	require.Equal(t, 54*time.Second, anchor.DefaultGuaranteeTimeout(&tiny))
	require.Equal(t, 126*time.Second, anchor.DefaultGuaranteeTimeout(&full))
	require.NoError(t, anchor.DefaultWallClock(&full).Validate(&full))

	tiny.RotationPeriod, tiny.SlotDuration = jamq.MaxSlot, math.MaxInt64
	require.Equal(t, time.Duration(math.MaxInt64), anchor.DefaultGuaranteeTimeout(&tiny), "does not overflow")
}

func TestWallClock(t *testing.T) {
	tiny := jamq.Tiny()
	require.NoError(t, anchor.WallClock{GuaranteeTimeout: 42 * time.Second}.Validate(&tiny))
	err := anchor.WallClock{GuaranteeTimeout: 41 * time.Second}.Validate(&tiny)
	require.ErrorIs(t, err, anchor.ErrInvalidClock)
	require.ErrorContains(t, err, "GuaranteeTimeout is 41s, want at least 42s")

	clock, sent := anchor.DefaultWallClock(&tiny), jamq.CommonEra()
	require.False(t, clock.Expired(sent, sent.Add(54*time.Second-1)))
	require.True(t, clock.Expired(sent, sent.Add(54*time.Second)))
	require.False(t, clock.Expired(sent, sent.Add(-time.Hour)), "a clock that was set back")
}

// The percentages were measured on simulated chains. Nine trials, fewer than 8-o blocks: 54 s
// contain the beginnings of nine slots, and the package lives as long as a block of its window is
// to come.
func TestReportableChance(t *testing.T) {
	tiny := jamq.Tiny()
	for _, c := range []struct {
		offset  int
		share   float64
		percent float64
		digits  int // of the percentage after the point
	}{
		{0, 0.01, 0.3, 1}, {0, 0.05, 7, 0}, {0, 0.10, 23, 0}, {0, 0.20, 56, 0},
		{1, 0.01, 0.01, 2}, {1, 0.05, 0.8, 1}, {1, 0.10, 5, 0}, {1, 0.20, 26, 0},
		{4, 0.01, 0, 2}, {4, 0.05, 0, 2}, {4, 0.10, 0.01, 2}, {4, 0.20, 0.3, 1},
	} {
		unit := math.Pow10(c.digits)
		have := 100 * anchor.ReportableChance(&tiny, c.offset, c.share, 54*time.Second)
		require.InDelta(t, c.percent, math.Round(have*unit)/unit, 1e-9, "offset %d, share %v: %v %%", c.offset, c.share, have)
	}
}

func TestReportableChanceAtTheEdges(t *testing.T) {
	tiny := jamq.Tiny()
	chance := func(offset int, share float64, slots int) float64 {
		return anchor.ReportableChance(&tiny, offset, share, time.Duration(slots)*tiny.SlotDuration)
	}
	require.Equal(t, 1.0, chance(1, 0, 6), "six blocks of seven")
	require.Equal(t, 0.0, chance(1, 0, 7))
	require.Equal(t, 1.0, chance(6, 0.5, -3))
	require.Equal(t, 0.0, chance(8, 0.5, 0), "no window at all")
	require.Equal(t, 1.0, chance(1, 1, 1000), "no blocks at all")
	require.Equal(t, 1.0, chance(1, math.NaN(), 1000))
	require.Equal(t, 0.0, chance(1, -1, 1000))
	require.InEpsilon(t, 8e-18, chance(0, 1e-18, 8), 1e-9, "one of eight slots was skipped")
	require.False(t, math.IsNaN(chance(0, 1e-300, 1e6)))
	require.InDelta(t, 0, chance(0, 0.5, 1e8), 1e-300)
	require.InDelta(t, math.Pow(0.3, 10), chance(7, 0.3, 10), 1e-15, "the window of one block")
	tiny.SlotDuration = 0
	require.Equal(t, 1.0, anchor.ReportableChance(&tiny, 1, 0.1, time.Hour), "an invalid spec does not panic")
}

func TestReportableChanceIsMonotone(t *testing.T) {
	spec := jamq.Full()
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.IntRange(0, 8).Draw(t, "offset")
		share := rapid.Float64Range(0, 1).Draw(t, "share")
		timeout := time.Duration(rapid.IntRange(0, 600).Draw(t, "seconds")) * time.Second
		chance := anchor.ReportableChance(&spec, offset, share, timeout)
		require.True(t, chance >= 0 && chance <= 1, "%v", chance)
		const rounding = 1e-12
		require.LessOrEqual(t, anchor.ReportableChance(&spec, offset+1, share, timeout), chance+rounding, "older anchors die sooner")
		require.LessOrEqual(t, anchor.ReportableChance(&spec, offset, share, timeout+6*time.Second), chance+rounding, "time only kills")
		require.GreaterOrEqual(t, anchor.ReportableChance(&spec, offset, min(1, share+0.1), timeout), chance-rounding, "skipped slots prolong life")
	})
}

// The formula holds on simulated chains whose slots are skipped at random, whatever the phase of
// the slots.
func TestReportableChanceBySimulation(t *testing.T) {
	tiny, random := jamq.Tiny(), rand.New(rand.NewPCG(1, 54))
	const runs, share, offset, sentAt = 200_000, 0.2, 1, 100
	alive := 0
	for range runs {
		head := uint64(sentAt)
		for range 9 {
			if random.Float64() >= share {
				head++
			}
		}
		if anchor.RemainingBlocks(&tiny, sentAt-offset, head) > 0 {
			alive++
		}
	}
	require.InDelta(t, anchor.ReportableChance(&tiny, offset, share, 54*time.Second), float64(alive)/runs, 0.005)
}
