package statedb

import (
	"runtime"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/statedb/ubt"
)

// sortedDisk is a disk that reads its records without allocating.
type sortedDisk []Record

func (sortedDisk) Write([]Record) error { return nil }

func (d sortedDisk) Read(f func(key, value []byte) error) error {
	for _, r := range d {
		if err := f(r.Key, r.Value); err != nil {
			return err
		}
	}
	return nil
}

// bigDisk returns a disk with n values, each in a separate stem.
func bigDisk(t require.TestingT, n int) sortedDisk {
	writes := randomWrites(1, n, 1)
	tree, err := ubt.Tree{}.Apply(&hasher, writes)
	require.NoError(t, err)
	s := NewStore()
	root := tree.Root()
	l := link{parents: []common.Hash{EmptyRoot}, commits: 1, base: root}
	return appendValues(sortedDisk{s.meta(root, []common.Hash{root}), {hashKey(rootRecord, root), l.encode()}}, writes)
}

// Open allocates little besides the tree, so the garbage collector cannot let
// its peak of memory exceed the final use by more than this factor.
func TestOpenAllocatesLittle(t *testing.T) {
	const leaves, factor = 100_000, 1.3
	disk := bigDisk(t, leaves)
	before := heap()
	var began, ended runtime.MemStats
	runtime.ReadMemStats(&began)
	s, err := Open(Config{Disk: disk})
	require.NoError(t, err)
	runtime.ReadMemStats(&ended)
	final := heap() - before
	allocated := float64(ended.TotalAlloc - began.TotalAlloc)
	require.Greater(t, final, float64(leaves*100))
	require.Less(t, allocated, factor*final, "%v times the final use", allocated/final)
	runtime.KeepAlive(s)
	runtime.KeepAlive(disk)
}
