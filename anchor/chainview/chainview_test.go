package chainview_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// header makes a hash of a fork's letter and a slot.
func header(fork byte, slot int) jamq.HeaderHash {
	return jamq.HeaderHash{fork, byte(slot >> 8), byte(slot), 0xff}
}

func newView(t *testing.T) *chainview.View {
	t.Helper()
	spec := jamq.Tiny()
	v, err := chainview.New(&spec, jamq.Block{Hash: header('a', 0)})
	require.NoError(t, err)
	return v
}

// grow imports empty blocks of a fork in the slots from+1 to to, one each, and makes the last the
// best.
func grow(t *testing.T, v *chainview.View, fork byte, parent jamq.HeaderHash, from, to int) {
	t.Helper()
	for s := from + 1; s <= to; s++ {
		b := jamq.Block{Hash: header(fork, s), Parent: parent, Slot: jamq.Slot(s)}
		require.NoError(t, v.ImportBest(&b, b.Hash))
		parent = b.Hash
	}
}

var pkg = jamq.PackageHash{0xaa}

func status(t *testing.T, v *chainview.View, p jamq.PackageHash) chainview.Status {
	t.Helper()
	s, err := v.Status(p)
	require.NoError(t, err)
	return s
}

func watch(t *testing.T, v *chainview.View, pkg jamq.PackageHash, p chainview.Package) {
	t.Helper()
	_, err := v.Watch(pkg, p)
	require.NoError(t, err)
}

func TestLifeOfAPackage(t *testing.T) {
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 2)
	watch(t, v, pkg, chainview.Package{Anchor: header('a', 1)})

	require.NoError(t, v.ImportBest(&jamq.Block{Hash: header('a', 3), Parent: header('a', 2), Slot: 3, Reported: []jamq.Report{{Package: pkg, Core: 1}}}, header('a', 3)))
	require.Equal(t, uint64(3), status(t, v, pkg).Reported.Height)
	require.True(t, v.CoreFree(0))
	require.False(t, v.CoreFree(1))

	require.NoError(t, v.ImportBest(&jamq.Block{Hash: header('a', 5), Parent: header('a', 3), Slot: 5, Available: []jamq.CoreIndex{1}}, header('a', 5)))
	s := status(t, v, pkg)
	require.Equal(t, uint64(4), s.Available.Height)
	require.Equal(t, jamq.Slot(5), s.Accumulated.Slot)
	require.Equal(t, anchor.Alive, s.Dead)
	require.True(t, v.CoreFree(1))
}

// A block puts one report on a core at most.
func TestReportableOnePerCore(t *testing.T) {
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 2)
	context := jamq.RefineContext{Anchor: header('a', 1), LookupAnchor: header('a', 1), LookupAnchorSlot: 1}
	two := []chainview.Candidate{{Package: pkg, Context: context}, {Package: jamq.PackageHash{1}, Core: 1, Context: context}}
	require.NoError(t, v.Reportable(3, nil, two))
	two[1].Core = 0
	require.ErrorIs(t, v.Reportable(3, nil, two), chainview.ErrCoreEngaged)
	require.ErrorIs(t, v.Reportable(2, nil, two), chainview.ErrConflict)
	two[0].Core = 9
	require.ErrorIs(t, v.Reportable(3, []jamq.CoreIndex{9}, two), jamq.ErrInvalidBlock)
}

// A verdict names its report by hash. Hosts without verdicts leave the hashes
// zero, and a zero hash condemns no report.
func TestVerdict(t *testing.T) {
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 2)
	watch(t, v, pkg, chainview.Package{Anchor: header('a', 1)})
	for i, condemned := range []common.Hash{{}, {5}} {
		slot := 3 + i
		b := jamq.Block{Hash: header('a', slot), Parent: header('a', slot-1), Slot: jamq.Slot(slot), Condemned: []common.Hash{condemned}}
		if i == 0 {
			b.Condemned = nil
			b.Reported = []jamq.Report{{Hash: common.Hash{5}, Package: pkg}, {Package: jamq.PackageHash{1}, Core: 1}}
		} else {
			b.Condemned = append(b.Condemned, common.Hash{})
		}
		require.NoError(t, v.ImportBest(&b, b.Hash))
	}
	require.Equal(t, anchor.Unavailable, status(t, v, pkg).Dead)
	require.Zero(t, v.State().Cores[0], "the condemned report has left its core")
	require.Equal(t, jamq.PackageHash{1}, v.State().Cores[1].Package)
}

// A block may be imported long before it becomes the best one.
func TestBlockThatBecomesBestLater(t *testing.T) {
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 2)
	watch(t, v, pkg, chainview.Package{Anchor: header('a', 1)})
	b := jamq.Block{Hash: header('a', 3), Parent: header('a', 2), Slot: 3, Reported: []jamq.Report{{Package: pkg, Core: 1}}}
	require.NoError(t, v.Import(&b))
	require.True(t, status(t, v, pkg).Reported.IsZero())
	require.NoError(t, v.SetBest(b.Hash))
	require.Equal(t, b.Hash, status(t, v, pkg).Reported.Hash)
}

