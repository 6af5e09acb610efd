package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// world feeds a model by hand. Its clock stands at a slot.
type world struct {
	t *testing.T
	m *model
	l levels
	// at is the current slot.
	at jamq.Slot
}

func newWorld(t *testing.T) *world {
	return &world{t: t, m: newModel(Info{}, jamq.Tiny(), 0), at: 1000, l: levels{pool: Pool{Max: 100}}}
}

func (w *world) now() time.Time { return jamq.NewSlotClock(jamq.Tiny()).Start(w.at) }

func (w *world) state() State { return w.m.state(w.now(), &w.l) }

func hash(n byte) jamq.HeaderHash { return jamq.HeaderHash{n} }

func pkg(n uint64, version int) jamq.PackageHash { return jamq.PackageHash{byte(n), byte(version)} }

// jam imports the block n on its parent in the current slot as the best one.
func (w *world) jam(n, parent byte, change ...func(*jamq.Block)) {
	b := jamq.Block{Hash: hash(n), Parent: hash(parent), Slot: w.at}
	for _, f := range change {
		f(&b)
	}
	w.m.importBlock(w.now(), b, b.Hash)
	w.at++
}

// to moves a bundle on.
func (w *world) to(number uint64, version int, from, to bundlequeue.State) {
	e := bundlequeue.Changed{Number: number, Version: version, From: from, To: to, Core: 1}
	if version > 0 {
		e.Package = pkg(number, version)
	}
	if to >= bundlequeue.Guaranteed {
		e.At = anchor.Point{Hash: hash(1), Slot: w.at}
	}
	w.m.change(w.now(), e, 3)
}

// submit takes a bundle from queued to submitted.
func (w *world) submit(number uint64, version int) {
	w.to(number, 0, bundlequeue.Queued, bundlequeue.Building)
	w.m.build(w.now(), number, version, 3, 1)
	w.to(number, version, bundlequeue.Building, bundlequeue.Sending)
	w.m.send(w.now(), number, version, pkg(number, version), 1)
	w.to(number, version, bundlequeue.Sending, bundlequeue.Submitted)
}

func texts(s State) (all []string) {
	for _, e := range s.Events {
		all = append(all, e.Kind+": "+e.Text)
	}
	return all
}

func TestFlowFollowsABundle(t *testing.T) {
	w := newWorld(t)
	w.m.bundle(w.now(), 1, 3, bundlequeue.Queued)
	require.Equal(t, Flow{Queue: 3}, w.state().Flow)
	w.submit(1, 1)
	require.Equal(t, Flow{Cores: 3}, w.state().Flow)
	w.to(1, 1, bundlequeue.Submitted, bundlequeue.Guaranteed)
	require.Equal(t, Flow{Cores: 3}, w.state().Flow)
	w.to(1, 1, bundlequeue.Guaranteed, bundlequeue.Accumulated)
	require.Equal(t, Flow{Accumulated: 3}, w.state().Flow)
	w.to(1, 1, bundlequeue.Accumulated, bundlequeue.Finalized)
	w.to(1, 1, bundlequeue.Accumulated, bundlequeue.Finalized)
	require.Equal(t, uint64(3), w.state().Flow.Finalized, "told twice, counted once")
}

func TestVersionsHaveTimeLines(t *testing.T) {
	w := newWorld(t)
	w.submit(1, 1)
	w.at += 8
	w.m.die(w.now(), 1, 1, anchor.AnchorExpired)
	w.to(1, 0, bundlequeue.Submitted, bundlequeue.Queued)
	rows := w.state().Bundles.Rows
	require.Len(t, rows, 1)
	require.Equal(t, []Version{
		{Version: 1, Core: 1, Sends: 1, Package: "01010000", Dead: "D2: unreported, anchor expired", Marks: []Mark{
			{"queued", 1000}, {"building", 1000}, {"sending", 1000}, {"submitted", 1000}, {"dead", 1008},
		}},
		{Version: 2, Marks: []Mark{{"queued", 1008}}},
	}, rows[0].Versions)

	w.submit(1, 2)
	require.Contains(t, texts(w.state()), "built: block 1 gets package v2")
	require.Contains(t, texts(w.state()), "dead: block 1 v1 is dead, D2: unreported, anchor expired")
	w.to(1, 1, bundlequeue.Submitted, bundlequeue.Guaranteed)
	require.Empty(t, w.state().Bundles.Rows[0].Versions[0].Dead, "on another branch it lives")
	w.to(1, 1, bundlequeue.Guaranteed, bundlequeue.Submitted)
	require.Equal(t, "back: block 1 is no longer guaranteed but submitted", texts(w.state())[0])
}

func TestFailedBundlesGiveTheirNumbersBack(t *testing.T) {
	w := newWorld(t)
	w.l.heads = Heads{Pending: 3}
	for n := uint64(1); n <= 3; n++ {
		w.m.bundle(w.now(), n, 2, bundlequeue.Queued)
	}
	w.state()
	w.m.fail(w.now(), 2, "6 versions dead")
	require.Equal(t, 4, w.state().Flow.Queue)
	w.l.heads = Heads{Pending: 1}
	require.Equal(t, 2, w.state().Flow.Queue, "later blocks went with it")
	require.Equal(t, []uint64{2}, w.m.missing(2), "and come anew")
}

