package chainview_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/internal/repeat"
)

// play is a random history that a view and the reference live through together.
type play struct {
	*testing.T
	r    *rand.Rand
	spec jamq.ChainSpec
	view *chainview.View
	ref  *reference

	best, finalized *refBlock
	imported        []*refBlock
	packages        []*candidate                          // every package that there is
	blocks          int                                   // how many were made
	told            map[jamq.PackageHash]chainview.Status // at the last comparison
	ahead           map[jamq.PackageHash]bool             // named as prerequisite before built

	// lazy means that the view is asked rarely, so that several blocks and reorgs
	// lie between two judgements.
	lazy bool

	tally
}

// candidate is a package and how its context was made.
type candidate struct {
	hash    jamq.PackageHash
	context jamq.RefineContext
	lookups []chainview.ReportedPackage
	root    common.Hash
}

// needs are the packages that must come before it.
func (c *candidate) needs() []jamq.PackageHash {
	needs := slices.Clone(c.context.Prerequisites)
	for _, l := range c.lookups {
		needs = append(needs, l.Package)
	}
	return needs
}

// smallSpec draws constants so small that every limit is met again and again.
func smallSpec(r *rand.Rand) jamq.ChainSpec {
	spec := jamq.Tiny()
	spec.Cores = 1 + r.IntN(4)
	spec.EpochLength = jamq.Slot(2 + r.IntN(7))
	spec.RecentHistory = 3 + r.IntN(4)
	spec.AvailabilityTimeout = jamq.Slot(1 + r.IntN(5))
	spec.MaxLookupAnchorAge = jamq.Slot(3 + r.IntN(10))
	spec.RotationPeriod = jamq.Slot(1 + r.IntN(4))
	spec.MaxDependencies = 1 + r.IntN(3)
	return spec
}

func newPlay(t *testing.T, seed uint64) *play {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	p := &play{T: t, r: r, spec: smallSpec(r), told: map[jamq.PackageHash]chainview.Status{}, ahead: map[jamq.PackageHash]bool{}, lazy: seed%3 == 0}
	root := jamq.Block{Hash: p.nextHash(), Slot: jamq.Slot(1 + r.IntN(20))}
	v, err := chainview.New(&p.spec, root)
	require.NoError(t, err)
	p.view, p.ref = v, newReference(&p.spec, root)
	p.best = p.ref.blocks[root.Hash]
	p.finalized, p.imported = p.best, []*refBlock{p.best}
	return p
}

func (p *play) chance(percent int) bool { return p.r.IntN(100) < percent }

func (p *play) nextHash() (h jamq.HeaderHash) {
	p.blocks++
	binary.BigEndian.PutUint16(h[:], uint16(p.blocks))
	h[31] = 1
	return h
}

// TestAgainstReference lets a view and the reference live through random
// histories with forks, reorgs, finality, skipped slots, verdicts, cores that are cleared, late and
// missing availability, deferred accumulation, prerequisites of other hosts, and
// restarts from snapshots.
// After each step both must agree on the state (C(3), C(10), C(14), C(15)), on
// what may be reported (R1 to R5), and on the fate of each watched package with
// its evidence (D1 to D6).
func TestAgainstReference(t *testing.T) {
	seeds := repeat.Times(60, 120)
	var total tally
	played := 0
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newPlay(t, seed)
			for range 70 {
				p.step()
			}
			p.continueFromState()
			total.add(p.tally)
			played++
		})
	}
	t.Logf("%d histories: %+v", played, total)
	if played == seeds && seeds >= 60 { // fewer with -race prove no rate
		for _, n := range []int{total.refused, total.accepted, total.dead, total.done, total.reorgs, total.changes} {
			require.Greater(t, n, 8*seeds)
		}
		for _, n := range []int{total.foreign, total.needed} {
			require.Greater(t, n, seeds)
		}
	}
}

// tally counts what was compared.
type tally struct {
	refused, accepted int // reports
	dead, done        int // verdicts
	reorgs, changes   int
	foreign           int // prerequisites of others
	needed            int // packages that were forgotten while another one needed them
}

func (a *tally) add(b tally) {
	a.refused, a.accepted = a.refused+b.refused, a.accepted+b.accepted
	a.dead, a.done = a.dead+b.dead, a.done+b.done
	a.reorgs, a.changes = a.reorgs+b.reorgs, a.changes+b.changes
	a.foreign, a.needed = a.foreign+b.foreign, a.needed+b.needed
}

