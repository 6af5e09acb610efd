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
// formulas of the Gray Paper, keeps every block for ever, shares nothing between
// blocks and searches lists. It shares no code with the view, and takes the
// values of package anchor only as types.
type reference struct {
	spec     jamq.ChainSpec
	blocks   map[jamq.HeaderHash]*refBlock
	packages map[jamq.PackageHash]*refPackage // the watched ones
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
	// rootShown says that a child has shown the state root after this block.
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

// refFate is what a chain has done with a package.
type refFate struct{ reported, available, accumulated *refBlock }

// refPackage is a watched package.
type refPackage struct {
	chainview.Package
	anchor *refBlock
	needs  []jamq.PackageHash // the prerequisites that were watched before it
	// forgotten are those of them that count as settled by now.
	forgotten []jamq.PackageHash
}

func newReference(spec *jamq.ChainSpec, root jamq.Block) *reference {
	r := &reference{spec: *spec, blocks: map[jamq.HeaderHash]*refBlock{}, packages: map[jamq.PackageHash]*refPackage{}, judged: map[judgement]anchor.Reason{}}
	r.blocks[root.Hash] = &refBlock{
		Block: root, point: anchor.Point{Hash: root.Hash, Slot: root.Slot},
		cores: make([]*refReport, spec.Cores), ready: make([][]refReady, spec.EpochLength), fates: map[jamq.PackageHash]refFate{},
	}
	return r
}

// watch follows a package, after its prerequisites.
func (r *reference) watch(pkg jamq.PackageHash, p chainview.Package) {
	watched := &refPackage{Package: p, anchor: r.blocks[p.Anchor]}
	for _, need := range p.Prerequisites {
		if r.packages[need] != nil {
			watched.needs = append(watched.needs, need)
		}
	}
	r.packages[pkg] = watched
	clear(r.judged)
}

// forget ends watch. The package counts as settled for those that need it.
func (r *reference) forget(pkg jamq.PackageHash) {
	delete(r.packages, pkg)
	for _, p := range r.packages {
		if i := slices.Index(p.needs, pkg); i >= 0 {
			p.needs, p.forgotten = slices.Delete(p.needs, i, i+1), append(p.forgotten, pkg)
		}
	}
	clear(r.judged)
}

// unforget takes forget back.
func (r *reference) unforget(pkg jamq.PackageHash, kept *refPackage) {
	r.packages[pkg] = kept
	for _, p := range r.packages {
		if i := slices.Index(p.forgotten, pkg); i >= 0 {
			p.needs, p.forgotten = append(p.needs, pkg), slices.Delete(p.forgotten, i, i+1)
		}
	}
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

// reportedRecently is what the recent history after b holds (GP 7.2).
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

// free returns the cores after disputes (GP 10.15), assurances (GP 11.16) and
// the availability time-out (GP 11.17), and what became available, by core.
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
		case int(b.Slot)-int(c.since) >= int(r.spec.AvailabilityTimeout):
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
		return b.at(0)
	}
	return nil
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

// dead says whether a package can never be accumulated on a chain, by asking
// what the next block could do at best: it comes one slot later.
func (r *reference) dead(b *refBlock, pkg jamq.PackageHash) anchor.Reason {
	reason, known := r.judged[judgement{b, pkg}]
	if !known {
		reason = r.judge(b, pkg)
		r.judged[judgement{b, pkg}] = reason
	}
	return reason
}

func (r *reference) judge(b *refBlock, pkg jamq.PackageHash) anchor.Reason {
	p, fate := r.packages[pkg], b.fates[pkg]
	onChain := b.descends(p.anchor)
	onCore := slices.ContainsFunc(b.cores, func(c *refReport) bool { return c != nil && c.Package == pkg })
	inQueue := slices.ContainsFunc(b.wait(), func(e chainview.ReadyReport) bool { return e.Package == pkg })
	doomed := slices.ContainsFunc(p.needs, func(need jamq.PackageHash) bool { return r.dead(b, need) != anchor.Alive })
	late := slices.ContainsFunc(p.needs, func(need jamq.PackageHash) bool {
		at := b.fates[need].reported
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
	case !onCore && fate.available == nil:
		return anchor.Unavailable
	case fate.available != nil && !inQueue || doomed:
		return anchor.NeverReady
	}
	return anchor.Alive
}

// status is the verdict on a watched package for the chain that ends in head.
func (r *reference) status(head *refBlock, pkg jamq.PackageHash) chainview.Status {
	point := func(b *refBlock) anchor.Point {
		if b == nil {
			return anchor.Point{}
		}
		return b.point
	}
	fate := head.fates[pkg]
	s := chainview.Status{Reported: point(fate.reported), Available: point(fate.available), Accumulated: point(fate.accumulated)}
	if r.dead(head, pkg) == anchor.Alive {
		return s
	}
	for b := head; b != nil; b = b.parent {
		if reason := r.dead(b, pkg); reason != anchor.Alive {
			s.Dead, s.DeadSince = reason, b.point // the oldest one stays
		}
	}
	return s
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

// state is what [chainview.View.State] must return at head. oldest is the oldest
// block that the view holds.
func (r *reference) state(head, oldest *refBlock) chainview.State {
	s := chainview.State{Cores: make([]chainview.CoreReport, len(head.cores)), Ready: head.wait()}
	for i, c := range head.cores {
		if c != nil {
			s.Cores[i] = chainview.CoreReport{Hash: c.Hash, Package: c.Package, SegmentRoot: c.SegmentRoot, Needs: c.Prerequisites, Since: c.since}
		}
	}
	held := func(n int) []*refBlock {
		out := slices.DeleteFunc(head.last(n), func(b *refBlock) bool { return b.point.Height < oldest.point.Height })
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