func TestChainShowsForksSkipsAndReorgs(t *testing.T) {
	w := newWorld(t)
	w.jam(1, 0)
	w.jam(2, 1)
	w.at++ // skipped
	w.jam(3, 2)
	w.m.finalize(hash(1))
	require.Equal(t, []Block{
		{ID: "01000000", Parent: "00000000", Slot: 1000, Final: true}, {ID: "02000000", Parent: "01000000", Slot: 1001}, {ID: "03000000", Parent: "02000000", Slot: 1003},
	}, w.state().Chain.Blocks)
	w.jam(4, 1)
	s := w.state()
	lanes := map[string]int{}
	for _, b := range s.Chain.Blocks {
		lanes[b.ID[:2]] = b.Lane
	}
	require.Equal(t, map[string]int{"01": 0, "02": 1, "03": 1, "04": 0}, lanes)
	require.Equal(t, []string{"back: JAM reorganized: 2 blocks replaced"}, texts(s))
	require.Equal(t, jamq.Slot(1004), s.Chain.Best)
	require.Equal(t, jamq.Slot(1000), s.Chain.Final)
}

func TestCoresShowReportsUntilTheyLeave(t *testing.T) {
	w := newWorld(t)
	w.submit(7, 2)
	report := func(core jamq.CoreIndex, p jamq.PackageHash) func(*jamq.Block) {
		return func(b *jamq.Block) {
			b.Reported = append(b.Reported, jamq.Report{Hash: [32]byte(p), Package: p, Core: core})
		}
	}
	w.jam(1, 0, report(0, pkg(7, 2)), report(1, pkg(200, 1)))
	w.jam(2, 1, func(b *jamq.Block) { b.Available = []jamq.CoreIndex{0} })
	w.jam(3, 2, report(0, pkg(7, 2)))
	w.jam(4, 3, func(b *jamq.Block) { b.Condemned = append(b.Condemned, [32]byte(pkg(7, 2))) })
	w.at++
	w.jam(5, 4)
	w.jam(6, 5, report(1, pkg(7, 2)))
	require.Equal(t, []Core{
		{0, []Report{{From: 1000, To: 1001, Number: 7, Version: 2, End: "available"}, {From: 1002, To: 1003, Number: 7, Version: 2, End: "verdict"}}},
		{1, []Report{{From: 1000, To: 1005, End: "timeout"}, {From: 1006, Number: 7, Version: 2}}},
	}, w.state().Chain.Cores)
}

func TestEverythingIsBounded(t *testing.T) {
	w := newWorld(t)
	for n := uint64(1); n < 3000; n++ {
		w.l.heads = Heads{Pending: n, Latest: n}
		w.l.pool = Pool{Max: 100, Base: n}
		w.submit(n, 1)
		for range 50 {
			w.m.mark1(n)
		}
		w.to(n, 1, bundlequeue.Submitted, bundlequeue.Accumulated)
		if n > 100 {
			w.to(n-100, 1, bundlequeue.Accumulated, bundlequeue.Finalized)
		}
		w.m.importBlock(w.now(), jamq.Block{Hash: jamq.HeaderHash{byte(n), byte(n >> 8), 1}, Parent: jamq.HeaderHash{byte(n - 1), byte((n - 1) >> 8), 1}, Slot: w.at}, jamq.HeaderHash{byte(n), byte(n >> 8), 1})
		w.at++
		w.state()
	}
	s := w.state()
	require.Len(t, s.Bundles.Rows, shownBundles)
	require.Equal(t, len(w.m.bundles)-shownBundles, s.Bundles.More)
	require.LessOrEqual(t, len(w.m.bundles), 100+shownFinal)
	require.Len(t, s.Events, keptEvents)
	require.Len(t, s.Fees, keptFees)
	require.LessOrEqual(t, len(w.m.chain.blocks), shownSlots+2)
	require.LessOrEqual(t, len(w.m.packages.order), keptPackages)
	require.LessOrEqual(t, len(w.m.bundles[2999].versions[0].Marks), keptMarks)
}

// Final bundles stay as long as there is room beside those that are on their way, so that the
// picture of a calm node is full.
func TestFinalBundlesStayWhileThereIsRoom(t *testing.T) {
	w := newWorld(t)
	for n := uint64(1); n <= 40; n++ {
		w.l.heads = Heads{Pending: n, Latest: n}
		w.submit(n, 1)
		w.to(n, 1, bundlequeue.Submitted, bundlequeue.Accumulated)
		w.to(n, 1, bundlequeue.Accumulated, bundlequeue.Finalized)
	}
	require.Len(t, w.state().Bundles.Rows, shownBundles)
	for n := uint64(41); n <= 80; n++ {
		w.l.heads = Heads{Pending: n, Latest: n}
		w.submit(n, 1)
	}
	s := w.state()
	require.Equal(t, uint64(40+shownBundles-shownFinal), s.Bundles.Rows[0].Number)
	require.Equal(t, uint64(41-shownFinal), s.Bundles.Rows[shownBundles-1].Number)
}

// mark1 lets a bundle's first version go to and fro.
func (m *model) mark1(number uint64) {
	v := m.bundles[number].version(1)
	v.mark("guaranteed", 1)
	v.mark("submitted", 1)
}

// Fees are sampled when they change, and a sample holds until the next.
func TestFeesAreSampledWhenTheyChange(t *testing.T) {
	w := newWorld(t)
	for i, base := range []uint64{5e9, 5e9, 5e9, 6e9, 6e9} {
		w.l.pool.Base = base
		w.l.pool.Txs = 10 * (i / 4)
		w.state()
		w.at++
	}
	fees := w.state().Fees
	require.Len(t, fees, 3)
	require.Equal(t, []float64{5, 6, 6}, []float64{fees[0].Base, fees[1].Base, fees[2].Base})
	require.Equal(t, 0.1, fees[2].Full)
}
