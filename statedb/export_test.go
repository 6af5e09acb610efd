package statedb

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"testing"
	"testing/iotest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// exportOf returns the export of a root.
func exportOf(t require.TestingT, s *Store, root common.Hash) []byte {
	var b bytes.Buffer
	require.NoError(t, s.Export(context.Background(), &b, root))
	return b.Bytes()
}

// A state is the same after export and import, with its code, on a disk and in
// memory, and work on it goes on with the same roots.
func TestExport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := common.Address{1}
		s, root := deployed(t, a, contract)
		for range rapid.IntRange(0, 4).Draw(t, "blocks") {
			v := viewOf(t, s, root)
			drawWork(t).run(v)
			before := root
			root = commit(t, v)
			if rapid.Bool().Draw(t, "canonical") {
				require.NoError(t, s.SetCanonical(root))
				if before != root {
					require.NoError(t, s.Discard(before)) // and its code moves on
				}
			}
		}
		export := exportOf(t, s, root)
		disk := newMemoryDisk()
		for _, other := range []*Store{NewStore(), reopen(t, disk, 3)} {
			require.NoError(t, other.Import(context.Background(), bytes.NewReader(export), root))
			require.NoError(t, other.SetCanonical(root))
			if other.cfg.Disk != nil {
				other = reopen(t, disk.restarted(), 3)
			}
			v, want := open(t, other), viewOf(t, s, root)
			require.Equal(t, root, v.ActiveRoot())
			require.Equal(t, maps.Collect(want.All), maps.Collect(v.All))
			require.Equal(t, want.CodeAt(a), v.CodeAt(a))
			require.Equal(t, export, exportOf(t, other, root))
		}
	})
}

// No prefix of an export and no change of a byte is imported, and the store
// does not change.
func TestDamagedExport(t *testing.T) {
	s, root := deployed(t, common.Address{1}, contract)
	export := exportOf(t, s, root)
	other := NewStore()
	refused := func(data []byte, what string) {
		err := other.Import(context.Background(), bytes.NewReader(data), root)
		require.True(t, errors.Is(err, ErrExport) || errors.Is(err, ErrConfig), "%s: %v", what, err)
		require.Equal(t, 1, other.Roots())
	}
	for i := range export {
		refused(export[:i], "cut")
		changed := bytes.Clone(export)
		changed[i] ^= 1
		refused(changed, "changed")
	}
	err := other.Import(context.Background(), bytes.NewReader(export), common.Hash{1})
	require.ErrorIs(t, err, ErrExport)
	foreign := bytes.Replace(export, []byte(layout), []byte("EIP-7864/BLAKE3 "), 1)
	require.ErrorIs(t, other.Import(context.Background(), bytes.NewReader(foreign), root), ErrConfig)
	failed := errors.New("no network")
	require.ErrorIs(t, other.Import(context.Background(), iotest.ErrReader(failed), root), failed)
	require.NoError(t, other.Import(context.Background(), bytes.NewReader(export), root))
}

// Export and Import stop when their context ends.
func TestExportStops(t *testing.T) {
	s := NewStore()
	v := open(t, s)
	for i := range 2 * exportCheck {
		v.Set(Key{byte(i), byte(i >> 8), 1}, [32]byte{1})
	}
	root := commit(t, v)
	export := exportOf(t, s, root)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, s.Export(ctx, new(bytes.Buffer), root), context.Canceled)
	require.ErrorIs(t, NewStore().Import(ctx, bytes.NewReader(export), root), context.Canceled)
	require.ErrorIs(t, s.Export(ctx, new(bytes.Buffer), common.Hash{1}), ErrUnknownRoot)
}

func FuzzImport(f *testing.F) {
	s, root := deployed(f, common.Address{1}, contract)
	f.Add(exportOf(f, s, root))
	f.Fuzz(func(t *testing.T, b []byte) {
		other := NewStore()
		if err := other.Import(context.Background(), bytes.NewReader(b), root); err == nil {
			require.True(t, other.Has(root))
		}
	})
}