func (p *play) step() {
	p.addPackages()
	p.addBlock()
	if p.chance(15) {
		p.moveBest()
	}
	if p.chance(25) {
		p.finalize()
	}
	if p.chance(10) {
		p.forget()
	}
	if !p.lazy || p.chance(15) {
		p.compare()
		if p.chance(20) {
			p.restart()
		}
	}
	p.compareTree()
}

// addPackages makes new packages, of which most are watched.
func (p *play) addPackages() {
	for range p.r.IntN(3) {
		c := &candidate{hash: jamq.PackageHash{0xaa, byte(len(p.packages) >> 8), byte(len(p.packages))}}
		c.root = common.Hash{0xee, c.hash[1], c.hash[2]}
		at, lookup := p.someBlock(), p.someBlock()
		c.context = jamq.RefineContext{
			Anchor: at.Hash, StateRoot: rootAfter(at.Hash), LookupAnchor: lookup.Hash, LookupAnchorSlot: lookup.Slot,
		}
		if p.chance(5) {
			c.context.StateRoot = common.Hash{1}
		}
		if p.chance(5) {
			c.context.LookupAnchorSlot -= jamq.Slot(p.r.IntN(int(min(3, lookup.Slot))))
		}
		for range p.r.IntN(3) * p.r.IntN(2) {
			if !p.ahead[c.hash] { // a hash depends on the prerequisites, so there are no circles
				p.addNeed(c)
			}
		}
		p.packages = append(p.packages, c)
		if p.chance(80) {
			p.watch(c)
		}
	}
	newest := p.packages[max(0, len(p.packages)-6):]
	if len(newest) > 0 && p.chance(10) { // another package may have named it by now
		p.watch(newest[p.r.IntN(len(newest))])
	}
}

// watch lets the view and the reference follow a package that no block has
// reported.
func (p *play) watch(c *candidate) {
	if p.ref.packages[c.hash] != nil || !p.view.Holds(c.context.Anchor) || p.ref.everReported(c.hash) {
		return
	}
	watched := chainview.Package{Anchor: c.context.Anchor, LookupAnchorSlot: c.context.LookupAnchorSlot, Prerequisites: c.needs()}
	if p.ref.foreign[c.hash] == nil {
		p.ref.watch(c.hash, watched, p.knows)
	} else if !p.onlyIfSame(c.hash, func() { p.ref.watch(c.hash, watched, p.knows) }) {
		return
	}
	watch(p.T, p.view, c.hash, watched)
	p.told[c.hash] = chainview.Status{}
	for _, need := range watched.Prerequisites {
		if p.ref.foreign[need] != nil {
			p.foreign++
		}
	}
}

// addNeed makes a package need one of the newest others.
func (p *play) addNeed(c *candidate) {
	newest := p.packages[max(0, len(p.packages)-4):]
	if len(newest) == 0 {
		return
	}
	need := newest[p.r.IntN(len(newest))]
	if p.chance(10) { // the package that is made next
		n := len(p.packages) + 1
		need = &candidate{hash: jamq.PackageHash{0xaa, byte(n >> 8), byte(n)}, root: common.Hash{0xee, byte(n >> 8), byte(n)}}
		p.ahead[need.hash] = true
	}
	switch {
	case slices.Contains(c.needs(), need.hash):
	case p.chance(70):
		c.context.Prerequisites = append(c.context.Prerequisites, need.hash)
	case p.chance(90):
		c.lookups = append(c.lookups, chainview.ReportedPackage{Package: need.hash, SegmentRoot: need.root})
	default:
		c.lookups = append(c.lookups, chainview.ReportedPackage{Package: need.hash, SegmentRoot: common.Hash{2}})
	}
}

// someBlock returns a block, mostly one of the best chain's newest.
func (p *play) someBlock() *refBlock {
	if p.chance(10) {
		return p.imported[p.r.IntN(len(p.imported))]
	}
	recent := p.best.last(p.spec.RecentHistory + p.r.IntN(2)*p.r.IntN(4))
	return recent[p.r.IntN(len(recent))]
}

// heldFrom returns the oldest block that the view must still hold: of the
// finalized chain it keeps an epoch of blocks and the recent history.
func (p *play) heldFrom() *refBlock {
	b, first := p.finalized, p.ref.first()
	for range max(int(p.spec.EpochLength), p.spec.RecentHistory) {
		if b == first {
			break
		}
		b = b.parent
	}
	return b
}

