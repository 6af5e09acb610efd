package anchor_test

import (
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

func TestPickByPosition(t *testing.T) {
	recent, lookup := history(8), jamq.AnchorBlock{Hash: jamq.HeaderHash{99}, Slot: 90}
	for offset := 1; offset <= 7; offset++ {
		c, err := anchor.Pick(recent, recent[7-offset].Hash, lookup, nil)
		require.NoError(t, err)
		require.Equal(t, byte(8-offset), c.Anchor[0])
		require.Equal(t, common.Hash{byte(8 - offset), 1}, c.StateRoot)
		require.Equal(t, common.Hash{byte(8 - offset), 2}, c.BeefyRoot)
		require.Equal(t, lookup.Hash, c.LookupAnchor)
	}
	for n := range 2 {
		_, err := anchor.Pick(history(n), jamq.HeaderHash{1}, lookup, nil)
		require.ErrorIs(t, err, anchor.ErrNoAnchor, "%d blocks are too few", n)
	}
}

func TestPickCopiesPrerequisites(t *testing.T) {
	needs := []jamq.PackageHash{{2}, {1}}
	c, err := anchor.Pick(history(3), jamq.HeaderHash{2}, jamq.AnchorBlock{}, needs)
	require.NoError(t, err)
	require.Equal(t, []jamq.PackageHash{{1}, {2}}, c.Prerequisites)
	require.Equal(t, []jamq.PackageHash{{2}, {1}}, needs, "the caller's are left alone")
}
