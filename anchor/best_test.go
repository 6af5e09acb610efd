package anchor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// steady reports a share of the packages, each block the same part of those that still wait.
func steady(hazard float64) anchor.Distribution {
	d, left := make(anchor.Distribution, 40), 1.0
	for i := range d {
		d[i] = left * hazard
		left -= d[i]
	}
	return d
}

func TestBest(t *testing.T) {
	spec := jamq.Tiny()
	for _, c := range []struct {
		name   string
		delays anchor.Distribution
		want   int
	}{
		{"all in the first block", anchor.Distribution{1}, 6},
		{"half lost, the rest in the first block", anchor.Distribution{0.5}, 6},
		{"first or second block, a tenth lost", anchor.Distribution{0.6, 0.3}, 6},
		{"always in the third block", anchor.Distribution{0, 0, 1}, 5},
		{"third block, a fifth lost", anchor.Distribution{0, 0, 0.8}, 5},
		{"first or fifth, the fifth is worth it", anchor.Distribution{0.5, 0, 0, 0, 0.5}, 3},
		{"mostly first, a new version beats the fifth", anchor.Distribution{0.8, 0, 0, 0, 0.2}, 6},
		{"spread evenly over six blocks", anchor.Distribution{1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6}, 2},
		{"a third of those that wait, each block", steady(1. / 3), 1},
		{"a tenth of those that wait, each block", steady(0.1), 1},
		{"nothing is ever reported: the table", anchor.Distribution{}, 6},
		{"too late for any anchor: the table", anchor.Distribution{0, 0, 0, 0, 0, 0, 0, 1}, 6},
		{"invalid: the table", anchor.Distribution{math.NaN()}, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, anchor.Best(&spec, c.delays, 0, 2))
		})
	}
}

func TestExpected(t *testing.T) {
	spec := jamq.Tiny()
	// A new version takes R = 0.5·1 + 0.5·(8 + R) blocks, which is 9.
	half := anchor.Distribution{0.5}
	require.InDelta(t, 9, anchor.Expected(&spec, half, 1), 1e-12)
	require.InDelta(t, 0.5+0.5*(3+9), anchor.Expected(&spec, half, 6), 1e-12)
	require.InDelta(t, anchor.Expected(&spec, half, 1), anchor.Expected(&spec, half, -7), 1e-12)
	require.InDelta(t, 1+9, anchor.Expected(&spec, half, 99), 1e-12, "no chance, and a new version a block later")
	require.Equal(t, math.Inf(1), anchor.Expected(&spec, nil, 3))
	require.True(t, math.IsNaN(anchor.Expected(&spec, anchor.Distribution{2}, 3)))
	spec.RecentHistory = -3
	require.Equal(t, math.Inf(1), anchor.Expected(&spec, half, 3), "an invalid spec does not panic")
	require.Equal(t, 1, anchor.Best(&spec, half, 0, 1))
}

// anySpec draws a chain with another length of recent history.
func anySpec(t *rapid.T) jamq.ChainSpec {
	spec := jamq.Tiny()
	spec.RecentHistory = rapid.IntRange(3, 16).Draw(t, "H")
	return spec
}

// anyDelays draws a distribution by which at least a tenth is reported within the first two blocks.
func anyDelays(t *rapid.T) anchor.Distribution {
	weights := rapid.SliceOfN(rapid.Float64Range(0, 1), 2, 20).Draw(t, "weights")
	sum := rapid.Float64Range(0, 4).Draw(t, "lost")
	for _, w := range weights {
		sum += w
	}
	d := make(anchor.Distribution, len(weights))
	for i, w := range weights {
		d[i] = 0.9 * w / max(sum, 1e-9)
	}
	d[rapid.IntRange(0, 1).Draw(t, "soon")] += 0.1
	return d
}

// enumerate adds up the outcomes one by one: reported in block k of attempt n, each with its time
// and probability.
func enumerate(spec *jamq.ChainSpec, d anchor.Distribution, offset int) float64 {
	expected, begin, chance := 0.0, 0, 1.0
	for chance > 1e-15 {
		window, lost := spec.RecentHistory-offset, chance
		for k := 1; k <= min(window, len(d)); k++ {
			expected += chance * d[k-1] * float64(begin+k)
			lost -= chance * d[k-1]
		}
		begin, chance, offset = begin+window+1, lost, 1
	}
	return expected
}

func TestExpectedIsTheSumOverAllOutcomes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, d := anySpec(t), anyDelays(t)
		offset := rapid.IntRange(1, spec.RecentHistory).Draw(t, "offset")
		require.InEpsilon(t, enumerate(&spec, d, offset), anchor.Expected(&spec, d, offset), 1e-9)
	})
}

// Best beats every other offset, by enumeration, and among equals takes the oldest anchor.
func TestBestIsTheLeastOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, d := anySpec(t), anyDelays(t)
		best := anchor.Best(&spec, d, 0, 1)
		require.True(t, 1 <= best && best <= spec.RecentHistory-2, "%d", best)
		least := enumerate(&spec, d, best)
		for offset := 1; offset <= spec.RecentHistory-2; offset++ {
			require.LessOrEqual(t, least, enumerate(&spec, d, offset)*(1+1e-9), "offset %d against %d", offset, best)
		}
	})
}

