package chainview_test

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// reference is a second implementation of the rules, for tests. It follows the
// formulas of the Gray Paper, keeps every block forever, shares no memory
// between blocks and searches lists. It shares no code with the view, and uses
// the values of package anchor only as types.
type reference struct {
	spec     jamq.ChainSpec
	blocks   map[jamq.HeaderHash]*refBlock
	packages map[jamq.PackageHash]*refPackage // those that are or were watched
	foreign  map[jamq.PackageHash]*refForeign // the prerequisites that are not watched
	// judged remembers what dead returned since the watched packages changed.
	judged map[judgement]anchor.Reason
}

// judgement names a chain by its last block, and a package.
type judgement struct {
	head *refBlock
	pkg  jamq.PackageHash
}

// refBlock is a block with the state after it.
type refBlock struct {
	jamq.Block
	point  anchor.Point
	parent *refBlock
	// rootShown is true if a child has shown the state root after this block.
	rootShown bool

	cores []*refReport
	ready [][]refReady // the ready queue has a list for each slot of an epoch (GP 12.3)
	done  []jamq.PackageHash
	fates map[jamq.PackageHash]refFate
}

// refReport is a report on a core.
type refReport struct {
	jamq.Report
	since jamq.Slot
}

// refReady is a report in the ready queue.
type refReady struct {
	pkg   jamq.PackageHash
	unmet []jamq.PackageHash
	since jamq.Slot
}

// refFate is the state of a package on a chain.
type refFate struct{ reported, available, accumulated *refBlock }

// refPackage is a watched package.
type refPackage struct {
	chainview.Package
	anchor *refBlock
	needs  []jamq.PackageHash
	// forgotten is true if the package is only followed because another one needs it.
	forgotten bool
	// settled is the final outcome of a forgotten package, which stands without
	// its needs, or nil. root was the finalized block then.
	settled *chainview.Status
	root    *refBlock
}

func newReference(spec *jamq.ChainSpec, root jamq.Block) *reference {
	r := &reference{spec: *spec, blocks: map[jamq.HeaderHash]*refBlock{}, packages: map[jamq.PackageHash]*refPackage{}, foreign: map[jamq.PackageHash]*refForeign{}, judged: map[judgement]anchor.Reason{}}
	r.blocks[root.Hash] = &refBlock{
		Block: root, point: anchor.Point{Hash: root.Hash, Slot: root.Slot},
		cores: make([]*refReport, spec.Cores), ready: make([][]refReady, spec.EpochLength), fates: map[jamq.PackageHash]refFate{},
	}
	return r
}

// watch follows a package, and its prerequisites that are not watched. knows is
// the view's knowledge of blocks that were imported before.
func (r *reference) watch(pkg jamq.PackageHash, p chainview.Package, knows func(*refBlock) knowledge) {
	for _, need := range p.Prerequisites {
		if r.packages[need] == nil && r.foreign[need] == nil {
			r.foreign[need] = r.follow(need, knows)
		}
	}
	delete(r.foreign, pkg)
	r.packages[pkg] = &refPackage{Package: p, anchor: r.blocks[p.Anchor], needs: slices.Clone(p.Prerequisites)}
	clear(r.judged)
}

// forget ends watch. The package is followed as long as another one needs it.
// best and finalized are the heads of the view.
func (r *reference) forget(pkg jamq.PackageHash, best, finalized *refBlock) {
	r.packages[pkg].forgotten = true
	r.tidy(pkg, best, finalized)
	clear(r.judged)
}

// tidy drops a package that nothing needs, and the needs of one whose fate is
// final.
func (r *reference) tidy(pkg jamq.PackageHash, best, finalized *refBlock) {
	needed := false
	for _, other := range r.packages {
		needed = needed || slices.Contains(other.needs, pkg)
	}
	p := r.packages[pkg]
	switch {
	case p == nil && !needed:
		delete(r.foreign, pkg)
		return
	case p == nil || !p.forgotten:
		return
	}
	needs, s := p.needs, r.status(best, pkg)
	final := func(at anchor.Point) bool { return !at.IsZero() && at.Height <= finalized.point.Height }
	switch {
	case !needed:
		delete(r.packages, pkg)
	case p.settled == nil && (final(s.Accumulated) || final(s.DeadSince)):
		p.needs, p.settled, p.root = nil, &s, finalized
	}
	for _, need := range needs {
		r.tidy(need, best, finalized)
	}
}

