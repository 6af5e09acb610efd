package anchor_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// Without observations Best is Offset, whatever the chain.
func TestEmptyHistoryGivesTheTable(t *testing.T) {
	for h := 3; h <= 64; h++ {
		spec := jamq.Tiny()
		spec.RecentHistory = h
		d := anchor.NewDelays(&spec).Estimate()
		require.NoError(t, d.Validate())
		for ahead := range 3 * h {
			for cores := 1; cores <= 4; cores++ {
				require.Equal(t, anchor.Offset(&spec, ahead, cores), anchor.Best(&spec, d, ahead, cores), "H=%d, %d ahead on %d cores", h, ahead, cores)
			}
		}
	}
}

func TestPriorGivesWay(t *testing.T) {
	spec := jamq.Tiny()
	delays := anchor.NewDelays(&spec)
	require.InDeltaSlice(t, []float64{0.4, 0.4, 0, 0, 0, 0, 0}, []float64(delays.Estimate()), 1e-12)
	for n := 1; n <= 4; n++ {
		require.Equal(t, 6, anchor.Best(&spec, delays.Estimate(), 0, 1), "after %d reports in the fourth block", n-1)
		delays.Observe(4)
	}
	require.Equal(t, 4, anchor.Best(&spec, delays.Estimate(), 0, 1), "after four reports in the fourth block")
}

// Reports that short windows cut off are not taken for lost: the estimate finds the delays behind
// them.
func TestEstimateSeesBehindShortWindows(t *testing.T) {
	spec, random := jamq.Tiny(), rand.New(rand.NewPCG(3, 5))
	truth := anchor.Distribution{0.2, 0.2, 0.2, 0.2, 0.1}
	delays := anchor.NewDelays(&spec)
	naive := make([]float64, 7)
	const packages = 500 // fewer than would be halved
	for i := range packages {
		draw, delay := random.Float64(), 1
		for delay <= len(truth) && draw >= truth[delay-1] {
			draw -= truth[delay-1]
			delay++
		}
		window := 2
		if i%3 == 0 {
			window = 7 // a new version
		}
		if delay <= min(window, len(truth)) {
			delays.Observe(delay)
			naive[delay-1] += 1. / packages
		} else {
			delays.Lost(window)
		}
	}
	estimate := delays.Estimate()
	for k := 1; k <= 7; k++ {
		require.InDelta(t, truth.Within(k), estimate.Within(k), 0.08, "block %d", k)
	}
	require.Less(t, anchor.Distribution(naive).Within(5), 0.65, "counted plainly, a quarter of the packages would be missing")
	require.Equal(t, anchor.Best(&spec, truth, 0, 1), anchor.Best(&spec, estimate, 0, 1))
}

func TestDelaysFade(t *testing.T) {
	spec := jamq.Tiny()
	delays := anchor.NewDelays(&spec)
	for range 10_000 {
		delays.Observe(1)
		require.NoError(t, delays.Validate(&spec))
	}
	require.Greater(t, delays.Estimate()[0], 0.9)
	for range 600 {
		delays.Observe(5)
	}
	require.Greater(t, delays.Estimate()[4], 0.6, "the network has changed")
}

func TestDelaysIgnoreNonsense(t *testing.T) {
	spec := jamq.Tiny()
	delays := anchor.NewDelays(&spec)
	for _, blocks := range []int{0, -1, math.MinInt} {
		delays.Observe(blocks)
		delays.Lost(blocks)
	}
	require.Zero(t, delays.Total())
	delays.Observe(8)
	delays.Lost(math.MaxInt)
	require.Equal(t, uint32(2), delays.LostAfter[6], "both say only: not within seven blocks")
	delays.Observe(7)
	require.Equal(t, uint32(1), delays.ReportedIn[6], "offset 1 leaves seven blocks")

	var zero anchor.Delays
	zero.Observe(1)
	zero.Lost(1)
	require.Empty(t, zero.Estimate(), "the zero value learns nothing")
	require.ErrorIs(t, zero.Validate(&spec), anchor.ErrInvalidDelays)
	zero.ReportedIn = []uint32{math.MaxUint32}
	require.NoError(t, zero.Estimate().Validate())
}

func TestDelaysAreStored(t *testing.T) {
	spec := jamq.Tiny()
	delays := anchor.NewDelays(&spec)
	delays.Observe(2)
	delays.Lost(5)
	text, err := json.Marshal(delays)
	require.NoError(t, err)
	var loaded anchor.Delays
	require.NoError(t, json.Unmarshal(text, &loaded))
	require.NoError(t, loaded.Validate(&spec))
	require.Equal(t, *delays, loaded)

	loaded.LostAfter[0] = 600
	require.ErrorContains(t, loaded.Validate(&spec), "602 packages, want fewer than 512")
	loaded.ReportedIn = loaded.ReportedIn[:3]
	require.ErrorContains(t, loaded.Validate(&spec), "3 and 7 counters, want 7 each")
}

// Whatever is observed, the estimate is a distribution that leaves something to loss, and Best is
// in its range.
func TestEstimateIsADistribution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := anySpec(t)
		delays := anchor.NewDelays(&spec)
		for range rapid.IntRange(0, 700).Draw(t, "packages") {
			blocks := rapid.IntRange(-1, spec.RecentHistory+1).Draw(t, "blocks")
			if rapid.Bool().Draw(t, "reported") {
				delays.Observe(blocks)
			} else {
				delays.Lost(blocks)
			}
		}
		require.NoError(t, delays.Validate(&spec))
		d := delays.Estimate()
		require.NoError(t, d.Validate())
		require.Less(t, d.Within(len(d)), 1.0)
		require.Greater(t, d.Within(1), 0.0)
		best := anchor.Best(&spec, d, 0, 1)
		require.True(t, 1 <= best && best <= spec.RecentHistory-2, "%d", best)
	})
}