// A new version is sent at once, with offset 1. Free to wait for j blocks and then to take any
// offset up to 1+j, the best policy is no better: value iteration over all of them ends at the same
// expected time.
func TestWaitingNeverHelps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, d := anySpec(t), anyDelays(t)
		h := spec.RecentHistory
		attempt := func(offset int, again float64) float64 {
			sum, lost := 0.0, 1.0
			for k := 1; k <= min(h-offset, len(d)); k++ {
				sum, lost = sum+float64(k)*d[k-1], lost-d[k-1]
			}
			return sum + lost*(float64(h-offset+1)+again)
		}
		free := 0.0
		for range 400 {
			next := math.Inf(1)
			for wait := range h {
				for offset := 1; offset <= min(1+wait, h); offset++ {
					next = min(next, float64(wait)+attempt(offset, free))
				}
			}
			if next-free < 1e-9 {
				break
			}
			free = next
		}
		require.InEpsilon(t, anchor.Expected(&spec, d, 1), free, 1e-6)
	})
}

// One more block is worth having exactly if p(v)·R exceeds 1-F(v).
func TestBestByTheRuleOfOneMoreBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, d := anySpec(t), anyDelays(t)
		again := anchor.Expected(&spec, d, 1)
		for v := 2; v <= spec.RecentHistory-1; v++ {
			p := 0.0
			if v <= len(d) {
				p = d[v-1]
			}
			gain := anchor.Expected(&spec, d, spec.RecentHistory-v+1) - anchor.Expected(&spec, d, spec.RecentHistory-v)
			require.InDelta(t, p*again-(1-d.Within(v)), gain, 1e-9*again, "block %d", v)
		}
	})
}

// A round ahead delays every report by a block and makes the anchor a block fresher, as in the
// table.
func TestRoundsAheadMakeTheAnchorFresher(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, d := anySpec(t), anyDelays(t)
		cores := rapid.IntRange(1, 4).Draw(t, "cores")
		first := anchor.Best(&spec, d, 0, cores)
		for ahead := range 4 * spec.RecentHistory {
			offset := anchor.Best(&spec, d, ahead, cores)
			require.True(t, 1 <= offset && offset <= anchor.Offset(&spec, ahead, cores), "%d with %d ahead", offset, ahead)
			if want := first - ahead/cores; want >= 1 {
				require.Equal(t, want, offset, "%d ahead", ahead)
			}
		}
		require.Equal(t, 1, anchor.Best(&spec, d, math.MaxInt, cores))
	})
}

// More loss only makes everything slower, and slower reports do too.
func TestExpectedIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, d := anySpec(t), anyDelays(t)
		offset := rapid.IntRange(1, spec.RecentHistory-1).Draw(t, "offset")
		share := rapid.Float64Range(0, 0.9).Draw(t, "share")
		lossy := make(anchor.Distribution, len(d))
		for i, p := range d {
			lossy[i] = p * (1 - share)
		}
		slower := append(anchor.Distribution{0}, d...)
		least := anchor.Expected(&spec, d, offset) * (1 - 1e-9)
		require.GreaterOrEqual(t, anchor.Expected(&spec, lossy, offset), least)
		require.GreaterOrEqual(t, anchor.Expected(&spec, slower, offset), least)
	})
}

// simulate sends a package and its new versions on a chain, block by block, until one is reported,
// and returns how many blocks it took. Nothing of the derivation is in it: death and windows are
// those of Dead and WindowOf.
func simulate(spec *jamq.ChainSpec, d anchor.Distribution, offset int, random *rand.Rand) int {
	const start = 1000
	head := point(start, 0)
	for anchored := uint64(start - offset); ; anchored, head = head.Height, point(head.Height+1, 0) {
		sent, draw, delay := head.Height, random.Float64(), 1
		for delay <= len(d) && draw >= d[delay-1] {
			draw -= d[delay-1]
			delay++
		}
		report := sent + uint64(delay) // or never
		facts := anchor.Facts{Head: head, AnchorOnChain: true, AnchorHeight: anchored, LookupAnchorSlot: head.Slot}
		for anchor.Dead(spec, &facts) == anchor.Alive {
			facts.Head = point(facts.Head.Height+1, 0)
			if delay <= len(d) && facts.Head.Height == report && anchored < report && report <= anchor.LastReportable(spec, anchored) {
				return int(report - start)
			}
		}
		head = facts.Head
	}
}

func TestExpectedBySimulation(t *testing.T) {
	spec, random := jamq.Tiny(), rand.New(rand.NewPCG(7, 11))
	for name, d := range map[string]anchor.Distribution{
		"quick": {0.6, 0.3},
		"slow":  {0.1, 0.2, 0.3, 0.2, 0.1},
		"lossy": {0.3, 0.1, 0, 0, 0.1},
	} {
		for offset := 1; offset <= 6; offset++ {
			const runs = 20_000
			sum := 0
			for range runs {
				sum += simulate(&spec, d, offset, random)
			}
			require.InEpsilon(t, anchor.Expected(&spec, d, offset), float64(sum)/runs, 0.04, "%s, offset %d", name, offset)
		}
	}
}

func TestDistributionValidate(t *testing.T) {
	for _, d := range []anchor.Distribution{nil, {}, {1}, {0.5, 0.5}, {0.1, 0.2, 0.3, 0.4}, {1 + 1e-15}} {
		require.NoError(t, d.Validate())
	}
	for _, d := range []anchor.Distribution{{-0.1}, {1.1}, {math.NaN()}, {math.Inf(1)}, {0.5, 0.6}} {
		require.ErrorIs(t, d.Validate(), anchor.ErrInvalidDelays, "%v", d)
	}
	d := anchor.Distribution{0.5, 0.25}
	require.Equal(t, []float64{0, 0.5, 0.75, 0.75, 0}, []float64{d.Within(0), d.Within(1), d.Within(2), d.Within(99), d.Within(-4)})
}

func BenchmarkBest(b *testing.B) {
	spec := jamq.Tiny()
	d := anchor.NewDelays(&spec).Estimate()
	for b.Loop() {
		anchor.Best(&spec, d, 3, 2)
	}
}