// watched is a copy of the state that forget changes.
type watched struct {
	packages map[jamq.PackageHash]*refPackage
	foreign  map[jamq.PackageHash]*refForeign
}

func (r *reference) saveWatched() watched {
	saved := watched{map[jamq.PackageHash]*refPackage{}, maps.Clone(r.foreign)}
	for pkg, p := range r.packages {
		c := *p
		c.needs = slices.Clone(p.needs)
		saved.packages[pkg] = &c
	}
	return saved
}

func (r *reference) restoreWatched(saved watched) {
	r.packages, r.foreign = saved.packages, saved.foreign
	clear(r.judged)
}

// last returns b and the blocks before it, newest first, n at most.
func (b *refBlock) last(n int) []*refBlock {
	var out []*refBlock
	for ; b != nil && len(out) < n; b = b.parent {
		out = append(out, b)
	}
	return out
}

// downTo returns b and the blocks before it, newest first, until an ancestor.
func (b *refBlock) downTo(ancestor *refBlock) []*refBlock {
	out := []*refBlock{b}
	for ; b != ancestor; b = b.parent {
		out = append(out, b.parent)
	}
	return out
}

// at returns the ancestor at a height, or b itself.
func (b *refBlock) at(height uint64) *refBlock {
	for b != nil && b.point.Height > height {
		b = b.parent
	}
	return b
}

// descends reports whether b is x or below it.
func (b *refBlock) descends(x *refBlock) bool {
	return b.point.Height >= x.point.Height && b.at(x.point.Height) == x
}

// accumulatedRecently is the union of the last E blocks' accumulated packages (GP 12.1, 12.2).
func (r *reference) accumulatedRecently(b *refBlock) []jamq.PackageHash {
	var out []jamq.PackageHash
	for _, x := range b.last(int(r.spec.EpochLength)) {
		out = append(out, x.done...)
	}
	return out
}

// reportedRecently holds the packages in the recent history after b (GP 7.2).
func (r *reference) reportedRecently(b *refBlock) []jamq.Report {
	var out []jamq.Report
	for _, x := range b.last(r.spec.RecentHistory) {
		out = append(out, x.Reported...)
	}
	return out
}

// add imports a block that the view has taken.
func (r *reference) add(b jamq.Block) *refBlock {
	parent := r.blocks[b.Parent]
	n := &refBlock{
		Block: b, point: anchor.Point{Hash: b.Hash, Height: parent.point.Height + 1, Slot: b.Slot},
		parent: parent, fates: maps.Clone(parent.fates),
	}
	parent.rootShown = parent.rootShown || b.ParentStateRoot != common.Hash{}
	available := r.cores(n)
	r.accumulate(n, available)
	r.blocks[b.Hash] = n
	return n
}

// free returns the cores after disputes (GP 10.15), assurances (GP 11.16), the
// availability time-out (GP 11.17) and another number of validators (GP 0.8.0,
// 11.18), and the reports that became available,
// by core.
func (r *reference) free(parent *refBlock, b *jamq.Block) (cores []*refReport, available []*refReport) {
	cores = slices.Clone(parent.cores)
	for i, c := range cores {
		switch {
		case c == nil:
		case c.Hash != common.Hash{} && slices.Contains(b.Condemned, c.Hash):
			cores[i] = nil
		case slices.Contains(b.Available, jamq.CoreIndex(i)):
			available = append(available, c)
			cores[i] = nil
		case b.CoresCleared, int(b.Slot)-int(c.since) >= int(r.spec.AvailabilityTimeout):
			cores[i] = nil
		}
	}
	return cores, available
}

func (r *reference) cores(n *refBlock) []*refReport {
	cores, available := r.free(n.parent, &n.Block)
	for _, a := range available {
		fate := n.fates[a.Package]
		fate.available = n
		n.fates[a.Package] = fate
	}
	for _, report := range n.Reported {
		cores[report.Core] = &refReport{report, n.Slot}
		fate := n.fates[report.Package]
		fate.reported = n
		n.fates[report.Package] = fate
	}
	n.cores = cores
	return available
}