func TestDeathHasTheOldestBlockAsEvidence(t *testing.T) {
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 2)
	watch(t, v, pkg, chainview.Package{Anchor: header('a', 1)})
	child := jamq.PackageHash{0xbb}
	watch(t, v, child, chainview.Package{Anchor: header('a', 2), Prerequisites: []jamq.PackageHash{pkg}})
	grow(t, v, 'a', header('a', 2), 2, 12)

	s := status(t, v, pkg)
	require.Equal(t, anchor.AnchorExpired, s.Dead)
	require.Equal(t, header('a', 9), s.DeadSince.Hash, "eight blocks after its anchor")
	s = status(t, v, child)
	require.Equal(t, header('a', 9), s.DeadSince.Hash, "death spreads at once: a block before the child's own anchor expires")
	require.Equal(t, anchor.PrerequisiteGone, s.Dead, "the reason is that of the evidence, also if the view is asked later")
}

func TestUnavailableReportDiesBySlots(t *testing.T) {
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 2)
	watch(t, v, pkg, chainview.Package{Anchor: header('a', 1)})
	require.NoError(t, v.ImportBest(&jamq.Block{Hash: header('a', 3), Parent: header('a', 2), Slot: 3, Reported: []jamq.Report{{Package: pkg}}}, header('a', 3)))
	require.NoError(t, v.ImportBest(&jamq.Block{Hash: header('a', 8), Parent: header('a', 3), Slot: 8}, header('a', 8)))
	s := status(t, v, pkg)
	require.Equal(t, anchor.Unavailable, s.Dead)
	require.Equal(t, uint64(4), s.DeadSince.Height)
}

func TestReorgTakesBackAndBringsBack(t *testing.T) {
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 2)
	watch(t, v, pkg, chainview.Package{Anchor: header('a', 1)})
	require.NoError(t, v.ImportBest(&jamq.Block{Hash: header('a', 3), Parent: header('a', 2), Slot: 3, Reported: []jamq.Report{{Package: pkg}}}, header('a', 3)))

	grow(t, v, 'b', header('a', 2), 2, 4)
	require.True(t, status(t, v, pkg).Reported.IsZero(), "the other branch has not reported it")
	grow(t, v, 'c', header('a', 0), 0, 6)
	require.Equal(t, anchor.OtherFork, status(t, v, pkg).Dead, "the third has not even its anchor")
	require.Equal(t, header('c', 1), status(t, v, pkg).DeadSince.Hash)

	require.NoError(t, v.SetBest(header('a', 3)))
	require.Equal(t, header('a', 3), status(t, v, pkg).Reported.Hash)
	require.Equal(t, uint64(3), v.Best().Height)
}

func TestFinalityPrunesAndNeverMovesBack(t *testing.T) {
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 3)
	grow(t, v, 'b', header('a', 2), 2, 4)
	watch(t, v, pkg, chainview.Package{Anchor: header('b', 3)})
	require.NoError(t, v.SetBest(header('a', 3)))
	grow(t, v, 'a', header('a', 3), 3, 40)
	require.NoError(t, v.Finalize(header('a', 30)))
	require.NoError(t, v.Finalize(header('a', 30)), "the same block again")
	require.ErrorIs(t, v.Finalize(header('a', 29)), chainview.ErrOld, "an ancestor")
	require.ErrorIs(t, v.SetBest(header('a', 29)), chainview.ErrOld, "an ancestor")
	require.Equal(t, uint64(30), v.Finalized().Height)

	_, held := v.AtHeight(30 - 8)
	require.True(t, held, "anchors may still refer to it")
	_, held = v.AtHeight(10)
	require.False(t, held)
	require.ErrorIs(t, v.SetBest(header('b', 4)), chainview.ErrUnknownBlock, "the fork that lost is gone")
	require.ErrorIs(t, v.SetBest(header('a', 29)), chainview.ErrOld, "the best chain contains the finalized block")
	require.Equal(t, anchor.OtherFork, status(t, v, pkg).Dead, "but what hung on it is remembered as dead")
	require.ErrorIs(t, v.Import(&jamq.Block{Hash: header('d', 31), Parent: header('a', 29), Slot: 31}), chainview.ErrOld, "a fork below the finalized block")
	require.ErrorIs(t, v.Import(&jamq.Block{Hash: header('d', 30), Parent: header('d', 29), Slot: 30}), chainview.ErrOld, "its slot is not later")
	require.ErrorIs(t, v.Import(&jamq.Block{Hash: header('d', 31), Parent: header('d', 30), Slot: 31}), chainview.ErrMissingParent, "it may descend from the finalized block")
}

