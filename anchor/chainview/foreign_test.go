package chainview_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// D4 for a prerequisite that belongs to others: once it is reported, it expires with recent
// history, and it dies if it does not become available.
func TestForeignPrerequisite(t *testing.T) {
	foreign := jamq.PackageHash{0xf}
	scene := func(t *testing.T, reportedBefore bool) *chainview.View {
		v := newView(t)
		grow(t, v, 'a', header('a', 0), 0, 2)
		b := jamq.Block{Hash: header('a', 3), Parent: header('a', 2), Slot: 3, Reported: []jamq.Report{{Package: foreign}}}
		if reportedBefore {
			require.NoError(t, v.ImportBest(&b, b.Hash))
		}
		watch(t, v, pkg, chainview.Package{Anchor: header('a', 2), LookupAnchorSlot: 2, Prerequisites: []jamq.PackageHash{foreign}})
		require.Equal(t, anchor.Alive, status(t, v, pkg).Dead)
		if !reportedBefore {
			require.NoError(t, v.ImportBest(&b, b.Hash))
		}
		require.Equal(t, anchor.Alive, status(t, v, pkg).Dead)
		return v
	}
	for _, before := range []bool{false, true} {
		v := scene(t, before)
		grow(t, v, 'a', header('a', 3), 3, 7)
		require.Equal(t, anchor.Alive, status(t, v, pkg).Dead)
		grow(t, v, 'a', header('a', 7), 7, 8) // slot 3 + U
		want := anchor.PrerequisiteGone
		if before { // it may have become available before it was followed
			want = anchor.Alive
		}
		require.Equal(t, want, status(t, v, pkg).Dead)

		v = scene(t, before)
		b := jamq.Block{Hash: header('a', 4), Parent: header('a', 3), Slot: 4, Available: []jamq.CoreIndex{0}}
		require.NoError(t, v.ImportBest(&b, b.Hash))
		grow(t, v, 'a', header('a', 4), 4, 9)
		require.Equal(t, anchor.Alive, status(t, v, pkg).Dead)
		spec := jamq.Tiny()
		restored, err := chainview.Restore(&spec, v.AppendSnapshot(nil))
		require.NoError(t, err)
		require.Equal(t, v.AppendSnapshot(nil), restored.AppendSnapshot(nil))
		grow(t, v, 'a', header('a', 9), 9, 10) // its own anchor at height 2 expires here as well
		require.Equal(t, anchor.AnchorExpired, status(t, v, pkg).Dead)

		v.Forget(pkg)
		_, watched := v.Trace(foreign)
		require.False(t, watched, "it is forgotten with the last package that names it")
	}

	// A package that was named before it is watched itself keeps what was seen of it.
	v := scene(t, false)
	watch(t, v, foreign, chainview.Package{Anchor: header('a', 1), LookupAnchorSlot: 1})
	require.Equal(t, header('a', 3), status(t, v, foreign).Reported.Hash)
	grow(t, v, 'a', header('a', 3), 3, 8)
	require.Equal(t, anchor.PrerequisiteGone, status(t, v, pkg).Dead)
}

// A package of others is read on all forks, and followed as long as a watched
// package names it.
func TestForeignPrerequisiteOfTwo(t *testing.T) {
	foreign, other := jamq.PackageHash{0xf}, jamq.PackageHash{1}
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 4)
	b := jamq.Block{Hash: header('b', 4), Parent: header('a', 3), Slot: 4, Reported: []jamq.Report{{Package: foreign}}}
	require.NoError(t, v.Import(&b)) // off the best chain
	for _, p := range []jamq.PackageHash{other, pkg} {
		watch(t, v, p, chainview.Package{Anchor: header('a', 3), LookupAnchorSlot: 3, Prerequisites: []jamq.PackageHash{foreign}})
	}
	require.True(t, status(t, v, foreign).Reported.IsZero())
	require.NoError(t, v.SetBest(b.Hash))
	require.Equal(t, b.Hash, status(t, v, foreign).Reported.Hash)
	v.Forget(other)
	_, followed := v.Trace(foreign)
	require.True(t, followed, "the second package names it")
	v.Forget(pkg)
	_, followed = v.Trace(foreign)
	require.False(t, followed)
}

// requireRestores checks that a view restored from the snapshot of v has the same
// snapshot. The view must be of the tiny chain.
func requireRestores(t *testing.T, v *chainview.View) {
	t.Helper()
	spec := jamq.Tiny()
	restored, err := chainview.Restore(&spec, v.AppendSnapshot(nil))
	require.NoError(t, err)
	require.Equal(t, v.AppendSnapshot(nil), restored.AppendSnapshot(nil))
}
