package chainview_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// gapScene is a view with three packages before a gap: one that finality has decided, one that is
// reported in a block that is not final, and one that is unreported.
func gapScene(t *testing.T) *chainview.View {
	t.Helper()
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 2)
	for i := range byte(3) {
		watch(t, v, jamq.PackageHash{i + 1}, chainview.Package{Anchor: header('a', 1)})
	}
	report := func(slot jamq.Slot, pkg byte) {
		b := jamq.Block{Hash: header('a', int(slot)), Parent: header('a', int(slot-1)), Slot: slot, Reported: []jamq.Report{{Package: jamq.PackageHash{pkg}, Core: jamq.CoreIndex(pkg - 1)}}}
		require.NoError(t, v.ImportBest(&b, b.Hash))
	}
	report(3, 1)
	b := jamq.Block{Hash: header('a', 4), Parent: header('a', 3), Slot: 4, Available: []jamq.CoreIndex{0}}
	require.NoError(t, v.ImportBest(&b, b.Hash))
	require.NoError(t, v.Finalize(b.Hash))
	report(5, 2)
	return v
}

// whole completes a state: H recent blocks of which the given ones are the last, free cores, and
// nothing accumulated.
func whole(s chainview.State) chainview.State {
	spec := jamq.Tiny()
	for i := len(s.Recent); i < spec.RecentHistory; i++ {
		s.Recent = append([]chainview.RecentBlock{{Hash: header('y', i)}}, s.Recent...)
	}
	if s.Cores == nil {
		s.Cores = make([]chainview.CoreReport, spec.Cores)
	}
	for len(s.Accumulated) < int(spec.EpochLength) {
		s.Accumulated = append(s.Accumulated, nil)
	}
	return s
}

func TestContinueAfterGap(t *testing.T) {
	root := jamq.Block{Hash: header('z', 90), Slot: 90}
	recent := chainview.State{Recent: []chainview.RecentBlock{{Hash: header('z', 89), Slot: 89}, {Hash: root.Hash, Slot: 90}}}
	for _, told := range [][]jamq.PackageHash{nil, {{2}}, {{3}}, {{2}, {3}}} {
		v := gapScene(t)
		require.NoError(t, v.Continue(root, whole(recent), told))
		require.Equal(t, root.Hash, v.Best().Hash)
		require.Equal(t, root.Hash, v.Finalized().Hash)
		for i := range byte(3) {
			pkg := jamq.PackageHash{i + 1}
			s := status(t, v, pkg)
			final, err := v.FinalStatus(pkg)
			require.NoError(t, err)
			require.Equal(t, s, final, "the outcome is final")
			accumulated := i == 0
			for _, p := range told {
				accumulated = accumulated || p == pkg
			}
			require.Equal(t, accumulated, !s.Accumulated.IsZero())
			require.Equal(t, !accumulated, s.Dead != anchor.Alive)
		}
		// The view goes on, and a snapshot restores it.
		grow(t, v, 'z', root.Hash, 90, 95)
		spec := jamq.Tiny()
		restored, err := chainview.Restore(&spec, v.AppendSnapshot(nil))
		require.NoError(t, err)
		require.Equal(t, v.AppendSnapshot(nil), restored.AppendSnapshot(nil))
		require.NoError(t, v.Finalize(header('z', 94)))
	}
}

// A gap may be shorter than recent history. The new root then remembers blocks
// that the view knows, and their reports of watched packages count.
func TestContinueAfterShortGap(t *testing.T) {
	v := gapScene(t)
	root := jamq.Block{Hash: header('z', 9), Slot: 9}
	state := chainview.State{Recent: []chainview.RecentBlock{{Hash: header('a', 4), Slot: 4}, {Hash: header('a', 5), Slot: 5}, {Hash: root.Hash, Slot: 9}}}
	require.NoError(t, v.Continue(root, whole(state), nil))
	s := status(t, v, jamq.PackageHash{2})
	require.Equal(t, header('a', 5), s.Reported.Hash)
	require.Equal(t, anchor.Unavailable, s.Dead)
	require.Equal(t, anchor.AnchorExpired, status(t, v, jamq.PackageHash{3}).Dead)
	require.Equal(t, header('a', 4), status(t, v, jamq.PackageHash{1}).Accumulated.Hash)
	requireRestores(t, v)
}

