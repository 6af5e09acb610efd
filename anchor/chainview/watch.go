package chainview

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/internal/minheap"
)

// ErrNotWatched is wrapped by errors about a package that the host does not watch.
var ErrNotWatched = errors.New("chainview: package not watched")

// Package contains the properties of a work package on which its deadlines depend:
// until when it can be reported, and which packages must be accumulated first.
type Package struct {
	// Anchor is the hash of the anchor block, which must be in the tree.
	Anchor jamq.HeaderHash
	// LookupAnchorSlot is the slot of the lookup anchor.
	LookupAnchorSlot jamq.Slot
	// Prerequisites are the packages that must be accumulated before this one. The view also
	// follows those that the host does not watch: see [View.Watch].
	Prerequisites []jamq.PackageHash
}

// Status is the outcome of a package on one chain.
type Status struct {
	// Reported, Available and Accumulated are the blocks that reported the package, made
	// it available and accumulated it. A zero point means that none has done so.
	Reported, Available, Accumulated anchor.Point
	// Dead is the rule by which the package can never be accumulated on this chain. It is
	// anchor.Alive if accumulation is still possible.
	Dead anchor.Reason
	// DeadSince is the oldest block in the tree at which the package is dead. Its replacement,
	// a package for the same rollup block, may be anchored at this block or later.
	DeadSince anchor.Point
}

// verdict is the outcome of a package in the same terms as Status, but with pointers to
// the blocks of the tree. Through the pointers the view notices that a block was pruned,
// or that a reorganization has abandoned it.
type verdict struct {
	reported, available, accumulated, deadSince *node
	dead                                        anchor.Reason
}

// upTo returns the outcome that the package had when the best chain was only as high as
// the given height. It ignores events in blocks that a reorganization has abandoned.
func (s verdict) upTo(height uint64) verdict {
	for _, n := range []**node{&s.reported, &s.available, &s.accumulated, &s.deadSince} {
		if *n != nil && ((*n).Height > height || (*n).lost) {
			*n = nil
		}
	}
	if s.deadSince == nil {
		s.dead = anchor.Alive
	}
	return s
}

func (s verdict) status() Status {
	return Status{Reported: s.reported.point(), Available: s.available.point(), Accumulated: s.accumulated.point(), Dead: s.dead, DeadSince: s.deadSince.point()}
}

// point returns the position of the block, or zero if n is nil.
func (n *node) point() anchor.Point {
	if n == nil {
		return anchor.Point{}
	}
	return n.Point
}

// kind is the kind of event that a sighting records.
type kind uint8

const (
	reported kind = iota
	becameAvailable
	removed // by a verdict, the time-out or another number of validators
	accumulated
)

// sighting is an event about a package, with the block in which it happened.
type sighting struct {
	kind kind
	at   *node
}

// Trace contains all data about a package that the view follows, including the
// package's events in all blocks of the tree.
type Trace struct {
	pkg jamq.PackageHash
	// number counts the followed packages. The view computes outcomes in ascending order,
	// because the outcome of a package depends on its prerequisites, and these have lower
	// numbers.
	number uint64
	anchor *node // nil for a prerequisite that was never watched
	// forgotten is true after the host has called Forget. The trace then exists only because a
	// watched package has this one as a prerequisite.
	forgotten bool
	// partial is true if a block contained the package before the view began to follow it. The
	// view may have missed other events about such a package, so it never declares the package
	// dead.
	partial          bool
	lookupAnchorSlot jamq.Slot
	prerequisites    []jamq.PackageHash
	needs            []*Trace // traces of the prerequisites
	dependents       []*Trace
	sightings        []sighting

	verdict verdict // on the best chain
	changed bool    // true if verdict has changed since the last call of Changes

	turn           minheap.Entry[uint64, *Trace] // entry in agenda.turns
	height, inSlot minheap.Entry[uint64, *Trace] // entries in agenda.heights and agenda.slots
}

// byNumber compares two traces by number, for sorting.
func byNumber(a, b *Trace) int { return cmp.Compare(a.number, b.number) }

// watched reports whether the host watches the package. The view follows every other
// package only because a watched package depends on it.
func (t *Trace) watched() bool { return t.anchor != nil && !t.forgotten }

// Package returns the hash of the package.
func (t *Trace) Package() jamq.PackageHash { return t.pkg }

// Status returns the package's outcome on the best chain at the last call of
// [View.Changes] or [View.Status]. Blocks that were imported later do not count yet.
func (t *Trace) Status() Status { return t.verdict.status() }