// without is the queue-editing function E (GP 12.7).
func without(queue []refReady, done []jamq.PackageHash) []refReady {
	var out []refReady
	for _, e := range queue {
		if slices.Contains(done, e.pkg) {
			continue
		}
		var unmet []jamq.PackageHash
		for _, need := range e.unmet {
			if !slices.Contains(done, need) {
				unmet = append(unmet, need)
			}
		}
		out = append(out, refReady{e.pkg, unmet, e.since})
	}
	return out
}

// priority is the function Q (GP 12.8), by recursion as it is written there.
func priority(queue []refReady) []jamq.PackageHash {
	var now []jamq.PackageHash
	for _, e := range queue {
		if len(e.unmet) == 0 {
			now = append(now, e.pkg)
		}
	}
	if len(now) == 0 {
		return nil
	}
	return append(now, priority(without(queue, now))...)
}

// accumulate applies GP 12.4 to 12.12 and 12.41 to a block.
func (r *reference) accumulate(n *refBlock, available []*refReport) {
	e := int(r.spec.EpochLength)
	slot, before := int(n.Slot), int(n.parent.Slot)
	var immediate []jamq.PackageHash
	var queued []refReady
	known := r.accumulatedRecently(n.parent)
	for _, a := range available {
		if len(a.Prerequisites) == 0 {
			immediate = append(immediate, a.Package)
		} else {
			queued = append(queued, without([]refReady{{a.Package, a.Prerequisites, n.Slot}}, known)...)
		}
	}
	var waiting []refReady
	for i := range e {
		waiting = append(waiting, n.parent.ready[(slot+i)%e]...)
	}
	n.done = slices.Concat(immediate, priority(without(slices.Concat(waiting, queued), immediate)))
	if n.AccumulatedKnown {
		n.done = n.Accumulated
	}
	n.ready = make([][]refReady, e)
	for i := range e {
		place := ((slot-i)%e + e) % e
		switch {
		case i == 0:
			n.ready[place] = without(queued, n.done)
		case i >= slot-before:
			n.ready[place] = without(n.parent.ready[place], n.done)
		}
	}
	for _, pkg := range n.done {
		fate := n.fates[pkg]
		fate.accumulated = n
		n.fates[pkg] = fate
	}
}

// derive returns what a block accumulates by the rules.
func (r *reference) derive(parent *refBlock, b jamq.Block) []jamq.PackageHash {
	b.AccumulatedKnown = false
	n := &refBlock{Block: b, parent: parent, fates: maps.Clone(parent.fates)}
	r.accumulate(n, r.cores(n))
	return n.done
}

// first returns the oldest block.
func (r *reference) first() *refBlock {
	for _, b := range r.blocks {
		if b.parent == nil {
			return b
		}
	}
	return nil
}

// everReported reports whether a block of any chain has reported a package.
func (r *reference) everReported(pkg jamq.PackageHash) bool {
	for _, b := range r.blocks {
		if slices.ContainsFunc(b.Reported, func(x jamq.Report) bool { return x.Package == pkg }) {
			return true
		}
	}
	return false
}

// wait returns the ready queue in the order of packages.
func (b *refBlock) wait() []chainview.ReadyReport {
	var out []chainview.ReadyReport
	for _, e := range slices.Concat(b.ready...) {
		out = append(out, chainview.ReadyReport{Package: e.pkg, Unmet: e.unmet, Since: e.since})
	}
	slices.SortFunc(out, func(a, b chainview.ReadyReport) int { return a.Package.Compare(b.Package) })
	return out
}

// dead reports whether a package can never be accumulated on a chain. It tries
// the best possible next block, which comes one slot later.
func (r *reference) dead(b *refBlock, pkg jamq.PackageHash) anchor.Reason {
	reason, known := r.judged[judgement{b, pkg}]
	if !known {
		reason = r.judge(b, pkg)
		r.judged[judgement{b, pkg}] = reason
	}
	return reason
}

