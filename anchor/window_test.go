package anchor_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

func TestWindow(t *testing.T) {
	spec := jamq.Tiny()
	w := anchor.WindowOf(&spec, 10)
	require.Equal(t, anchor.Window{First: 11, Last: 18}, w)
	require.Equal(t, "[11, 18]", w.String())
	for height, want := range map[uint64]bool{0: false, 10: false, 11: true, 18: true, 19: false, math.MaxUint64: false} {
		require.Equal(t, want, w.Contains(height), "height %d", height)
	}
	for head, want := range map[uint64]int{0: 8, 10: 8, 11: 7, 17: 1, 18: 0, math.MaxUint64: 0} {
		require.Equal(t, want, w.Remaining(head), "head %d", head)
	}
	end := anchor.WindowOf(&spec, math.MaxUint64-3)
	require.Equal(t, anchor.Window{First: math.MaxUint64 - 2, Last: math.MaxUint64}, end, "heights do not wrap")
}

func TestRemainingBlocksCountsTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := jamq.Tiny()
		spec.RecentHistory = rapid.IntRange(3, 32).Draw(t, "H")
		at := rapid.Uint64Range(0, 100).Draw(t, "anchor")
		head := rapid.Uint64Range(0, 200).Draw(t, "head")
		w, count := anchor.WindowOf(&spec, at), 0
		for height := head + 1; height <= 300; height++ {
			if w.Contains(height) {
				count++
			}
		}
		require.Equal(t, count, anchor.RemainingBlocks(&spec, at, head))
		require.Equal(t, w.Last, anchor.LastReportable(&spec, at))
	})
}

func TestEarliestDeath(t *testing.T) {
	spec := jamq.Tiny()
	require.Equal(t, jamq.Slot(20+2), anchor.EarliestDeath(&spec, 10, anchor.Point{Height: 16, Slot: 20}), "two blocks are left")
	require.Equal(t, jamq.Slot(20+8), anchor.EarliestDeath(&spec, 10, anchor.Point{Height: 10, Slot: 20}))
	require.Equal(t, jamq.Slot(99), anchor.EarliestDeath(&spec, 10, anchor.Point{Height: 30, Slot: 99}), "dead already")
	require.Equal(t, jamq.MaxSlot, anchor.EarliestDeath(&spec, math.MaxUint64, anchor.Point{Slot: 5}), "slots do not wrap")
}

// On a chain with random gaps the verdict never comes before the earliest death, and comes just
// then without gaps.
func TestEarliestDeathIsALowerBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := jamq.Tiny()
		spec.MaxLookupAnchorAge = 1000
		head := point(rapid.Uint64Range(10, 17).Draw(t, "height"), 3)
		earliest := anchor.EarliestDeath(&spec, 10, head)
		facts, skipped := anchor.Facts{Head: head, AnchorOnChain: true, AnchorHeight: 10}, jamq.Slot(0)
		for anchor.Dead(&spec, &facts) == anchor.Alive {
			gap := rapid.SampledFrom([]jamq.Slot{0, 0, 1, 5}).Draw(t, "gap")
			skipped += gap
			facts.Head.Height, facts.Head.Slot = facts.Head.Height+1, facts.Head.Slot+1+gap
		}
		require.Equal(t, earliest+skipped, facts.Head.Slot)
	})
}

func TestLookupAnchorAge(t *testing.T) {
	spec := jamq.Tiny() // L = 24 slots
	require.Equal(t, jamq.Slot(124), anchor.LookupExpires(&spec, 100))
	require.Equal(t, jamq.MaxSlot, anchor.LookupExpires(&spec, jamq.MaxSlot-1))
	require.Equal(t, jamq.Slot(20), anchor.LookupAge(100, 120))
	require.Equal(t, jamq.Slot(0), anchor.LookupAge(100, 99))
	require.False(t, anchor.LookupStale(&spec, 100, 124))
	require.True(t, anchor.LookupStale(&spec, 100, 125))

	facts := anchor.Facts{Head: point(11, 0), AnchorOnChain: true, AnchorHeight: 10, LookupAnchorSlot: 100}
	facts.Head.Slot = anchor.LookupExpires(&spec, 100)
	require.Equal(t, anchor.LookupExpired, anchor.Dead(&spec, &facts), "no block after it may report")
	facts.Head.Slot--
	require.Equal(t, anchor.Alive, anchor.Dead(&spec, &facts))
}

func TestGuaranteeSlots(t *testing.T) {
	spec := jamq.Tiny() // R = 4 slots
	for slot, first := range map[jamq.Slot]jamq.Slot{0: 0, 3: 0, 4: 0, 7: 0, 8: 4, 11: 4, 12: 8, 103: 96} {
		from, to := anchor.GuaranteeSlots(&spec, slot)
		require.Equal(t, first, from, "slot %d", slot)
		require.Equal(t, slot, to)
	}
	require.Equal(t, jamq.Slot(7), anchor.MaxGuaranteeAge(&spec), "42 s")
	spec.RotationPeriod = 1
	require.Equal(t, jamq.Slot(1), anchor.MaxGuaranteeAge(&spec))
	spec.RotationPeriod = 0
	from, to := anchor.GuaranteeSlots(&spec, 9)
	require.Equal(t, [2]jamq.Slot{8, 9}, [2]jamq.Slot{from, to}, "an invalid spec does not panic")
}

// The slots of GP 11.26 are those of the block's own rotation and the one before it.
func TestGuaranteeSlotsAreTwoRotations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := jamq.Tiny()
		spec.RotationPeriod = jamq.Slot(rapid.IntRange(1, 20).Draw(t, "R"))
		slot := jamq.Slot(rapid.Uint32().Draw(t, "slot"))
		stamp := slot.Since(jamq.Slot(rapid.IntRange(0, 50).Draw(t, "age")))
		first, last := anchor.GuaranteeSlots(&spec, slot)
		rotation, of := slot/spec.RotationPeriod, stamp/spec.RotationPeriod
		require.Equal(t, of == rotation || of+1 == rotation, first <= stamp && stamp <= last)
		require.LessOrEqual(t, last-first, anchor.MaxGuaranteeAge(&spec))
	})
}
