package statedb

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/statedb/ubt"
)

var errKilled = errors.New("killed")

// memoryDisk is a disk that can be killed at a write: before it or, having made it, after it.
type memoryDisk struct {
	records map[string][]byte
	left    int // writes until it is killed; negative: never
	after   bool
}

func newMemoryDisk() *memoryDisk { return &memoryDisk{records: map[string][]byte{}, left: -1} }

func (d *memoryDisk) Write(records []Record) error {
	killed := d.left == 0
	if killed && !d.after {
		return errKilled
	}
	d.left--
	for _, r := range records {
		if r.Value == nil {
			delete(d.records, string(r.Key))
		} else {
			d.records[string(r.Key)] = bytes.Clone(r.Value)
		}
	}
	if killed {
		return errKilled
	}
	return nil
}

func (d *memoryDisk) Read(f func(key, value []byte) error) error {
	for _, k := range slices.Sorted(maps.Keys(d.records)) {
		if err := f([]byte(k), d.records[k]); err != nil {
			return err
		}
	}
	return nil
}

// restarted is the disk as the next process finds it.
func (d *memoryDisk) restarted() *memoryDisk {
	return &memoryDisk{records: maps.Clone(d.records), left: -1}
}

func reopen(t require.TestingT, disk Disk, retention int) *Store {
	s, err := Open(Config{Disk: disk, Retention: retention})
	require.NoError(t, err)
	return s
}

// summary is all that a store must have again after a restart.
type summary struct {
	canonical common.Hash
	line      []common.Hash
	parents   map[common.Hash][]common.Hash
	commits   map[common.Hash]uint64
	contents  map[common.Hash]int // values
	code      map[common.Hash]int // owners
	kept      map[common.Hash]bool
}

func summarize(t require.TestingT, s *Store) summary {
	out := summary{
		s.canonical, s.line, map[common.Hash][]common.Hash{}, map[common.Hash]uint64{}, map[common.Hash]int{},
		map[common.Hash]int{}, maps.Clone(s.code.kept),
	}
	for b := range s.code.blobs.all {
		out.code[b.hash] = s.code.owners[b.hash]
	}
	for root, p := range s.roots {
		if root == EmptyRoot {
			continue
		}
		tree, err := s.tree(p)
		require.NoError(t, err)
		require.Equal(t, root, tree.Root())
		out.parents[root], out.commits[root] = p.parents, p.commits
		for range tree.All {
			out.contents[root]++
		}
	}
	return out
}

// drawStep draws a change of a store: a block on any root, a move of the
// canonical root to any, or a discard.
func drawStep(t *rapid.T, s *Store) func() error {
	known := slices.SortedFunc(maps.Keys(s.roots), common.Hash.Cmp)
	root := rapid.SampledFrom(known).Draw(t, "root")
	switch rapid.IntRange(0, 4).Draw(t, "step") {
	case 0:
		return func() error { return s.SetCanonical(root) }
	case 1:
		return func() error {
			if err := s.Discard(root); !errors.Is(err, ErrInUse) {
				return err
			}
			return nil
		}
	}
	todo := drawWork(t)
	if rapid.Bool().Draw(t, "small") { // few states, so that branches meet again
		k := Key{rapid.Byte().Draw(t, "key") % 3}
		todo = work{func(v *View) {
			if _, there := v.Get(k); there {
				v.Delete(k)
			} else {
				v.Set(k, [32]byte{1})
			}
		}}
	}
	return func() error {
		v := viewOf(t, s, root)
		todo.run(v)
		_, err := v.Commit()
		return err
	}
}