// Dead returns Status().Dead.
func (t *Trace) Dead() anchor.Reason { return t.verdict.dead }

// IsReported reports whether the best chain has reported the package.
func (t *Trace) IsReported() bool { return t.verdict.reported != nil }

// IsAccumulated reports whether the best chain has accumulated the package.
func (t *Trace) IsAccumulated() bool { return t.verdict.accumulated != nil }

// Anchor returns the anchor block of the package. It is zero if the host has never
// watched the package, so the view follows the package only as a prerequisite.
func (t *Trace) Anchor() anchor.Point { return t.anchor.point() }

// LookupAnchorSlot returns the slot of the package's lookup anchor.
func (t *Trace) LookupAnchorSlot() jamq.Slot { return t.lookupAnchorSlot }

// Prerequisites returns the packages that must be accumulated before this one. If the host has
// forgotten the package and its outcome is final, the result may be empty, because the view no
// longer needs them. The caller must not modify the slice.
func (t *Trace) Prerequisites() []jamq.PackageHash { return t.prerequisites }

// agenda schedules which outcomes the view must compute again, so that a new block does
// not cost time for every package. It also collects the packages whose outcome has
// changed, for the next call of Changes.
type agenda struct {
	turns          minheap.Heap[uint64, *Trace] // to compute at the next call of judge, by number
	heights, slots minheap.Heap[uint64, *Trace] // to compute at a height or a slot
	changed        []*Trace                     // for the next call of Changes
}

// Watch makes the view follow a package. Call it before the package is first sent,
// so that no imported block can contain the package, and after the calls for its
// prerequisites. A second call for the same package changes nothing. If the host
// has called Forget for the package and the view still follows it, the package is
// watched again, with its old anchor and outcome. The error wraps ErrUnknownBlock
// if the anchor is not in the tree.
//
// The view also follows prerequisites that the host does not watch. They are
// usually packages of other rollups, whose anchors are unknown. Such a package
// counts as alive while it is unreported. After its report it can expire as a
// prerequisite, and it can die by the rules D5 and D6. If it was already in a block
// at the call of Watch, it never counts as dead.
func (v *View) Watch(pkg jamq.PackageHash, p Package) (*Trace, error) {
	known := v.traces[pkg]
	if known != nil && known.anchor != nil {
		if known.forgotten {
			v.watchAgain(known, p.Prerequisites)
		}
		return known, nil
	}
	at, ok := v.nodes[p.Anchor]
	if !ok {
		return nil, fmt.Errorf("%w: anchor %s of package %s", ErrUnknownBlock, p.Anchor, pkg)
	}
	v.follow(p.Prerequisites)
	v.lastWatched++
	t := &Trace{
		pkg: pkg, number: v.lastWatched, anchor: at, lookupAnchorSlot: p.LookupAnchorSlot,
		prerequisites: slices.Clone(p.Prerequisites),
	}
	if known != nil { // followed as a prerequisite
		t.number, t.dependents, t.sightings, t.partial = known.number, known.dependents, known.sightings, known.partial
		for _, d := range t.dependents {
			d.needs[slices.Index(d.needs, known)] = t
		}
		v.retire(known)
	}
	v.enter(t)
	return t, nil
}

// watchAgain makes the view watch a forgotten package again.
func (v *View) watchAgain(t *Trace, prerequisites []jamq.PackageHash) {
	t.forgotten = false
	if len(t.prerequisites) > 0 {
		return
	}
	// The view has dropped the prerequisites in the meantime.
	v.follow(prerequisites)
	t.prerequisites = slices.Clone(prerequisites)
	v.link(t)
}

// follow makes the view follow packages that it does not follow yet.
func (v *View) follow(packages []jamq.PackageHash) {
	for _, pkg := range packages {
		if _, known := v.traces[pkg]; !known {
			v.watchForeign(pkg)
		}
	}
}

// watchForeign makes the view follow a prerequisite that the host does not watch.
func (v *View) watchForeign(pkg jamq.PackageHash) {
	v.lastWatched++
	t := &Trace{pkg: pkg, number: v.lastWatched}
	// Most prerequisites belong to other rollups, so the tree may already contain events about
	// this package. Search it for them.
	v.recall(t)
	v.enter(t)
}

