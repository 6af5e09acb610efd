package anchor_test

import (
	"math"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// history returns n blocks, the first with hash 1 and slot 101.
func history(n int) []jamq.AnchorBlock {
	recent := make([]jamq.AnchorBlock, n)
	for i := range recent {
		b := byte(i + 1)
		recent[i] = jamq.AnchorBlock{Hash: jamq.HeaderHash{b}, Slot: 100 + jamq.Slot(b), StateRoot: common.Hash{b, 1}, BeefyRoot: common.Hash{b, 2}}
	}
	return recent
}

func TestPickOffset(t *testing.T) {
	recent, lookup := history(8), jamq.AnchorBlock{Hash: jamq.HeaderHash{99}, Slot: 90}
	for offset := 1; offset <= 7; offset++ {
		c, err := anchor.PickOffset(recent, offset, lookup, nil)
		require.NoError(t, err)
		byHash, err := anchor.Pick(recent, recent[7-offset].Hash, lookup, nil)
		require.NoError(t, err)
		require.Equal(t, byHash, c)
		require.Equal(t, byte(8-offset), c.Anchor[0])
		require.Equal(t, common.Hash{byte(8 - offset), 1}, c.StateRoot)
		require.Equal(t, common.Hash{byte(8 - offset), 2}, c.BeefyRoot)
		require.Equal(t, lookup.Hash, c.LookupAnchor)
	}
	for _, offset := range []int{-1, 0, 8, math.MaxInt} {
		_, err := anchor.PickOffset(recent, offset, lookup, nil)
		require.ErrorIs(t, err, anchor.ErrNoAnchor, "offset %d", offset)
	}
	for n := range 2 {
		_, err := anchor.PickOffset(history(n), 1, lookup, nil)
		require.ErrorIs(t, err, anchor.ErrNoAnchor, "%d blocks are too few", n)
		_, err = anchor.Pick(history(n), jamq.HeaderHash{1}, lookup, nil)
		require.ErrorIs(t, err, anchor.ErrNoAnchor, "%d blocks are too few", n)
	}
}

func TestPickCopiesPrerequisites(t *testing.T) {
	needs := []jamq.PackageHash{{2}, {1}}
	c, err := anchor.PickOffset(history(3), 1, jamq.AnchorBlock{}, needs)
	require.NoError(t, err)
	require.Equal(t, []jamq.PackageHash{{1}, {2}}, c.Prerequisites)
	require.Equal(t, []jamq.PackageHash{{2}, {1}}, needs, "the caller's are left alone")
}

func TestCheckContext(t *testing.T) {
	spec := jamq.Tiny() // L = 24 slots, J = 8
	needs := func(n int) (hashes []jamq.PackageHash) {
		for i := range n {
			hashes = append(hashes, jamq.PackageHash{byte(i + 1)})
		}
		return hashes
	}
	for _, c := range []struct {
		name    string
		context jamq.RefineContext
		lookups int
		slot    jamq.Slot
		want    string // empty: none
	}{
		{"fresh", jamq.RefineContext{LookupAnchorSlot: 100}, 0, 101, ""},
		{"lookup anchor of the greatest age", jamq.RefineContext{LookupAnchorSlot: 100}, 0, 124, ""},
		{"lookup anchor too old", jamq.RefineContext{LookupAnchorSlot: 100}, 0, 125, "25 slots before 125, want at most 24"},
		{"eight dependencies", jamq.RefineContext{Prerequisites: needs(6)}, 2, 1, ""},
		{"nine dependencies", jamq.RefineContext{Prerequisites: needs(6)}, 3, 1, "9 prerequisites and segment-root lookups, want at most 8"},
		{"nine prerequisites", jamq.RefineContext{Prerequisites: needs(9)}, -5, 1, "want at most 8"},
		{"twice the same", jamq.RefineContext{Prerequisites: []jamq.PackageHash{{1}, {1}}}, 0, 1, "prerequisite 1 is not greater than the one before it"},
		{"not sorted", jamq.RefineContext{Prerequisites: []jamq.PackageHash{{1}, {3}, {2}}}, 0, 1, "prerequisite 2 is not greater than the one before it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := anchor.CheckContext(&spec, &c.context, c.lookups, c.slot)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, anchor.ErrUnreportable)
			require.ErrorContains(t, err, c.want)
		})
	}
}
