package statedb

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/statedb/ubt"
)

// states is a model of a store: the values of each root.
type states map[common.Hash]map[Key][32]byte

// check compares what a view of a root reads with the model.
func (m states) check(t require.TestingT, s *Store, root common.Hash) {
	got := map[Key][32]byte{}
	v := viewOf(t, s, root)
	v.All(func(k Key, value [32]byte) bool {
		got[k] = value
		return true
	})
	require.Equal(t, m[root], got)
	require.Equal(t, root, rootOf(t, v))
}

// unread returns the number of roots whose tree was not derived yet.
func unread(s *Store) (n int) {
	for _, p := range s.roots {
		if _, base, _ := p.tree.peek(); base != nil {
			n++
		}
	}
	return n
}

// commit commits a few writes on a root.
func (m states) commit(t *rapid.T, s *Store, parent common.Hash) error {
	v := viewOf(t, s, parent)
	after := maps.Clone(m[parent])
	for range rapid.IntRange(0, 3).Draw(t, "writes") {
		k := Key{rapid.Byte().Draw(t, "key") % 5}
		if value := rapid.Byte().Draw(t, "value") % 3; value == 0 {
			v.Delete(k)
			delete(after, k)
		} else {
			v.Set(k, [32]byte{value})
			after[k] = [32]byte{value}
		}
	}
	m[rootOf(t, v)] = after
	_, err := v.Commit()
	return err
}

// S6: a tree is derived when it is first read, however its root was treated before: if it is
// read late, after its bases were discarded, became canonical unread, was pinned, or was
// committed again, and after any number of restarts, with a crash before or after a write.
func TestUnreadRoots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		disk := newMemoryDisk()
		m := states{EmptyRoot: {}}
		s := reopen(t, disk, 2)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			root := rapid.SampledFrom(slices.SortedFunc(maps.Keys(s.roots), common.Hash.Cmp)).Draw(t, "root")
			disk.left, disk.after = rapid.SampledFrom([]int{-1, -1, -1, 0}).Draw(t, "crash"), rapid.Bool().Draw(t, "after")
			var err error
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0, 1, 2:
				err = m.commit(t, s, root)
			case 3:
				err = s.SetCanonical(root)
			case 4:
				if err = s.Discard(root); errors.Is(err, ErrInUse) {
					err = nil
				}
			case 5:
				err = s.Pin(root)
			case 6:
				m.check(t, s, root)
			case 7:
				err = errKilled
			}
			if err != nil {
				require.ErrorIs(t, err, errKilled)
				disk = disk.restarted()
				s = reopen(t, disk, rapid.SampledFrom([]int{KeepAll, 1, 2, 3}).Draw(t, "retention"))
			}
		}
		for root := range s.roots {
			m.check(t, s, root)
		}
		require.Zero(t, unread(s))
	})
}

// Open derives no tree but that of the values, and a read derives no other one.
func TestOpenDerivesNothing(t *testing.T) {
	const blocks = 20
	disk := newMemoryDisk()
	s := reopen(t, disk, KeepAll)
	root := EmptyRoot
	for i := range byte(blocks) {
		root = child(t, s, root, i+1)
		require.NoError(t, s.SetCanonical(root))
	}
	s = reopen(t, disk.restarted(), KeepAll)
	require.Equal(t, blocks-1, unread(s))
	require.True(t, s.Has(root))
	require.NoError(t, s.Pin(root))
	require.Equal(t, blocks-1, unread(s))
	var reading sync.WaitGroup
	for range 4 {
		reading.Go(func() {
			if v, err := s.View(root); err != nil || v.tree.Root() != root {
				t.Error(err)
			}
		})
	}
	reading.Wait()
	require.Equal(t, blocks-2, unread(s))
}

// A write set that leads elsewhere, although its checksum is right, is refused by each
// call that needs the tree, and that call changes nothing.
func TestForgedWriteSet(t *testing.T) {
	disk := newMemoryDisk()
	s := reopen(t, disk, KeepAll)
	a := child(t, s, EmptyRoot, 1)
	require.NoError(t, s.SetCanonical(a))
	b := child(t, s, a, 2)
	c := child(t, s, b, 3)
	disk = disk.restarted()
	disk.records[string(hashKey(writeRecord, b))] = encodeWrites(b, a, []ubt.Write{{Key: Key{9}, Value: [32]byte{9}}})
	s = reopen(t, disk, KeepAll)
	for _, root := range []common.Hash{b, c} {
		_, err := s.View(root)
		require.ErrorIs(t, err, ErrCorrupt)
		v := viewOf(t, s, a)
		require.ErrorIs(t, v.Pin(root), ErrCorrupt)
		require.False(t, s.roots[root].inUse())
	}
	require.ErrorIs(t, s.Discard(b), ErrCorrupt, "c must be led to from another root")
	require.True(t, s.Has(b))
	require.Equal(t, a, s.Canonical())
	viewOf(t, s, a)
}