// knows returns what the view knows of a block. It forgets the reports of final
// blocks that are older than the recent history before the finalized block.
func (p *play) knows(b *refBlock) knowledge {
	held := b.descends(p.finalized) || slices.Contains(p.finalized.downTo(p.heldFrom()), b)
	recent := b.point.Height+uint64(p.spec.RecentHistory) >= p.finalized.point.Height
	return knowledge{reports: held && recent, accumulated: held}
}

// open returns the blocks on which a new one may stand.
func (p *play) open() []*refBlock {
	var out []*refBlock
	for _, b := range p.imported {
		if b.descends(p.finalized) {
			out = append(out, b)
		}
	}
	return out
}

// addBlock makes a block, imports it, and sometimes makes it the best.
func (p *play) addBlock() {
	parent := p.best
	if open := p.open(); p.chance(25) {
		parent = open[p.r.IntN(len(open))]
	}
	b := p.makeBlock(parent)
	if p.chance(80) {
		require.NoError(p, p.view.ImportBest(&b, b.Hash))
		n := p.ref.add(b)
		p.imported = append(p.imported, n)
		p.setBest(n)
		return
	}
	require.NoError(p, p.view.Import(&b))
	p.imported = append(p.imported, p.ref.add(b))
}

// makeBlock makes a block that the rules admit.
func (p *play) makeBlock(parent *refBlock) jamq.Block {
	b := jamq.Block{Hash: p.nextHash(), Parent: parent.Hash, Slot: parent.Slot + 1}
	if p.chance(25) {
		b.Slot += jamq.Slot(p.r.IntN(int(p.spec.EpochLength) + 2))
	}
	if p.chance(90) {
		b.ParentStateRoot = rootAfter(parent.Hash)
	}
	for core, report := range parent.cores {
		switch {
		case report == nil && p.chance(95): // nothing to make available
		case p.chance(40):
			b.Available = append(b.Available, jamq.CoreIndex(core))
		case report != nil && p.chance(5):
			b.Condemned = append(b.Condemned, report.Hash, common.Hash{})
		}
	}
	if p.chance(30) {
		slices.Reverse(b.Available)
	}
	b.CoresCleared = p.chance(5)
	p.report(parent, &b)
	p.hideSome(parent, &b)
	return b
}

// report puts reports into a block that the rules admit, and sees that the view
// admits exactly these.
func (p *play) report(parent *refBlock, b *jamq.Block) {
	var accepted []chainview.Candidate
	for range p.r.IntN(6 * p.spec.Cores) {
		if len(p.packages) == 0 {
			return
		}
		newest := p.packages[max(0, len(p.packages)-8):]
		from := newest[p.r.IntN(len(newest))]
		c := chainview.Candidate{
			Package: from.hash, SegmentRoot: from.root, Core: jamq.CoreIndex(p.r.IntN(p.spec.Cores)),
			Context: from.context, Lookups: from.lookups, GuaranteeSlot: b.Slot,
		}
		if p.chance(10) {
			c.GuaranteeSlot = b.Slot + 3 - min(b.Slot+3, jamq.Slot(p.r.IntN(3+3*int(p.spec.RotationPeriod))))
		}
		tried := append(slices.Clone(accepted), c)
		want := p.ref.broken(parent, p.heldFrom(), b, &c, accepted, tried)
		if parent == p.best && len(b.Condemned) == 0 && !b.CoresCleared {
			have := p.view.Reportable(b.Slot, b.Available, tried)
			right := have == nil && len(want) == 0 || slices.ContainsFunc(want, func(err error) bool { return errors.Is(have, err) })
			require.True(p, right, "have %v, want one of %v", have, want)
		}
		if len(want) > 0 {
			p.refused++
			continue
		}
		p.accepted++
		accepted = tried
		hash := common.Hash{0xcc, byte(p.blocks >> 8), byte(p.blocks), byte(len(accepted))}
		if p.chance(10) {
			hash = common.Hash{}
		}
		b.Reported = append(b.Reported, jamq.Report{
			Hash: hash, Package: c.Package, SegmentRoot: c.SegmentRoot, Core: c.Core, Anchor: c.Context.Anchor, Prerequisites: from.needs(),
		})
	}
}