// recall finds the events about a package in blocks that were imported before the view
// began to follow the package.
func (v *View) recall(t *Trace) {
	add := func(k kind, at *node) {
		// Other events may be missing, for example those in blocks that were pruned.
		t.partial = true
		if s := (sighting{kind: k, at: at}); !slices.Contains(t.sightings, s) {
			t.sightings = append(t.sightings, s)
		}
	}
	look := func(n *node) {
		for i := range n.reported {
			if n.reported[i].Package == t.pkg {
				add(reported, n)
			}
		}
		if n.accumulated.has(t.pkg) {
			add(becameAvailable, n)
			add(accumulated, n)
		}
	}
	for _, n := range v.main {
		look(n)
	}
	for _, n := range v.side {
		look(n)
	}
}

// enter adds a new trace and links it with those of its prerequisites.
func (v *View) enter(t *Trace) {
	v.register(t)
	v.link(t)
}

// register adds a trace to the index of packages, and schedules it for judge.
func (v *View) register(t *Trace) {
	t.turn.Value, t.height.Value, t.inSlot.Value = t, t, t
	for _, s := range t.sightings { // added by recall or Restore
		if s.at.contents != nil {
			s.at.seen = append(s.at.seen, t)
		}
	}
	v.traces[t.pkg] = t
	v.reconsider(t)
}

// link links a trace with its prerequisites, which the view follows, in both
// directions.
func (v *View) link(t *Trace) {
	for _, need := range t.prerequisites {
		if p, ok := v.traces[need]; ok {
			t.needs = append(t.needs, p)
			p.dependents = append(p.dependents, t)
		}
	}
}

// Trace returns the trace of a package, and false if the view does not follow the package.
func (v *View) Trace(pkg jamq.PackageHash) (*Trace, bool) {
	t, ok := v.traces[pkg]
	return t, ok
}

// Status returns the outcome of a watched package on the best chain. The error wraps ErrNotWatched.
func (v *View) Status(pkg jamq.PackageHash) (Status, error) {
	s, err := v.verdictOn(pkg)
	return s.status(), err
}

func (v *View) verdictOn(pkg jamq.PackageHash) (verdict, error) {
	t, ok := v.traces[pkg]
	if !ok || t.forgotten {
		return verdict{}, fmt.Errorf("%w: %s", ErrNotWatched, pkg)
	}
	v.judge()
	return t.verdict, nil
}

// Changes calls f for each watched package whose status on the best chain has changed since the
// last call. The order of the calls is deterministic, but not always the order of Watch. f must not
// call Watch or Forget.
func (v *View) Changes(f func(*Trace)) {
	v.judge()
	changed := v.agenda.changed
	v.agenda.changed = v.agenda.changed[:0]
	for _, t := range changed {
		t.changed = false
		if t.watched() {
			f(t)
		}
	}
	clear(changed)
}

// see records that a block reports a package, makes it available or accumulates it. It
// ignores packages that the view does not follow.
func (v *View) see(pkg jamq.PackageHash, k kind, at *node) {
	// Most packages belong to other rollups, and cost only this lookup.
	if t, ok := v.traces[pkg]; ok {
		t.sightings = append(slices.DeleteFunc(t.sightings, func(s sighting) bool { return s.at.lost }), sighting{kind: k, at: at})
		at.seen = append(at.seen, t)
		v.reconsider(t)
	}
}

// reconsider makes the next call of judge compute the outcome of a package again.
func (v *View) reconsider(t *Trace) { v.agenda.turns.Set(&t.turn, t.number) }

// reconsiderDue schedules the packages whose deadlines the new best block has reached.
func (v *View) reconsiderDue() {
	// If the best chain has only grown, no other package can have died of age. After a
	// reorganization any outcome may differ, and reconsiderAll schedules all of them instead.
	best := v.Best()
	for e := v.agenda.heights.Min(); e != nil && e.Key() <= best.Height; e = v.agenda.heights.Min() {
		v.agenda.heights.Remove(e)
		v.reconsider(e.Value)
	}
	for e := v.agenda.slots.Min(); e != nil && e.Key() <= uint64(best.Slot); e = v.agenda.slots.Min() {
		v.agenda.slots.Remove(e)
		v.reconsider(e.Value)
	}
}

// reconsiderAll schedules every package whose status may have changed by a reorg.
func (v *View) reconsiderAll() {
	// The loop may run in any order: judge takes the traces by number.
	for _, t := range v.traces {
		newest := uint64(0)
		for _, s := range t.sightings {
			newest = max(newest, s.at.Height)
		}
		// A reorganization cannot change the outcome of a package that is final and about which
		// no block after the finalized one has an event. All other packages are judged again.
		if newest > v.finalized.Height || !v.fateIsFinal(t) {
			v.reconsider(t)
		}
	}
}