func (r *reference) judge(b *refBlock, pkg jamq.PackageHash) anchor.Reason {
	if f := r.foreign[pkg]; f != nil {
		return r.judgeForeign(b, pkg, f)
	}
	p, fate := r.packages[pkg], b.fates[pkg]
	if p.settled != nil {
		if since := r.blocks[p.settled.DeadSince.Hash]; p.forgotten && since != nil && !b.descends(since) {
			return anchor.Alive
		}
		return p.settled.Dead
	}
	onChain := b.descends(p.anchor)
	doomed := slices.ContainsFunc(p.needs, func(need jamq.PackageHash) bool { return r.dead(b, need) != anchor.Alive })
	late := slices.ContainsFunc(p.needs, func(need jamq.PackageHash) bool {
		at := r.reportOf(b, need)
		return at != nil && !slices.Contains(b.last(r.spec.RecentHistory), at)
	})
	switch {
	case fate.accumulated != nil:
		return anchor.Alive
	case !onChain && b.point.Height >= p.anchor.point.Height:
		return anchor.OtherFork
	case fate.reported == nil && onChain && !slices.Contains(b.last(r.spec.RecentHistory), p.anchor):
		return anchor.AnchorExpired
	case fate.reported == nil && int(b.Slot)+1-int(p.LookupAnchorSlot) > int(r.spec.MaxLookupAnchorAge):
		return anchor.LookupExpired
	case fate.reported == nil && (doomed || late):
		return anchor.PrerequisiteGone
	case fate.reported == nil:
		return anchor.Alive
	case !b.onCore(pkg) && fate.available == nil:
		return anchor.Unavailable
	case fate.available != nil && !b.inQueue(pkg) || doomed:
		return anchor.NeverReady
	}
	return anchor.Alive
}

// onCore reports whether a core holds the report of a package after b.
func (b *refBlock) onCore(pkg jamq.PackageHash) bool {
	return slices.ContainsFunc(b.cores, func(c *refReport) bool { return c != nil && c.Package == pkg })
}

// inQueue reports whether the ready queue after b contains a package.
func (b *refBlock) inQueue(pkg jamq.PackageHash) bool {
	return slices.ContainsFunc(b.wait(), func(e chainview.ReadyReport) bool { return e.Package == pkg })
}

// status is the verdict on a watched package for the chain that ends in head.
func (r *reference) status(head *refBlock, pkg jamq.PackageHash) chainview.Status {
	fate := head.fates[pkg]
	if p := r.packages[pkg]; p != nil && p.settled != nil {
		s := *p.settled
		// A package that is doomed by another one can still be reported.
		if fate.reported.after(p.root) {
			s.Reported = fate.reported.point
		}
		if fate.available.after(p.root) {
			s.Available = fate.available.point
		}
		return s
	}
	s := chainview.Status{Reported: fate.reported.place(), Available: fate.available.place(), Accumulated: fate.accumulated.place()}
	s.Dead, s.DeadSince = r.death(head, pkg)
	return s
}

// after reports whether b is a block below x.
func (b *refBlock) after(x *refBlock) bool { return b != nil && b != x && b.descends(x) }

// place returns the point of a block, or zero for nil.
func (b *refBlock) place() anchor.Point {
	if b == nil {
		return anchor.Point{}
	}
	return b.point
}

// death returns why a package is dead on the chain that ends in head, and the
// oldest block at which it is.
func (r *reference) death(head *refBlock, pkg jamq.PackageHash) (reason anchor.Reason, since anchor.Point) {
	if r.dead(head, pkg) == anchor.Alive {
		return anchor.Alive, anchor.Point{}
	}
	for b := head; b != nil; b = b.parent {
		if at := r.dead(b, pkg); at != anchor.Alive {
			reason, since = at, b.point // the oldest one stays
		}
	}
	return reason, since
}

