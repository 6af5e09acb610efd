package chainview_test

import (
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// A package that was reported is forgotten when it is final. It then leaves
// recent history, and no block can report the package that names it (D4).
func TestForgottenPackageLeavesRecentHistory(t *testing.T) {
	v := newView(t)
	child := jamq.PackageHash{0xbb}
	grow(t, v, 'a', header('a', 0), 0, 1)
	watch(t, v, pkg, chainview.Package{Anchor: header('a', 1)})
	block := func(slot int, change func(*jamq.Block)) {
		b := jamq.Block{Hash: header('a', slot), Parent: header('a', slot-1), Slot: jamq.Slot(slot)}
		change(&b)
		require.NoError(t, v.ImportBest(&b, b.Hash))
	}
	block(2, func(b *jamq.Block) { b.Reported = []jamq.Report{{Hash: common.Hash{1}, Package: pkg}} })
	block(3, func(b *jamq.Block) { b.Available = []jamq.CoreIndex{0} })
	require.NoError(t, v.Finalize(header('a', 3)))
	watch(t, v, child, chainview.Package{Anchor: header('a', 3), LookupAnchorSlot: 3, Prerequisites: []jamq.PackageHash{pkg}})
	v.Forget(pkg)
	history := jamq.Tiny().RecentHistory
	grow(t, v, 'a', header('a', 3), 3, history)
	require.Equal(t, anchor.Alive, status(t, v, child).Dead)
	grow(t, v, 'a', header('a', history), history, 2+history)
	require.Equal(t, anchor.PrerequisiteGone, status(t, v, child).Dead)
	requireRestores(t, v)
}

// A forgotten package that is not final can still die with one that it names,
// and then the package that names it dies as well.
func TestForgottenPackageDiesWithItsPrerequisite(t *testing.T) {
	v := newView(t)
	first, second := jamq.PackageHash{1}, jamq.PackageHash{2}
	grow(t, v, 'a', header('a', 0), 0, 5)
	watch(t, v, first, chainview.Package{Anchor: header('a', 1), LookupAnchorSlot: 5})
	watch(t, v, second, chainview.Package{Anchor: header('a', 3), LookupAnchorSlot: 5, Prerequisites: []jamq.PackageHash{first}})
	watch(t, v, pkg, chainview.Package{Anchor: header('a', 4), LookupAnchorSlot: 5, Prerequisites: []jamq.PackageHash{second}})
	require.Equal(t, anchor.Alive, status(t, v, pkg).Dead)
	v.Forget(second)
	v.Forget(first)
	last := 1 + jamq.Tiny().RecentHistory // first expires here
	grow(t, v, 'a', header('a', 5), 5, last)
	require.Equal(t, anchor.PrerequisiteGone, status(t, v, pkg).Dead)
	requireRestores(t, v)
}

// If each package names the one before it, the view still forgets all that are
// final, except the one that the newest names.
func TestForgottenPackagesAreBounded(t *testing.T) {
	v := newView(t)
	sizes := []int{}
	var before []jamq.PackageHash
	for i := range 200 {
		p := jamq.PackageHash{1, byte(i >> 8), byte(i)}
		slot := 3 * i
		grow(t, v, 'a', header('a', slot), slot, slot+1)
		watch(t, v, p, chainview.Package{Anchor: header('a', slot+1), LookupAnchorSlot: jamq.Slot(slot + 1), Prerequisites: before})
		for _, b := range []jamq.Block{
			{Slot: jamq.Slot(slot + 2), Reported: []jamq.Report{{Hash: common.Hash{1}, Package: p, Prerequisites: before}}},
			{Slot: jamq.Slot(slot + 3), Available: []jamq.CoreIndex{0}},
		} {
			b.Hash, b.Parent = header('a', int(b.Slot)), header('a', int(b.Slot)-1)
			require.NoError(t, v.ImportBest(&b, b.Hash))
		}
		require.NotZero(t, status(t, v, p).Accumulated)
		require.NoError(t, v.Finalize(header('a', slot+3)))
		for _, old := range before {
			v.Forget(old)
		}
		before = []jamq.PackageHash{p}
		sizes = append(sizes, len(v.AppendSnapshot(nil)))
	}
	require.LessOrEqual(t, slices.Max(sizes), slices.Max(sizes[:180])+100, "numbers with more digits need more bytes")
}

func trace(t *testing.T, v *chainview.View, pkg jamq.PackageHash) *chainview.Trace {
	t.Helper()
	out, ok := v.Trace(pkg)
	require.True(t, ok)
	return out
}

// The order in which blocks of forks were imported, or left the best chain, is
// not part of the state. Otherwise a restored view would not be equal to the old
// one, which has seen another order.
func TestOrderOfForksIsNoState(t *testing.T) {
	play := func(forks ...byte) *chainview.View {
		v := newView(t)
		grow(t, v, 'a', header('a', 0), 0, 3)
		for _, fork := range forks {
			parent := header('a', 1)
			for slot := 2; slot < 3+int(fork-'b'); slot++ {
				b := jamq.Block{Hash: header(fork, slot), Parent: parent, Slot: jamq.Slot(slot)}
				require.NoError(t, v.Import(&b))
				parent = b.Hash
			}
			if fork != 'd' { // which is never the best chain
				require.NoError(t, v.SetBest(parent))
				require.NoError(t, v.SetBest(header('a', 3)))
			}
		}
		return v
	}
	a, b := play('b', 'c', 'd'), play('d', 'b', 'c')
	require.Equal(t, a.AppendSnapshot(nil), b.AppendSnapshot(nil))
	for _, v := range []*chainview.View{a, b} {
		requireRestores(t, v)
		require.NoError(t, v.Finalize(header('a', 2)))
	}
	require.Equal(t, a.AppendSnapshot(nil), b.AppendSnapshot(nil), "the abandoned blocks too")
}

// Packages that name many others, or each other in a circle, are forgotten in
// little time. Real hashes make no circle, but the view takes any.
func TestForgetManyPaths(t *testing.T) {
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 3)
	p := func(i int) jamq.PackageHash { return jamq.PackageHash{1, byte(i)} }
	const packages = 120
	for i := range packages {
		var needs []jamq.PackageHash
		for k := max(0, i-3); k < i; k++ {
			needs = append(needs, p(k))
		}
		watch(t, v, p(i), chainview.Package{Anchor: header('a', 2), LookupAnchorSlot: 3, Prerequisites: needs})
	}
	watch(t, v, pkg, chainview.Package{Anchor: header('a', 2), LookupAnchorSlot: 3, Prerequisites: []jamq.PackageHash{{2}}})
	watch(t, v, jamq.PackageHash{2}, chainview.Package{Anchor: header('a', 2), LookupAnchorSlot: 3, Prerequisites: []jamq.PackageHash{pkg}})
	for i := range packages {
		v.Forget(p(i))
	}
	v.Forget(pkg)
	v.Forget(jamq.PackageHash{2})
	for i := range packages {
		_, followed := v.Trace(p(i))
		require.False(t, followed)
	}
}