// fateIsFinal reports whether the outcome of a package can no longer change.
func (v *View) fateIsFinal(t *Trace) bool {
	s := t.verdict.upTo(v.finalized.Height)
	// The finalized chain has accumulated the package, or can never do so.
	return s.accumulated != nil || s.dead != anchor.Alive
}

// judge computes the outcomes of all scheduled packages, those of prerequisites first.
func (v *View) judge() {
	for e := v.agenda.turns.Min(); e != nil; e = v.agenda.turns.Min() {
		v.agenda.turns.Remove(e)
		v.judgeOne(e.Value)
	}
}

func (v *View) judgeOne(t *Trace) {
	s, removed := v.seenUpTo(t, v.Best().Height)
	f := v.facts(t, v.best(), s, removed)
	var d anchor.Deadline
	if t.verdict.dead != anchor.Alive && v.fateIsFinal(t) {
		// The evidence may have been pruned.
		s.dead, s.deadSince = t.verdict.dead, t.verdict.deadSince
	} else if v.reason(t, &f) != anchor.Alive {
		s.dead, s.deadSince = v.death(t)
	} else {
		d = anchor.NextDeath(&v.spec, &f)
	}
	schedule(&v.agenda.heights, &t.height, d.Height)
	schedule(&v.agenda.slots, &t.inSlot, uint64(d.Slot))
	if s == t.verdict {
		return
	}
	if v.contradicts(t.verdict, s) {
		v.contradictions = append(v.contradictions, t.pkg)
	}
	t.verdict = s
	if !t.changed {
		t.changed = true
		v.agenda.changed = append(v.agenda.changed, t)
	}
	for _, d := range t.dependents {
		v.reconsider(d)
	}
}

// schedule sets a trace's deadline in a heap of the agenda; 0 means none.
func schedule(h *minheap.Heap[uint64, *Trace], e *minheap.Entry[uint64, *Trace], at uint64) {
	if at == 0 {
		h.Remove(e)
	} else {
		h.Set(e, at)
	}
}

// reason returns the rule by which a package is dead, or Alive.
func (v *View) reason(t *Trace, f *anchor.Facts) anchor.Reason {
	if t.partial {
		// The view may have missed events of the package.
		return anchor.Alive
	}
	return anchor.Dead(&v.spec, f)
}

// death returns the oldest block at which a package is dead, and the rule there.
func (v *View) death(t *Trace) (anchor.Reason, *node) {
	reasonAt := func(i int) anchor.Reason {
		s, removed := v.seenUpTo(t, v.main[i].Height)
		f := v.facts(t, v.main[i], s, removed)
		return v.reason(t, &f)
	}
	// A dead package stays dead, so a binary search finds the block.
	i := sort.Search(len(v.main)-1, func(i int) bool { return reasonAt(i) != anchor.Alive })
	return reasonAt(i), v.main[i]
}

// seenUpTo returns what the best chain had recorded about a package at the given height.
// gone is the block that removed the report of the package from its core, or nil if no
// block has.
func (v *View) seenUpTo(t *Trace, height uint64) (s verdict, gone *node) {
	for _, seen := range t.sightings {
		if seen.at.Height > height || !v.onMain(seen.at) {
			continue
		}
		switch seen.kind {
		case reported:
			s.reported = seen.at
		case becameAvailable:
			s.available = seen.at
		case removed:
			gone = seen.at
		case accumulated:
			s.accumulated = seen.at
		}
	}
	return s, gone
}

// facts returns the facts from which package anchor decides whether a package is dead.
func (v *View) facts(t *Trace, head *node, s verdict, gone *node) anchor.Facts {
	f := anchor.Facts{
		Head:        head.Point,
		Reported:    s.reported.point(),
		Available:   s.available.point(),
		Removed:     gone.point(),
		Accumulated: s.accumulated.point(),
	}
	if t.anchor != nil {
		f.AnchorOnChain, f.AnchorHeight, f.LookupAnchorSlot = v.onMain(t.anchor), t.anchor.Height, t.lookupAnchorSlot
	} else {
		// The anchor is unknown, so it never expires.
		f.AnchorOnChain, f.AnchorHeight, f.LookupAnchorSlot = true, math.MaxUint64, jamq.MaxSlot
	}
	for _, p := range t.needs {
		// The verdicts of the prerequisites are up to date, because judge computes them
		// first.
		need := p.verdict.upTo(head.Height)
		f.Prerequisites = append(f.Prerequisites, anchor.Prerequisite{Dead: need.dead != anchor.Alive, Reported: need.reported.point()})
	}
	return f
}
