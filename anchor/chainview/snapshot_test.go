package chainview_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/jamtest"
)

// saved returns the snapshot of a view in the midst of a busy chain.
func saved(t testing.TB) []byte {
	t.Helper()
	cfg := jamtest.DefaultConfig(jamq.Tiny(), 3)
	cfg.ForeignLoad, cfg.FinalityLag, cfg.MaxForkDepth, cfg.ForkProbability = 0.7, 4, 3, 0.3
	c, err := jamtest.New(cfg)
	require.NoError(t, err)
	spec := jamq.Tiny()
	v, err := chainview.New(&spec, c.Best())
	require.NoError(t, err)
	for i := range 40 {
		if context, err := c.Context(1); err == nil {
			p := jamtest.NewPackage(1, context, []byte{byte(i)})
			_, err := v.Watch(p.Hash, chainview.Package{Anchor: context.Anchor, LookupAnchorSlot: context.LookupAnchorSlot})
			require.NoError(t, err)
			require.NoError(t, c.Submit(p, jamq.CoreIndex(i%2), 0))
		}
		u := c.Advance()
		for _, b := range u.Imported {
			require.NoError(t, v.Import(&b))
		}
		require.NoError(t, v.SetBest(u.Best))
		require.NoError(t, v.Finalize(u.Finalized))
	}
	v.Changes(func(*chainview.Trace) {})
	return v.AppendSnapshot(nil)
}

func TestSnapshotRestoresTheView(t *testing.T) {
	spec := jamq.Tiny()
	b := saved(t)
	v, err := chainview.Restore(&spec, b)
	require.NoError(t, err)
	require.Equal(t, b, v.AppendSnapshot(nil))
	v.Changes(func(t *chainview.Trace) { panic("nothing has changed by being restored") })
	for _, cut := range []int{0, 1, len(b) / 2, len(b) - 1} {
		_, err := chainview.Restore(&spec, b[:cut])
		require.ErrorIs(t, err, chainview.ErrCorrupt)
	}
	spec.Cores = 0
	_, err = chainview.Restore(&spec, b)
	require.ErrorIs(t, err, jamq.ErrInvalidSpec)
}

// TestSnapshotLosesNothing saves a view with a value in each field, and
// compares the results of both views, then and after the same further blocks.
func TestSnapshotLosesNothing(t *testing.T) {
	spec := jamq.Tiny()
	parent, child, other := jamq.PackageHash{1}, jamq.PackageHash{2}, jamq.PackageHash{3}
	report := func(h byte, pkg jamq.PackageHash, needs ...jamq.PackageHash) chainview.CoreReport {
		return chainview.CoreReport{Hash: common.Hash{h}, Package: pkg, SegmentRoot: common.Hash{h, 1}, Needs: needs, Since: 9}
	}
	v, err := chainview.NewAt(&spec, jamq.Block{Hash: header('a', 10), Slot: 10}, chainview.State{
		Recent: []chainview.RecentBlock{
			{Hash: header('a', 9), Slot: 9, StateRoot: common.Hash{9},
				Reported: []chainview.ReportedPackage{{Package: parent, SegmentRoot: common.Hash{8}}}},
			{Hash: header('a', 10), Slot: 10},
		},
		Cores:       []chainview.CoreReport{report(1, parent), report(2, other, jamq.PackageHash{4})},
		Ready:       []chainview.ReadyReport{{Package: jamq.PackageHash{5}, Unmet: []jamq.PackageHash{{6}}, Since: 8}},
		Accumulated: [][]jamq.PackageHash{{{7}}, {{8}}},
	})
	require.NoError(t, err)
	watch(t, v, jamq.PackageHash{9}, chainview.Package{Anchor: header('a', 9), LookupAnchorSlot: 9})
	v.Forget(jamq.PackageHash{9})
	watch(t, v, parent, chainview.Package{Anchor: header('a', 9), LookupAnchorSlot: 9})
	watch(t, v, child, chainview.Package{Anchor: header('a', 10), LookupAnchorSlot: 7, Prerequisites: []jamq.PackageHash{parent}})
	a := jamq.Block{Hash: header('a', 11), Parent: header('a', 10), Slot: 11, ParentStateRoot: common.Hash{10}, Available: []jamq.CoreIndex{0}}
	b := jamq.Block{Hash: header('b', 11), Parent: header('a', 10), Slot: 11, Condemned: []common.Hash{{1}}}
	require.NoError(t, v.ImportBest(&a, a.Hash))
	require.NoError(t, v.Import(&b))
	v.Changes(func(*chainview.Trace) {})

	restored, err := chainview.Restore(&spec, v.AppendSnapshot(nil))
	require.NoError(t, err)
	heads := []jamq.HeaderHash{a.Hash, b.Hash, a.Hash}
	for i := range 12 {
		for _, view := range []*chainview.View{v, restored} {
			require.NoError(t, view.SetBest(heads[i%3]))
		}
		require.Equal(t, v.State(), restored.State())
		for _, pkg := range []jamq.PackageHash{parent, child} {
			require.Equal(t, status(t, v, pkg), status(t, restored, pkg), "head %v", heads[i%3])
			one, _ := v.Trace(pkg)
			two, _ := restored.Trace(pkg)
			require.Equal(t, one.Prerequisites(), two.Prerequisites())
			require.Equal(t, one.LookupAnchorSlot(), two.LookupAnchorSlot())
			require.Equal(t, one.Anchor(), two.Anchor())
		}
		n := jamq.Block{Hash: header('c', 12+i), Parent: heads[i%3], Slot: v.Best().Slot + 1, Reported: []jamq.Report{{Package: jamq.PackageHash{0xff, byte(i)}}}}
		for _, view := range []*chainview.View{v, restored} {
			require.NoError(t, view.Import(&n))
		}
		heads[i%3] = n.Hash
	}
}

// Restore does not panic on arbitrary bytes, and a view that it returns can be
// used.
func FuzzRestore(f *testing.F) {
	f.Add(saved(f))
	spec := jamq.Tiny()
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := chainview.Restore(&spec, b)
		if err != nil {
			return
		}
		best := v.Best()
		next := jamq.Block{Hash: jamq.HeaderHash{0xfe, 1}, Parent: best.Hash, Slot: best.Slot.Add(1)}
		if v.ImportBest(&next, next.Hash) == nil {
			_ = v.Finalize(next.Hash)
		}
		v.State()
		v.AppendSnapshot(nil)
	})
}