// hideSome lets a block say what it accumulated: without the last of the ready
// queue, as if its gas was used up, and with packages that the view knows
// nothing of.
func (p *play) hideSome(parent *refBlock, b *jamq.Block) {
	if !p.chance(30) {
		return
	}
	derived := p.ref.derive(parent, *b)
	immediate := 0
	_, available := p.ref.free(parent, b)
	for _, a := range available {
		if len(a.Prerequisites) == 0 {
			immediate++
		}
	}
	b.AccumulatedKnown = true
	b.Accumulated = slices.Clone(derived[:immediate+p.r.IntN(len(derived)-immediate+1)])
	if p.chance(20) {
		for i := range 1 + p.r.IntN(40) {
			b.Accumulated = append(b.Accumulated, jamq.PackageHash{byte(p.r.Uint32()), 0xdd, byte(p.blocks >> 8), byte(p.blocks), byte(i)})
		}
	}
}

// moveBest makes another block the best one.
func (p *play) moveBest() {
	open := p.open()
	n := open[p.r.IntN(len(open))]
	require.NoError(p, p.view.SetBest(n.Hash))
	p.setBest(n)
}

func (p *play) setBest(n *refBlock) {
	if !n.descends(p.best) {
		p.reorgs++
	}
	p.best = n
}

// finalize makes a block final, mostly one of the best chain.
func (p *play) finalize() {
	n := p.best.at(p.best.point.Height - min(p.best.point.Height, uint64(p.r.IntN(5))))
	if p.chance(10) {
		open := p.open()
		n = open[p.r.IntN(len(open))]
	}
	if n == nil || n.point.Height < p.heldFrom().point.Height {
		return
	}
	err := p.view.Finalize(n.Hash)
	if n.point.Height < p.finalized.point.Height {
		require.ErrorIs(p, err, chainview.ErrOld)
		return
	}
	require.NoError(p, err)
	if n == p.finalized {
		return
	}
	p.finalized = n
	if !p.best.descends(n) {
		p.setBest(n)
	}
}

// forget ends the watch of a package.
func (p *play) forget() {
	p.compare() // the view drops only evidence of verdicts that it has reached
	for _, c := range p.packages {
		if kept := p.ref.packages[c.hash]; kept == nil || kept.forgotten || len(kept.Prerequisites) > 0 && p.chance(50) || !p.chance(30) {
			continue
		}
		p.ref.forget(c.hash, p.best, p.finalized)
		p.view.Forget(c.hash)
		delete(p.told, c.hash)
		if p.ref.packages[c.hash] != nil {
			p.needed++
		}
		return
	}
}

// onlyIfSame lets the reference begin to watch a package, and takes it back if
// that changes the fate of another one, because the view keeps the evidence of
// deaths that are final. It reports whether the change stays.
func (p *play) onlyIfSame(pkg jamq.PackageHash, change func()) bool {
	fates := func() (out []chainview.Status) {
		for _, b := range p.open() {
			for _, c := range p.packages {
				if at := p.ref.packages[c.hash]; c.hash != pkg && at != nil && len(at.Prerequisites) > 0 {
					out = append(out, p.ref.status(b, c.hash))
				}
			}
		}
		return out
	}
	saved, before := p.ref.saveWatched(), fates()
	change()
	if slices.Equal(before, fates()) {
		return true
	}
	p.ref.restoreWatched(saved)
	return false
}

// restart replaces the view by one that is restored from its snapshot.
func (p *play) restart() {
	snapshot := p.view.AppendSnapshot(nil)
	v, err := chainview.Restore(&p.spec, snapshot)
	require.NoError(p, err)
	require.Equal(p, snapshot, v.AppendSnapshot(nil))
	p.view = v
}

// compareTree compares the parts of the view that no judgement enters.
func (p *play) compareTree() {
	require.Equal(p, p.best.point, p.view.Best())
	require.Equal(p, p.finalized.point, p.view.Finalized())
	oldest := p.heldFrom()
	for _, b := range p.imported {
		final := p.finalized.descends(b)
		held := b.descends(p.finalized) || final && b.point.Height >= oldest.point.Height
		require.Equal(p, held, p.view.Holds(b.Hash), "height %d, finalized %d", b.point.Height, p.finalized.point.Height)
		require.Equal(p, held && p.best.descends(b), p.view.OnBest(b.point))
	}
	for h := range p.best.point.Height + 2 {
		at, held := p.view.AtHeight(h)
		require.Equal(p, oldest.point.Height <= h && h <= p.best.point.Height, held)
		if held {
			require.Equal(p, p.best.at(h).point, at)
		}
	}
	require.Equal(p, normal(p.ref.state(p.best, oldest)), normal(p.view.State()))
	for i, c := range p.best.cores {
		free, _ := p.ref.free(p.best, &jamq.Block{Slot: p.best.Slot + 1})
		require.Equal(p, free[i] == nil, p.view.CoreFree(jamq.CoreIndex(i)), "%v", c)
	}
}