// The process is killed before or after any write. When the store is opened
// again, it is as before or after that call.
func TestKilledAtEveryWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		disk := newMemoryDisk()
		s := reopen(t, disk, rapid.SampledFrom([]int{KeepAll, 1, 2}).Draw(t, "retention"))
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			before := summarize(t, s)
			step := drawStep(t, s)
			crash := rapid.IntRange(0, 3).Draw(t, "crash")
			disk.left, disk.after = -1, crash == 1
			if crash < 2 {
				disk.left = 0
			}
			err := step()
			if crash < 2 && err != nil {
				require.ErrorIs(t, err, ErrDisk)
				require.ErrorIs(t, err, errKilled)
				require.Equal(t, before, summarize(t, s), "a refused call changes nothing")
				if v := open(t, s); true {
					v.Set(Key{0xff, 0xff}, [32]byte{1})
					_, err := v.Commit()
					require.ErrorIs(t, err, ErrDisk, "nothing is written after a failure")
				}
			} else {
				require.NoError(t, err)
			}
			after := summarize(t, s)
			disk = disk.restarted()
			s = reopen(t, disk, rapid.SampledFrom([]int{KeepAll, 1, 2}).Draw(t, "retention from now on"))
			if now := summarize(t, s); crash != 1 {
				require.Equal(t, after, now)
			}
		}
	})
}

// Open checks the records of the disk. Any changed, missing or added record is
// detected, or has no effect.
func TestCorruptDisk(t *testing.T) {
	disk := newMemoryDisk()
	s := reopen(t, disk, KeepAll)
	a := child(t, s, EmptyRoot, 1)
	require.NoError(t, s.SetCanonical(a))
	b := child(t, s, a, 2)
	child(t, s, b, 3)
	v := viewOf(t, s, b)
	_, err := v.SetCode(common.Address{1}, contract)
	require.NoError(t, err)
	commit(t, v)
	check := func(damage func(map[string][]byte), what string) {
		other := disk.restarted()
		damage(other.records)
		_, err := Open(Config{Disk: other})
		require.Error(t, err, what)
		require.True(t, errors.Is(err, ErrCorrupt) || errors.Is(err, ErrConfig), "%s: %v", what, err)
	}
	for k, value := range disk.records {
		for i := range value {
			check(func(r map[string][]byte) { r[k] = bytes.Clone(value); r[k][i] ^= 1 }, "a bit of "+k[:1])
		}
		check(func(r map[string][]byte) { delete(r, k) }, "missing "+k[:1])
		if len(value) > 0 {
			check(func(r map[string][]byte) { r[k] = value[:len(value)-1] }, "cut "+k[:1])
		}
	}
	check(func(r map[string][]byte) { delete(r, string(hashKey(rootRecord, b))) }, "a base is missing")
	check(func(r map[string][]byte) { r["x"] = nil }, "an unknown record")
	for root, what := range map[common.Hash]string{a: "parents in a circle", b: "its own parent"} {
		k := string(hashKey(rootRecord, root))
		check(func(r map[string][]byte) { r[k] = slices.Concat([]byte{1, 1}, b[:], r[k][2+common.HashLength:]) }, what)
	}
	foreign := disk.restarted()
	foreign.records[string(metaRecord)] = bytes.Replace(foreign.records[string(metaRecord)], []byte(layout), []byte("EIP-7864/BLAKE3 "), 1)
	_, err = Open(Config{Disk: foreign})
	require.ErrorIs(t, err, ErrConfig)
}

func FuzzDecodeLink(f *testing.F) {
	f.Add(link{commits: 1, parents: []common.Hash{{1}}, codes: []common.Hash{{2}, {3}}}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, ok := decodeLink(b); ok {
			again, ok := decodeLink(l.encode())
			require.True(t, ok)
			require.Equal(t, l, again)
		}
	})
}

func FuzzDecodeWrites(f *testing.F) {
	root, base := common.Hash{1}, common.Hash{2}
	full := encodeWrites(root, base, []ubt.Write{{Key: Key{1}, Value: [32]byte{2}}, {Key: Key{3}, Deleted: true}})
	f.Add(full[:len(full)-checksumSize])
	f.Fuzz(func(t *testing.T, b []byte) {
		b = append(bytes.Clone(b), checksum(root[:], b)...)
		if base, writes, ok := decodeWrites(root, b); ok {
			require.Equal(t, string(b), string(encodeWrites(root, base, writes)))
		}
	})
}
