package pebblestate

import (
	"fmt"
	"maps"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/pebble/internal/fulldisk"
	"github.com/jamq/jamq/pebble/internal/powercut"
	"github.com/jamq/jamq/pebble/pebbledb"
	"github.com/jamq/jamq/statedb"
)

// script is the life of a store: blocks on several roots, moves of the
// canonical root forth and back, retention and discards.
func script(s *statedb.Store, known map[common.Hash]bool) (steps []func() error) {
	roots := []common.Hash{statedb.EmptyRoot}
	known[statedb.EmptyRoot] = true
	block := func(parent int, n byte) func() error {
		return func() error {
			v, err := s.View(roots[parent])
			if err != nil {
				return err
			}
			for i := range n {
				a := common.Address{i, n}
				code, err := v.SetCode(a, []byte{n, i % 2})
				if err != nil {
					return err
				}
				if err := v.SetAccount(a, statedb.Account{Nonce: uint64(n), Balance: uint256.NewInt(uint64(i)), CodeHash: code, CodeSize: 2}); err != nil {
					return err
				}
				v.SetStorage(a, common.Hash{i}, common.Hash{n})
				v.Delete(statedb.Key{1, i})
				v.Set(statedb.Key{1, i, n}, [32]byte{i})
			}
			root, err := v.Commit()
			roots, known[root] = append(roots, root), true
			return err
		}
	}
	canonical := func(i int) func() error { return func() error { return s.SetCanonical(roots[i]) } }
	discard := func(i int) func() error { return func() error { return s.Discard(roots[i]) } }
	return []func() error{
		block(0, 3), block(1, 4), canonical(1), block(1, 5), block(2, 6), canonical(2), block(4, 2), discard(4),
		canonical(3), canonical(5), block(5, 7), canonical(6), canonical(5),
		block(6, 9), block(6, 9), discard(8), discard(8), // two versions with new code
	}
}

// summary is the visible state of a store.
type summary struct {
	canonical common.Hash
	parents   map[common.Hash]common.Hash
	values    map[common.Hash]int
}

func (s summary) String() string {
	out := fmt.Sprintln("canonical", s.canonical)
	for root, parent := range s.parents {
		out += fmt.Sprintln(root, "on", parent, "with", s.values[root], "values")
	}
	return out
}

func summarize(t *testing.T, s *statedb.Store, known map[common.Hash]bool) summary {
	out := summary{s.Canonical(), map[common.Hash]common.Hash{}, map[common.Hash]int{}}
	for root := range known {
		v, err := s.View(root)
		if err != nil {
			require.ErrorIs(t, err, statedb.ErrUnknownRoot)
			continue
		}
		again, err := v.Root()
		require.NoError(t, err)
		require.Equal(t, root, again)
		out.parents[root], err = s.Parent(root)
		require.NoError(t, err)
		for range v.All {
			out.values[root]++
		}
		for i := range byte(9) {
			for n := range byte(10) {
				v.CodeAt(common.Address{i, n})
				require.NoError(t, v.Err())
			}
		}
	}
	require.Len(t, out.parents, s.Roots())
	return out
}

func openStore(t *testing.T, options *pebble.Options) (*statedb.Store, *Disk) {
	disk, err := Open("db", Options{Pebble: options})
	require.NoError(t, err)
	s, err := statedb.Open(statedb.Config{Retention: 3, Disk: disk})
	require.NoError(t, err)
	return s, disk
}

// plan returns the states after each step of the script, and all roots that it
// ever has.
func plan(t *testing.T) (states []summary, known map[common.Hash]bool) {
	known = map[common.Hash]bool{}
	s, disk := openStore(t, &pebble.Options{FS: vfs.NewMem(), Logger: pebbledb.Silent})
	steps := script(s, known)
	states = append(states, summarize(t, s, known))
	for _, step := range steps {
		require.NoError(t, step())
		states = append(states, summarize(t, s, known))
	}
	require.NoError(t, disk.Close())
	return states, known
}