// compare compares the fates of all watched packages, and that Changes reports
// those that differ from the last time.
func (p *play) compare() {
	changed := map[jamq.PackageHash]bool{}
	p.view.Changes(func(t *chainview.Trace) {
		require.False(p, changed[t.Package()], "reported once")
		changed[t.Package()] = true
		require.NotEqual(p, p.told[t.Package()], t.Status(), "nothing has changed")
	})
	p.changes += len(changed)
	for pkg, own := range p.ref.packages {
		if own.forgotten {
			continue
		}
		have, err := p.view.Status(pkg)
		require.NoError(p, err)
		p.compareStatus(p.best, pkg, have)
		if (p.told[pkg] != have) != changed[pkg] {
			p.Fatalf("package %s: %v after %v, reported as changed: %v", pkg.Short(), have, p.told[pkg], changed[pkg])
		}
		p.told[pkg] = have
		final, err := p.view.FinalStatus(pkg)
		require.NoError(p, err)
		p.compareStatus(p.finalized, pkg, final)

		t, watched := p.view.Trace(pkg)
		require.True(p, watched)
		if have.Reported.IsZero() == t.IsReported() || have.Accumulated.IsZero() == t.IsAccumulated() || have.Dead != t.Dead() {
			p.Fatalf("package %s: %v: its trace differs: %v", pkg.Short(), have, t.Status())
		}
	}
}

// compareStatus compares the fate of one package. If the evidence of a death was
// pruned before the view was first asked, the view gives the oldest block held.
func (p *play) compareStatus(head *refBlock, pkg jamq.PackageHash, have chainview.Status) {
	want := p.ref.status(head, pkg)
	if want.Dead != anchor.Alive {
		p.dead++
		oldest := p.heldFrom().point.Height
		if told := p.told[pkg]; told.Dead != anchor.Alive && p.finalized.descends(p.ref.blocks[told.DeadSince.Hash]) && want.DeadSince.Height < oldest {
			want.Dead, want.DeadSince = told.Dead, told.DeadSince
		} else if have.Dead != anchor.Alive && want.DeadSince.Height < oldest {
			require.LessOrEqual(p, want.DeadSince.Height, have.DeadSince.Height)
			require.LessOrEqual(p, have.DeadSince.Height, oldest)
			want.Dead, want.DeadSince = have.Dead, have.DeadSince
		}
	}
	if !want.Accumulated.IsZero() {
		p.done++
	}
	if want != have {
		at := p.ref.packages[pkg]
		p.Fatalf("package %s anchored at %v, lookup anchor at slot %d, needs %v: best %v, final %v:\nhave %+v\nwant %+v",
			pkg.Short(), at.anchor.point, at.LookupAnchorSlot, at.needs, p.best.point, p.finalized.point, have, want)
	}
}

// continueFromState begins a second view with the state of the first one, and
// sees that both go on alike.
func (p *play) continueFromState() {
	state := p.view.State()
	v, err := chainview.NewAt(&p.spec, jamq.Block{Hash: p.best.Hash, Slot: p.best.Slot}, state)
	require.NoError(p, err)
	require.Equal(p, normal(state), normal(v.State()))
	for range 2 * int(p.spec.EpochLength) {
		b := jamq.Block{Hash: p.nextHash(), Parent: p.best.Hash, Slot: p.best.Slot + 1, ParentStateRoot: rootAfter(p.best.Hash)}
		for core, report := range p.best.cores {
			if report != nil && p.chance(50) {
				b.Available = append(b.Available, jamq.CoreIndex(core))
			}
		}
		require.NoError(p, v.ImportBest(&b, b.Hash))
		p.best = p.ref.add(b)
		want := p.ref.state(p.best, p.ref.first())
		have := v.State()
		have.Accumulated = have.Accumulated[len(have.Accumulated)-min(len(have.Accumulated), len(want.Accumulated)):]
		require.Equal(p, normal(want).Ready, normal(have).Ready)
		require.Equal(p, want.Cores, have.Cores)
		require.Equal(p, normal(want).Accumulated, normal(have).Accumulated)
		require.Equal(p, want.Recent, have.Recent)
	}
}
