package statedb

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
)

// Discarding many roots at once, for example when a store that kept all is
// opened with a retention, takes linear time: a fraction of a second. Time for each
// pair of roots would be hours, and the test binary does not have them.
func TestManyRootsGoAtOnce(t *testing.T) {
	const n = 400_000
	s := NewStore()
	root := func(i uint32) (h common.Hash) {
		binary.BigEndian.PutUint32(h[:], i)
		return h
	}
	var gone []common.Hash
	for i := uint32(1); i <= n; i++ {
		s.roots[root(i)] = &published{link: link{parents: []common.Hash{root(i - 1)}, base: root(i - 1)}}
		gone = append(gone, root(i))
	}
	last := root(n + 1)
	s.roots[last] = &published{link: link{parents: []common.Hash{root(n)}, base: root(n)}}
	pinned := root(n + 2)
	s.roots[pinned] = &published{link: link{parents: []common.Hash{root(n / 2)}, base: root(n / 2)}}
	left := make(map[common.Hash]bool)
	for _, root := range gone {
		left[root] = true
	}
	c := s.unchanged()
	c.canonical, c.flat, c.gone = last, last, gone
	s.relink(c, left)
	links := c.links
	require.Equal(t, map[common.Hash]link{
		last:   {parents: []common.Hash{EmptyRoot}, base: last},
		pinned: {parents: []common.Hash{EmptyRoot}, base: EmptyRoot},
	}, links)
}

// If all roots stay, the bytes written per move of the canonical root do not
// grow with their number, and a later retention takes effect.
func TestAllRootsStay(t *testing.T) {
	disk := newMemoryDisk()
	s := reopen(t, disk, KeepAll)
	size := 0
	root := EmptyRoot
	var roots []common.Hash
	for i := range byte(20) {
		root = child(t, s, root, i+1)
		roots = append(roots, root)
		require.NoError(t, s.SetCanonical(root))
		meta := len(disk.records[string(rune(metaRecord))])
		if size == 0 {
			size = meta
		}
		require.Equal(t, size, meta)
	}
	s = reopen(t, disk.restarted(), 2)
	require.Equal(t, 21, s.Roots())
	for i := range byte(3) {
		root = child(t, s, root, 100+i)
		require.NoError(t, s.SetCanonical(root))
	}
	require.Equal(t, 4, s.Roots(), "the last three and the empty one")
	require.False(t, s.Has(roots[19]))
}

// A root that stays below all others, because it is pinned or the host never
// discards it, is seldom written again. Otherwise each block would write the
// whole difference to it.
func TestOldRootIsSeldomWritten(t *testing.T) {
	const blocks, retention = 60, 10
	for name, keep := range map[string]int{"pinned": retention, "kept by the host": KeepAll} {
		t.Run(name, func(t *testing.T) {
			disk := newMemoryDisk()
			s := reopen(t, disk, keep)
			line := []common.Hash{child(t, s, EmptyRoot, 1)}
			old := line[0]
			require.NoError(t, s.SetCanonical(old))
			require.NoError(t, s.Pin(old))
			written := 0
			for i := range byte(blocks) {
				before := disk.records[string(hashKey(writeRecord, old))]
				line = append(line, child(t, s, line[len(line)-1], 10+i))
				require.NoError(t, s.SetCanonical(line[len(line)-1]))
				if keep == KeepAll && i >= retention {
					require.NoError(t, s.Discard(line[i-retention+1]))
				}
				if !bytes.Equal(before, disk.records[string(hashKey(writeRecord, old))]) {
					written++
				}
			}
			require.Positive(t, written)
			require.LessOrEqual(t, written, blocks/retention+1)
			require.Equal(t, summarize(t, s), summarize(t, reopen(t, disk.restarted(), keep)))
		})
	}
}