// A forgotten package whose outcome is final has lost its prerequisites. It gets
// them again when it is watched again.
func TestWatchForgotten(t *testing.T) {
	v := newView(t)
	need, child := jamq.PackageHash{2}, jamq.PackageHash{0xbb}
	grow(t, v, 'a', header('a', 0), 0, 2)
	package1 := chainview.Package{Anchor: header('a', 1), Prerequisites: []jamq.PackageHash{need}}
	watch(t, v, pkg, package1)
	watch(t, v, child, chainview.Package{Anchor: header('a', 1), Prerequisites: []jamq.PackageHash{pkg}})
	grow(t, v, 'a', header('a', 2), 2, 12)
	require.NoError(t, v.Finalize(header('a', 11)))
	before := status(t, v, pkg)
	v.Forget(pkg)
	require.Empty(t, trace(t, v, pkg).Prerequisites())
	again, err := v.Watch(pkg, package1)
	require.NoError(t, err)
	require.Equal(t, package1.Prerequisites, again.Prerequisites())
	require.Equal(t, before, status(t, v, pkg))
	requireRestores(t, v)
}

// The hash of a block on an abandoned fork never becomes the hash of another
// block.
func TestAbandonedHashIsOld(t *testing.T) {
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 3)
	fork := jamq.Block{Hash: header('f', 2), Parent: header('a', 1), Slot: 2}
	require.NoError(t, v.Import(&fork))
	require.NoError(t, v.Finalize(header('a', 3)))
	fork.Parent, fork.Slot = header('a', 3), 9
	require.ErrorIs(t, v.Import(&fork), chainview.ErrOld)
}