// The process dies at any operation on its files, which is to say at any sync.
// After a restart all completed calls are there, and the interrupted call is
// there completely or not at all.
func TestDiesAtAnyOperation(t *testing.T) {
	states, known := plan(t)
	at, failed := 1, true
	for ; failed; at++ {
		power := powercut.New(at)
		s, disk := openStore(t, power.Options())
		for i, step := range script(s, map[common.Hash]bool{}) {
			require.NoError(t, step())
			power.Acknowledge()
			if i%4 == 3 {
				require.NoError(t, disk.db.Pebble().Flush())
			}
		}
		require.NoError(t, disk.Close())
		var safe int
		safe, failed = power.Restart()
		s, disk = openStore(t, power.Options())
		got := summarize(t, s, known)
		require.True(t, same(got, states[safe]) || safe+1 < len(states) && same(got, states[safe+1]),
			"the power failed at sync %d, after %d steps: %s\nwant\n%s", at, safe, got, states[safe])
		v, err := s.View(s.Canonical())
		require.NoError(t, err)
		v.Set(statedb.Key{0xff}, [32]byte{1})
		_, err = v.Commit()
		require.NoError(t, err, "it goes on")
		require.NoError(t, disk.Close())
	}
	t.Log(at-2, "syncs")
	require.Greater(t, at, len(states), "each step syncs")
}

func same(a, b summary) bool {
	return a.canonical == b.canonical && maps.Equal(a.parents, b.parents) && maps.Equal(a.values, b.values)
}

// Two stores and the host's own data share a database.
func TestSharedDatabase(t *testing.T) {
	db, err := pebble.Open("", &pebble.Options{FS: vfs.NewMem(), Logger: pebbledb.Silent})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for _, key := range []string{"a", "s", "s3", "z"} {
		require.NoError(t, db.Set([]byte(key), []byte("host's"), pebble.Sync))
	}
	var canonical []common.Hash
	for round := range 2 {
		for i := range 2 {
			disk, err := Open("", Options{DB: db, Prefix: fmt.Appendf(nil, "s%d", i+1)})
			require.NoError(t, err)
			s, err := statedb.Open(statedb.Config{Disk: disk})
			require.NoError(t, err)
			if round == 0 {
				v, err := s.View(statedb.EmptyRoot)
				require.NoError(t, err)
				v.Set(statedb.Key{byte(i)}, [32]byte{1})
				root, err := v.Commit()
				require.NoError(t, err)
				require.NoError(t, s.SetCanonical(root))
				canonical = append(canonical, root)
			}
			require.Equal(t, canonical[i], s.Canonical())
			require.NoError(t, disk.Close())
		}
	}
}

func TestPrefix(t *testing.T) {
	_, err := Open("", Options{Prefix: []byte{0xff}})
	require.ErrorIs(t, err, ErrPrefix)
}

func Example() {
	fs := vfs.NewMem() // a host leaves this out, and names a directory
	for range 2 {
		disk, err := Open("state", Options{Pebble: &pebble.Options{FS: fs, Logger: pebbledb.Silent}})
		if err != nil {
			panic(err)
		}
		store, err := statedb.Open(statedb.Config{Disk: disk})
		if err != nil {
			panic(err)
		}
		view, err := store.View(store.Canonical())
		if err != nil {
			panic(err)
		}
		account := view.Account(common.Address{1})
		fmt.Println("nonce:", account.Nonce)
		account.Nonce++
		if err := view.SetAccount(common.Address{1}, account); err != nil {
			panic(err)
		}
		root, err := view.Commit()
		if err != nil {
			panic(err)
		}
		if err := store.SetCanonical(root); err != nil {
			panic(err)
		}
		if err := disk.Close(); err != nil {
			panic(err)
		}
	}
	// Output:
	// nonce: 0
	// nonce: 1
}

// The disk is full. The write fails with the reason, and so do all later ones.
// After a restart all completed writes are there.
func TestDiskIsFull(t *testing.T) {
	mem := vfs.NewStrictMem()
	var full atomic.Bool
	options := Options{Pebble: &pebble.Options{Logger: pebbledb.Silent, FS: fulldisk.Wrap(mem, func(string, string) error {
		if full.Load() {
			return syscall.ENOSPC
		}
		return nil
	})}}
	disk, err := Open("db", options)
	require.NoError(t, err)
	require.NoError(t, disk.Write([]statedb.Record{{Key: []byte("a"), Value: []byte("1")}}))
	full.Store(true)
	for range 2 {
		err = disk.Write([]statedb.Record{{Key: []byte("a"), Value: []byte("2")}, {Key: []byte("b"), Value: []byte("2")}})
		require.ErrorIs(t, err, ErrDisk)
		require.ErrorIs(t, err, syscall.ENOSPC)
	}
	require.ErrorIs(t, disk.Close(), ErrDisk)
	full.Store(false)
	mem.ResetToSyncedState()
	disk, err = Open("db", options)
	require.NoError(t, err)
	read := map[string]string{}
	require.NoError(t, disk.Read(func(key, value []byte) error {
		read[string(key)] = string(value)
		return nil
	}))
	require.Equal(t, map[string]string{"a": "1"}, read)
	require.NoError(t, disk.Close())
}