// A state in which one block is twice in recent history is none.
func TestContinueRefusesTwice(t *testing.T) {
	v := gapScene(t)
	before := v.AppendSnapshot(nil)
	root := jamq.Block{Hash: header('z', 90), Slot: 90}
	state := whole(chainview.State{Recent: []chainview.RecentBlock{{Hash: root.Hash, Slot: 90}}})
	state.Recent[1] = state.Recent[0]
	require.ErrorIs(t, v.Continue(root, state, nil), chainview.ErrConflict)
	require.Equal(t, before, v.AppendSnapshot(nil))
}

func TestContinueRefuses(t *testing.T) {
	v := gapScene(t)
	before := v.AppendSnapshot(nil)
	root := jamq.Block{Hash: header('z', 90), Slot: 90}
	with := func(change func(*chainview.State)) chainview.State {
		s := chainview.State{Recent: []chainview.RecentBlock{{Hash: header('z', 89)}, {Hash: root.Hash}}}
		s = whole(s)
		s.Recent[6], s.Recent[7] = chainview.RecentBlock{Hash: header('z', 89)}, chainview.RecentBlock{Hash: root.Hash}
		change(&s)
		return s
	}
	pkg := jamq.PackageHash{3}
	for name, c := range map[string]struct {
		root  jamq.Block
		state chainview.State
		want  error
	}{
		"old": {jamq.Block{Hash: header('z', 4), Slot: 4}, chainview.State{}, chainview.ErrOld},
		"known": {jamq.Block{Hash: header('a', 5), Slot: 5}, whole(chainview.State{Recent: []chainview.RecentBlock{
			{Hash: header('a', 4), Slot: 4}, {Hash: header('a', 5), Slot: 5},
		}}), chainview.ErrConflict},
		"on a core":         {root, with(func(s *chainview.State) { s.Cores = []chainview.CoreReport{{Package: pkg}, {}} }), chainview.ErrUndecided},
		"ready":             {root, with(func(s *chainview.State) { s.Ready = []chainview.ReadyReport{{Package: pkg}} }), chainview.ErrUndecided},
		"reportable":        {root, with(func(s *chainview.State) { s.Recent[0].Hash = header('a', 1) }), chainview.ErrUndecided},
		"contradiction":     {root, with(func(s *chainview.State) { s.Accumulated[0] = []jamq.PackageHash{pkg} }), chainview.ErrConflict},
		"no recent blocks":  {root, with(func(s *chainview.State) { s.Recent = nil }), chainview.ErrConflict},
		"one block missing": {root, with(func(s *chainview.State) { s.Recent = s.Recent[1:] }), chainview.ErrConflict},
		"no cores":          {root, with(func(s *chainview.State) { s.Cores = nil }), chainview.ErrConflict},
		"half an epoch":     {root, with(func(s *chainview.State) { s.Accumulated = s.Accumulated[6:] }), chainview.ErrConflict},
		"another chain":     {root, with(func(s *chainview.State) { s.Recent[0].Slot = 4 }), chainview.ErrConflict},
		"another's root":    {root, chainview.State{Recent: []chainview.RecentBlock{{Hash: header('z', 1)}}}, chainview.ErrConflict},
	} {
		require.ErrorIs(t, v.Continue(c.root, c.state, nil), c.want, name)
		require.Equal(t, before, v.AppendSnapshot(nil), name)
	}
}

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