func TestRefusals(t *testing.T) {
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 3)
	before := v.Best()

	err := v.Import(&jamq.Block{Hash: header('x', 9), Parent: header('x', 8), Slot: 9})
	var missing *chainview.MissingError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, header('x', 8), missing.Missing)
	require.ErrorIs(t, err, chainview.ErrMissingParent)

	require.ErrorIs(t, v.Import(&jamq.Block{Hash: header('x', 3), Parent: header('a', 3), Slot: 3}), chainview.ErrConflict)
	require.ErrorIs(t, v.Import(&jamq.Block{Hash: header('x', 4), Parent: header('a', 3), Slot: 4, Available: []jamq.CoreIndex{2}}), jamq.ErrInvalidBlock)
	require.ErrorIs(t, v.ImportBest(&jamq.Block{Hash: header('x', 4), Parent: header('a', 3), Slot: 4}, header('y', 1)), chainview.ErrUnknownBlock)
	require.ErrorIs(t, v.SetBest(header('x', 4)), chainview.ErrUnknownBlock, "the refused call imported nothing")
	require.ErrorIs(t, v.Finalize(header('x', 4)), chainview.ErrUnknownBlock)
	_, err = v.Status(pkg)
	require.ErrorIs(t, err, chainview.ErrNotWatched)
	require.Equal(t, before, v.Best())
}

// Death on a fork is not evidence once finality has abandoned that fork, even
// if no status was read between the reorg and finality.
func TestFinalityOfAnotherForkRevives(t *testing.T) {
	spec := jamq.Tiny()
	root := jamq.Block{Hash: jamq.HeaderHash{1}, Slot: 1}
	v, err := chainview.New(&spec, root)
	require.NoError(t, err)
	block := func(parent jamq.Block, name byte) jamq.Block {
		return jamq.Block{Hash: jamq.HeaderHash{name}, Parent: parent.Hash, Slot: parent.Slot + 1}
	}
	a1 := block(root, 0xa1)
	a2 := block(a1, 0xa2)
	b1 := block(root, 0xb1)
	b2 := block(b1, 0xb2)
	b3 := block(b2, 0xb3)
	pkg := jamq.PackageHash{7}
	for _, b := range []jamq.Block{a1, a2, b1, b2} {
		require.NoError(t, v.Import(&b))
	}
	require.NoError(t, v.SetBest(a2.Hash))
	_, err = v.Watch(pkg, chainview.Package{Anchor: b1.Hash, LookupAnchorSlot: 1})
	require.NoError(t, err)
	s, err := v.Status(pkg)
	require.NoError(t, err)
	require.Equal(t, anchor.OtherFork, s.Dead)
	require.NoError(t, v.Finalize(b2.Hash))
	s, err = v.FinalStatus(pkg)
	require.NoError(t, err)
	require.Equal(t, anchor.Alive, s.Dead, "the finalized chain has its anchor")
	b3.Reported = []jamq.Report{{Package: pkg, Anchor: b1.Hash}}
	require.NoError(t, v.ImportBest(&b3, b3.Hash))
	s, err = v.Status(pkg)
	require.NoError(t, err)
	require.Equal(t, b3.Hash, s.Reported.Hash)
	require.Equal(t, anchor.Alive, s.Dead)
}

// A known block never makes an ancestor of the best block the best one, and can
// make another fork the best chain.
func TestImportBestNeverGoesBack(t *testing.T) {
	spec := jamq.Tiny()
	block := func(hash, parent byte, slot jamq.Slot) *jamq.Block {
		return &jamq.Block{Hash: jamq.HeaderHash{hash}, Parent: jamq.HeaderHash{parent}, Slot: slot}
	}
	v, err := chainview.New(&spec, jamq.Block{Hash: jamq.HeaderHash{'r'}})
	require.NoError(t, err)
	main := []*jamq.Block{block('a', 'r', 1), block('b', 'a', 2), block('c', 'b', 3)}
	for range 2 {
		for _, b := range main {
			require.NoError(t, v.ImportBest(b, b.Hash))
		}
		require.NoError(t, v.ImportBest(main[2], jamq.HeaderHash{'r'}))
		require.Equal(t, jamq.HeaderHash{'c'}, v.Best().Hash)
	}
	fork := block('d', 'a', 2)
	require.NoError(t, v.ImportBest(fork, jamq.HeaderHash{'b'}), "a new block may come with an older best one")
	require.Equal(t, jamq.HeaderHash{'b'}, v.Best().Hash)
	require.NoError(t, v.ImportBest(fork, fork.Hash))
	require.Equal(t, fork.Hash, v.Best().Hash)
	require.ErrorIs(t, v.ImportBest(fork, jamq.HeaderHash{'x'}), chainview.ErrUnknownBlock)
}
