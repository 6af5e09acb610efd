package chainview_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

func TestWatch(t *testing.T) {
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 2)
	first, err := v.Watch(pkg, chainview.Package{Anchor: header('a', 1), LookupAnchorSlot: 1})
	require.NoError(t, err)
	again, err := v.Watch(pkg, chainview.Package{Anchor: header('a', 2), LookupAnchorSlot: 2})
	require.NoError(t, err)
	require.Same(t, first, again, "watching again changes nothing")
	require.Equal(t, header('a', 1), again.Anchor().Hash)
	require.Equal(t, jamq.Slot(1), again.LookupAnchorSlot())

	_, err = v.Watch(jamq.PackageHash{1}, chainview.Package{Anchor: header('x', 1)})
	require.ErrorIs(t, err, chainview.ErrUnknownBlock)
	_, watched := v.Trace(jamq.PackageHash{1})
	require.False(t, watched)
}

func TestForget(t *testing.T) {
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 2)
	child := jamq.PackageHash{0xbb}
	watch(t, v, pkg, chainview.Package{Anchor: header('a', 1)})
	watch(t, v, child, chainview.Package{Anchor: header('a', 2), Prerequisites: []jamq.PackageHash{pkg}})
	grow(t, v, 'a', header('a', 2), 2, 9)
	require.Equal(t, anchor.AnchorExpired, status(t, v, pkg).Dead)
	require.Equal(t, anchor.PrerequisiteGone, status(t, v, child).Dead)

	v.Changes(func(*chainview.Trace) {})
	v.Forget(jamq.PackageHash{1}) // never watched
	v.Forget(pkg)
	require.Equal(t, anchor.PrerequisiteGone, status(t, v, child).Dead, "the death of the forgotten package is evidence")
	v.Changes(func(trace *chainview.Trace) { t.Errorf("package %s has changed", trace.Package()) })
	_, followed := v.Trace(pkg)
	require.True(t, followed, "a watched package names it")
	v.Forget(child)
	_, followed = v.Trace(pkg)
	require.False(t, followed)
	_, err := v.Status(pkg)
	require.ErrorIs(t, err, chainview.ErrNotWatched)
	watch(t, v, child, chainview.Package{Anchor: header('a', 9), LookupAnchorSlot: 9})

	// Neither its deadlines nor changes that were not reported yet survive it.
	byHeight, bySlot, unreported := jamq.PackageHash{2}, jamq.PackageHash{3}, jamq.PackageHash{4}
	watch(t, v, byHeight, chainview.Package{Anchor: header('a', 9), LookupAnchorSlot: 1 << 20})
	watch(t, v, bySlot, chainview.Package{Anchor: header('a', 9), LookupAnchorSlot: 1})
	v.Changes(func(*chainview.Trace) {})
	watch(t, v, unreported, chainview.Package{Anchor: header('a', 1)})
	require.Equal(t, anchor.AnchorExpired, status(t, v, unreported).Dead)
	for _, forgotten := range []jamq.PackageHash{byHeight, bySlot, unreported, child} {
		v.Forget(forgotten)
	}
	grow(t, v, 'a', header('a', 9), 9, 40)
	v.Changes(func(trace *chainview.Trace) { t.Errorf("forgotten package %s has changed", trace.Package()) })

	// A package of the same name can be watched again, as another one.
	watch(t, v, pkg, chainview.Package{Anchor: header('a', 40), LookupAnchorSlot: 40})
	require.Equal(t, anchor.Alive, status(t, v, pkg).Dead)
}

// TestReportedBefore reports a package a second time with a fresh context, when
// it has left recent history (GP 11.36 to 11.38).
func TestReportedBefore(t *testing.T) {
	spec := jamq.Tiny()
	spec.RecentHistory, spec.AvailabilityTimeout, spec.EpochLength = 3, 10, 6
	reportable := func(v *chainview.View) error {
		best := v.Best()
		parent, ok := v.AtHeight(best.Height - 1)
		require.True(t, ok)
		return v.Reportable(best.Slot+1, nil, []chainview.Candidate{{
			Package: pkg, Core: 1, GuaranteeSlot: best.Slot + 1,
			Context: jamq.RefineContext{Anchor: parent.Hash, LookupAnchor: parent.Hash, LookupAnchorSlot: parent.Slot},
		}})
	}
	for _, c := range []struct {
		name  string
		needs []jamq.PackageHash
		// available is the slot of the block that makes the report available, or 0.
		// free is the first best block on which the package can be reported again.
		available, free int
	}{
		{"on its core until the time-out", nil, 0, 13}, // reported in 3, removed in 13
		{"accumulated", nil, 4, 10},                    // in 4, remembered by the 6 blocks 4 to 9
		{"in the ready queue", []jamq.PackageHash{{1}}, 4, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := chainview.New(&spec, jamq.Block{Hash: header('a', 0)})
			require.NoError(t, err)
			grow(t, v, 'a', header('a', 0), 0, 2)
			for slot := 3; slot <= c.free; slot++ {
				b := jamq.Block{Hash: header('a', slot), Parent: header('a', slot-1), Slot: jamq.Slot(slot)}
				switch slot {
				case 3:
					b.Reported = []jamq.Report{{Hash: common.Hash{1}, Package: pkg, Prerequisites: c.needs}}
				case c.available:
					b.Available = []jamq.CoreIndex{0}
				}
				require.NoError(t, v.ImportBest(&b, b.Hash))
				if slot < c.free {
					require.ErrorIs(t, reportable(v), chainview.ErrReportedBefore, "on block %d", slot)
				}
			}
			require.NoError(t, reportable(v))
		})
	}
}

func TestTreeIsBounded(t *testing.T) {
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, chainview.MaxUnfinalized-1)
	last := chainview.MaxUnfinalized
	fork := jamq.Block{Hash: header('b', last), Parent: header('a', last-1), Slot: jamq.Slot(last)}
	require.NoError(t, v.Import(&fork), "the last one for which there is room")
	next := jamq.Block{Hash: header('a', last), Parent: header('a', last-1), Slot: jamq.Slot(last)}
	require.ErrorIs(t, v.Import(&next), chainview.ErrFull)
	require.False(t, v.Holds(next.Hash))
	require.NoError(t, v.Finalize(header('a', 1)))
	require.NoError(t, v.Import(&next), "finality makes room")
}