// A package of others that was accumulated before the blocks whose names the view knows.
func TestForeignPrerequisiteBeforeTheView(t *testing.T) {
	spec, foreign, root := jamq.Tiny(), jamq.PackageHash{0xf}, jamq.Block{Hash: header('a', 9), Slot: 9}
	v, err := chainview.NewAt(&spec, root, chainview.State{Accumulated: [][]jamq.PackageHash{{foreign}, nil}})
	require.NoError(t, err)
	grow(t, v, 'a', root.Hash, 9, 11)
	watch(t, v, pkg, chainview.Package{Anchor: root.Hash, LookupAnchorSlot: 9, Prerequisites: []jamq.PackageHash{foreign}})
	require.Equal(t, anchor.Alive, status(t, v, pkg).Dead)
	requireRestores(t, v)
}

// A package of others that was reported before a short gap may have become
// available in it. So it is not taken for dead when its availability time-out
// passes, and a package that names it after the gap stays alive.
func TestForeignPrerequisiteInAGap(t *testing.T) {
	foreign, old := jamq.PackageHash{0xf}, jamq.PackageHash{1}
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 2)
	watch(t, v, old, chainview.Package{Anchor: header('a', 1), LookupAnchorSlot: 1, Prerequisites: []jamq.PackageHash{foreign}})
	grow(t, v, 'a', header('a', 2), 2, 6)
	b := jamq.Block{Hash: header('a', 7), Parent: header('a', 6), Slot: 7, Reported: []jamq.Report{{Package: foreign}}}
	require.NoError(t, v.ImportBest(&b, b.Hash))
	require.NoError(t, v.Finalize(b.Hash))

	// The gap is block 8, which makes the foreign package available and accumulates it, and block
	// 9.
	root := jamq.Block{Hash: header('z', 9), Slot: 9}
	state := whole(chainview.State{Recent: []chainview.RecentBlock{
		{Hash: header('a', 7), Slot: 7, Reported: []chainview.ReportedPackage{{Package: foreign}}},
		{Hash: header('z', 8), Slot: 8}, {Hash: root.Hash, Slot: 9},
	}})
	state.Accumulated[len(state.Accumulated)-2] = []jamq.PackageHash{foreign}
	require.NoError(t, v.Continue(root, state, nil))
	require.NotEqual(t, anchor.Alive, status(t, v, old).Dead)

	grow(t, v, 'z', root.Hash, 9, 13) // slot 12 is the availability time-out
	watch(t, v, pkg, chainview.Package{Anchor: header('z', 12), LookupAnchorSlot: 12, Prerequisites: []jamq.PackageHash{foreign}})
	require.Equal(t, anchor.Alive, status(t, v, pkg).Dead, "the report of slot 7 is in recent history")
	requireRestores(t, v)
}

// A report that the view learns of from the state after a gap expires as a
// prerequisite like any other.
func TestForeignPrerequisiteReportedInAGap(t *testing.T) {
	foreign, old := jamq.PackageHash{0xf}, jamq.PackageHash{1}
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 2)
	watch(t, v, old, chainview.Package{Anchor: header('a', 1), LookupAnchorSlot: 1, Prerequisites: []jamq.PackageHash{foreign}})
	root := jamq.Block{Hash: header('z', 20), Slot: 20}
	require.NoError(t, v.Continue(root, whole(chainview.State{Recent: []chainview.RecentBlock{
		{Hash: header('z', 19), Slot: 19, Reported: []chainview.ReportedPackage{{Package: foreign}}}, {Hash: root.Hash, Slot: 20},
	}}), nil))
	watch(t, v, pkg, chainview.Package{Anchor: root.Hash, LookupAnchorSlot: 20, Prerequisites: []jamq.PackageHash{foreign}})
	grow(t, v, 'z', root.Hash, 20, 26)
	require.Equal(t, anchor.Alive, status(t, v, pkg).Dead, "seven blocks after the report")
	grow(t, v, 'z', header('z', 26), 26, 27)
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
