package anchor_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

func TestBestOfKnownDistributions(t *testing.T) {
	spec := jamq.Tiny()
	for name, test := range map[string]struct {
		p      []float64
		offset int
	}{
		"always the next block":            {[]float64{0, 1}, 6},
		"the next block, a third lost":     {[]float64{0, 0.67}, 6},
		"always the fourth":                {[]float64{0, 0, 0, 0, 1}, 4},
		"half late":                        {[]float64{0, 0.5, 0, 0, 0.5}, 4},
		"few late":                         {[]float64{0, 0.9, 0, 0, 0, 0, 0, 0.02}, 6},
		"anything, nothing lost":           {[]float64{0, 0.15, 0.15, 0.15, 0.15, 0.15, 0.15, 0.1}, 1},
		"nothing is ever reported":         {[]float64{0}, 6},
		"nothing at all":                   {nil, 6},
		"more than there is, and negative": {[]float64{5, 3, -2}, 6},
	} {
		offset, _ := anchor.Best(&spec, test.p)
		require.Equal(t, test.offset, offset, name)
	}
}

// The formula agrees with playing it, and no offset does better than Best.
func TestBestAgainstPlay(t *testing.T) {
	spec := jamq.Tiny()
	random := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		p := make([]float64, 9)
		left := 1 - random.Float64()/2 // the rest is lost
		for k := 1; k < len(p); k++ {
			p[k] = left * random.Float64()
			left -= p[k]
		}
		best, blocks := anchor.Best(&spec, p)
		times := make([]float64, spec.RecentHistory-1)
		for o := 1; o <= spec.RecentHistory-2; o++ {
			times[o] = play(&spec, random, p, o)
			require.Greater(t, times[o], blocks*0.97, "offset %d beats %d in %v", o, best, p)
		}
		require.InEpsilon(t, blocks, times[best], 0.03, "%v", p)
	}
}

// play returns the mean time to a report if the first package is sent with an offset and later ones as soon as safe.
func play(spec *jamq.ChainSpec, random *rand.Rand, p []float64, offset int) float64 {
	const rounds = 20_000
	total := 0
	for range rounds {
		for window := spec.RecentHistory - offset; ; window = spec.RecentHistory - 1 {
			delay, u := 1, random.Float64()
			for delay < len(p) && u >= p[delay] {
				u -= p[delay]
				delay++
			}
			if delay < len(p) && delay <= window {
				total += delay
				break
			}
			total += window + 1 // the evidence block needs a child
		}
	}
	return float64(total) / rounds
}

func TestBestIsInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := jamq.Tiny()
		spec.RecentHistory = rapid.IntRange(3, 20).Draw(t, "H")
		var d anchor.Delays
		for range rapid.IntRange(0, 600).Draw(t, "n") {
			if k := rapid.IntRange(-1, 90).Draw(t, "k"); rapid.Bool().Draw(t, "lost") {
				d.Lost(k)
			} else {
				d.Observe(k)
			}
		}
		offset := d.Best(&spec)
		if offset < 1 || offset > spec.RecentHistory-2 {
			t.Fatalf("offset %d", offset)
		}
		sum := 0.0
		for _, p := range d.Distribution(spec.RecentHistory) {
			sum += p
		}
		if sum < 0 || sum > 1+1e-9 {
			t.Fatalf("chances add up to %v", sum)
		}
		b, _ := d.AppendBinary(nil)
		var back anchor.Delays
		if err := back.UnmarshalBinary(b); err != nil || back != d {
			t.Fatalf("read back: %v", err)
		}
		if err := back.UnmarshalBinary(b[:len(b)-1]); err == nil {
			t.Fatal("cut bytes were taken")
		}
	})
}

// What was lost with a short window says nothing about longer ones: a builder that has always taken old anchors still finds out,
// from its retries, that waiting longer would help.
func TestLossesAreCensored(t *testing.T) {
	spec := jamq.Tiny()
	var d anchor.Delays
	require.Equal(t, 6, d.Best(&spec), "nothing seen: the table's first row")
	for range 100 {
		d.Lost(2)
		d.Observe(3) // of a retry with a fresh anchor
	}
	require.Equal(t, 5, d.Best(&spec))
}

func TestWindowAndDeadlines(t *testing.T) {
	spec := jamq.Tiny()
	first, last := anchor.Window(&spec, 10)
	require.Equal(t, []uint64{11, 18}, []uint64{first, last})
	require.Equal(t, jamq.Slot(103), anchor.EarliestDeath(&spec, 10, anchor.Point{Height: 15, Slot: 100}))
	require.Equal(t, jamq.Slot(100), anchor.EarliestDeath(&spec, 10, anchor.Point{Height: 30, Slot: 100}))
	require.Equal(t, jamq.Slot(124), anchor.LookupExpires(&spec, 100))
	for slot, want := range map[jamq.Slot]jamq.Slot{0: 0, 3: 0, 4: 0, 7: 0, 8: 4, 11: 4, 12: 8} {
		first, last := anchor.GuaranteeSlots(&spec, slot)
		require.Equal(t, want, first, "slot %d", slot)
		require.Equal(t, slot, last)
	}
}

// What was measured on public vectors, in percent: how often 54 seconds are too short.
func TestClockIsUnsafe(t *testing.T) {
	spec := jamq.Tiny()
	timeout := anchor.DefaultGuaranteeTimeout(spec)
	require.Equal(t, 54*time.Second, timeout)
	for _, row := range []struct {
		offset int
		want   [4]float64 // at 1 %, 5 %, 10 % and 20 % of skipped slots
	}{
		{0, [4]float64{0.3, 7, 23, 56}},
		{1, [4]float64{0.01, 0.8, 5, 26}},
		{4, [4]float64{0, 0, 0.01, 0.3}},
	} {
		for i, skip := range []float64{0.01, 0.05, 0.10, 0.20} {
			have := 100 * anchor.ReportableChance(&spec, row.offset, skip, timeout)
			require.InDelta(t, row.want[i], have, 0.06+row.want[i]/20, "offset %d, %v skipped", row.offset, skip)
		}
	}
	require.Zero(t, anchor.ReportableChance(&spec, 6, 0, timeout))
	require.Equal(t, 1.0, anchor.ReportableChance(&spec, 0, 1, timeout))
}

func ExampleBest() {
	spec := jamq.Tiny()
	prompt := []float64{0, 0.8, 0.1} // a tenth is lost
	slow := []float64{0, 0, 0, 0.3, 0.6}
	for _, p := range [][]float64{prompt, slow} {
		offset, blocks := anchor.Best(&spec, p)
		fmt.Printf("offset %d, %.1f blocks\n", offset, blocks)
	}
	// Output:
	// offset 6, 1.5 blocks
	// offset 4, 4.3 blocks
}

func ExampleReportableChance() {
	spec := jamq.Tiny()
	timeout := anchor.DefaultGuaranteeTimeout(spec)
	fmt.Printf("after %v a package may still be reported: %.0f %%\n", timeout, 100*anchor.ReportableChance(&spec, 0, 0.2, timeout))
	// Output: after 54s a package may still be reported: 56 %
}