// broken returns the rules R1 to R5 that a report would break in a block on top
// of head. oldest is the oldest block whose slot the view knows.
func (r *reference) broken(head, oldest *refBlock, b *jamq.Block, c *chainview.Candidate, before, together []chainview.Candidate) []error {
	var out []error
	rule := func(holds bool, err error) {
		if !holds {
			out = append(out, err)
		}
	}
	cores, _ := r.free(head, b)
	free := cores[c.Core] == nil
	isNew := true
	for i := range before {
		free = free && before[i].Core != c.Core
		isNew = isNew && before[i].Package != c.Package
	}
	rotation := int(r.spec.RotationPeriod)
	rule(c.GuaranteeSlot <= b.Slot, chainview.ErrFutureGuarantee)
	rule(rotation*(int(b.Slot)/rotation-1) <= int(c.GuaranteeSlot), chainview.ErrOldGuarantee)
	rule(free, chainview.ErrCoreEngaged)

	at := r.blocks[c.Context.Anchor]
	rule(at != nil && slices.Contains(head.last(r.spec.RecentHistory), at), chainview.ErrAnchorNotRecent)
	rule(at == nil || !at.rootShown || c.Context.StateRoot == rootAfter(at.Hash), chainview.ErrAnchorStateRoot)

	lookup := r.blocks[c.Context.LookupAnchor]
	onChain := lookup != nil && head.descends(lookup) && lookup.Slot == c.Context.LookupAnchorSlot
	fresh := int(b.Slot)-int(c.Context.LookupAnchorSlot) <= int(r.spec.MaxLookupAnchorAge)
	rule(fresh && (onChain || c.Context.LookupAnchorSlot < oldest.Slot), chainview.ErrLookupAnchor)

	has := func(pkg jamq.PackageHash) bool { return pkg == c.Package }
	isNew = isNew && !slices.ContainsFunc(r.reportedRecently(head), func(x jamq.Report) bool { return has(x.Package) }) &&
		!slices.ContainsFunc(head.cores, func(x *refReport) bool { return x != nil && has(x.Package) }) &&
		!slices.ContainsFunc(head.wait(), func(x chainview.ReadyReport) bool { return has(x.Package) }) &&
		!slices.ContainsFunc(r.accumulatedRecently(head), has)
	rule(isNew, chainview.ErrReportedBefore)

	roots := map[jamq.PackageHash]common.Hash{}
	for _, x := range r.reportedRecently(head) {
		roots[x.Package] = x.SegmentRoot
	}
	for i := range together {
		roots[together[i].Package] = together[i].SegmentRoot
	}
	rule(len(c.Context.Prerequisites)+len(c.Lookups) <= r.spec.MaxDependencies, chainview.ErrTooManyDependencies)
	for _, need := range c.Context.Prerequisites {
		_, found := roots[need]
		rule(found, chainview.ErrPrerequisite)
	}
	for _, l := range c.Lookups {
		root, found := roots[l.Package]
		rule(found && root == l.SegmentRoot, chainview.ErrSegmentRoot)
	}
	return out
}

// state is what [chainview.View.State] must return at head. oldest is
// the oldest block that the view holds.
func (r *reference) state(head, oldest *refBlock) chainview.State {
	s := chainview.State{Cores: make([]chainview.CoreReport, len(head.cores)), Ready: head.wait()}
	for i, c := range head.cores {
		if c != nil {
			s.Cores[i] = chainview.CoreReport{Hash: c.Hash, Package: c.Package, SegmentRoot: c.SegmentRoot, Needs: c.Prerequisites, Since: c.since}
		}
	}
	held := func(n int) []*refBlock {
		out := head.downTo(oldest)
		out = out[:min(n, len(out))]
		slices.Reverse(out)
		return out
	}
	for _, b := range held(r.spec.RecentHistory) {
		recent := chainview.RecentBlock{Hash: b.Hash, Slot: b.Slot}
		if b.rootShown && b != head {
			recent.StateRoot = rootAfter(b.Hash)
		}
		for _, x := range b.Reported {
			recent.Reported = append(recent.Reported, chainview.ReportedPackage{Package: x.Package, SegmentRoot: x.SegmentRoot})
		}
		s.Recent = append(s.Recent, recent)
	}
	for _, b := range held(int(r.spec.EpochLength)) {
		s.Accumulated = append(s.Accumulated, b.done)
	}
	return s
}

// normal returns a state without the differences that mean nothing: the order of
// the ready queue, and empty lists that may be nil.
func normal(s chainview.State) chainview.State {
	slices.SortFunc(s.Ready, func(a, b chainview.ReadyReport) int { return cmp.Or(a.Package.Compare(b.Package)) })
	list := func(l []jamq.PackageHash) []jamq.PackageHash { return append([]jamq.PackageHash{}, l...) }
	s.Ready = append([]chainview.ReadyReport{}, s.Ready...)
	for i := range s.Ready {
		s.Ready[i].Unmet = list(s.Ready[i].Unmet)
	}
	for i := range s.Cores {
		s.Cores[i].Needs = list(s.Cores[i].Needs)
	}
	for i := range s.Accumulated {
		s.Accumulated[i] = list(s.Accumulated[i])
	}
	return s
}

// rootAfter is the state root after a block.
func rootAfter(h jamq.HeaderHash) common.Hash {
	return common.Hash{0: 0x5a, 1: h[0], 2: h[1], 3: h[2]}
}
