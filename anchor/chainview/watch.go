package chainview

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/internal/minheap"
)

// ErrNotWatched is wrapped when a package is asked about that is not watched.
var ErrNotWatched = errors.New("chainview: package not watched")

// Package is what the view must know of a package to judge it.
type Package struct {
	// Anchor is the anchor block; the view must hold it.
	Anchor jamq.HeaderHash
	// LookupAnchorSlot is the slot of the lookup anchor.
	LookupAnchorSlot jamq.Slot
	// Prerequisites are the packages that must be accumulated before it. The view follows those
	// that are not watched as well: see [View.Watch].
	Prerequisites []jamq.PackageHash
}

// Status is what became of a package on one chain.
type Status struct {
	// Reported, Available and Accumulated are the blocks in which that happened; zero where it did
	// not.
	Reported, Available, Accumulated anchor.Point
	// Dead is why the package can never be accumulated on this chain, as of the
	// block DeadSince, or anchor.Alive.
	Dead anchor.Reason
	// DeadSince is the evidence: the oldest block held at which Dead holds. A package for the same
	// rollup block may be anchored there or later.
	DeadSince anchor.Point
}

// verdict is a status by blocks of the tree.
type verdict struct {
	reported, available, accumulated, deadSince *node
	dead                                        anchor.Reason
}

// upTo returns the verdict as it was at an earlier height of the same chain. What was found on a
// fork that finality has passed by since does not count.
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

// point returns where the block is, or zero for nil.
func (n *node) point() anchor.Point {
	if n == nil {
		return anchor.Point{}
	}
	return n.Point
}

// kind is what a block says about a package.
type kind uint8

const (
	reported kind = iota
	becameAvailable
	removed // by a verdict or the availability time-out
	accumulated
)

// sighting is one thing that one block says about one package.
type sighting struct {
	kind kind
	at   *node
}

// Trace is a watched package and all that blocks of every fork have said about it.
type Trace struct {
	pkg    jamq.PackageHash
	number uint64 // in the order of watching, so a prerequisite has a lower one than its dependents
	anchor *node  // nil for a package of others, which is followed only as a prerequisite
	// partial is true if a block had reported the package before it was followed, or before a gap.
	// What became of that report is not known, so the package is never taken for dead.
	partial          bool
	lookupAnchorSlot jamq.Slot
	prerequisites    []jamq.PackageHash
	needs            []*Trace // those of the prerequisites that are watched
	dependents       []*Trace
	sightings        []sighting

	verdict verdict // on the best chain, once its turn has come
	changed bool    // since Changes was called last

	turn           minheap.Entry[uint64, *Trace] // queued if the status may be another by now
	height, inSlot minheap.Entry[uint64, *Trace] // when it dies if nothing is heard of it
}

// Package returns the hash of the package.
func (t *Trace) Package() jamq.PackageHash { return t.pkg }

// Status returns what became of the package on the best chain, as of the last call of
// [View.Changes] or [View.Status].
func (t *Trace) Status() Status { return t.verdict.status() }

// Dead returns Status().Dead.
func (t *Trace) Dead() anchor.Reason { return t.verdict.dead }

// IsReported reports whether the best chain has reported the package.
func (t *Trace) IsReported() bool { return t.verdict.reported != nil }

// IsAccumulated reports whether the best chain has accumulated the package.
func (t *Trace) IsAccumulated() bool { return t.verdict.accumulated != nil }

// Anchor returns the block that the package is anchored to; zero for a package of others.
func (t *Trace) Anchor() anchor.Point { return t.anchor.point() }

// LookupAnchorSlot returns the slot of its lookup anchor.
func (t *Trace) LookupAnchorSlot() jamq.Slot { return t.lookupAnchorSlot }

// Prerequisites returns the packages that must come first. The slice must not be written to.
func (t *Trace) Prerequisites() []jamq.PackageHash { return t.prerequisites }

// agenda says which traces to judge anew, and when.
type agenda struct {
	turns          minheap.Heap[uint64, *Trace] // by number
	heights, slots minheap.Heap[uint64, *Trace]
	changed        []*Trace
}

// Watch begins to follow a package. Call it before the bytes of the package first leave the host,
// so that no imported block can have named it, and after its own prerequisites are watched.
// Watching a package again changes nothing. The error wraps ErrUnknownBlock if the anchor is not
// held.
//
// A prerequisite that is not watched belongs to others. The view then follows what blocks say about
// it: once it is reported, it can expire as a prerequisite, and die by D5 and D6. It is taken to be
// alive while it is unreported, because its anchor is not known, and also if it was reported
// before.
func (v *View) Watch(pkg jamq.PackageHash, p Package) (*Trace, error) {
	known := v.watched[pkg]
	if known != nil && known.anchor != nil {
		return known, nil
	}
	at, ok := v.nodes[p.Anchor]
	if !ok {
		return nil, fmt.Errorf("%w: anchor %s of package %s", ErrUnknownBlock, p.Anchor, pkg)
	}
	for _, need := range p.Prerequisites {
		if _, known := v.watched[need]; !known {
			v.watchForeign(need)
		}
	}
	v.lastWatched++
	t := &Trace{
		pkg: pkg, number: v.lastWatched, anchor: at, lookupAnchorSlot: p.LookupAnchorSlot,
		prerequisites: slices.Clone(p.Prerequisites),
	}
	if known != nil { // another package named it first
		t.number, t.dependents, t.sightings, t.partial = known.number, known.dependents, known.sightings, known.partial
		for _, d := range t.dependents {
			d.needs[slices.Index(d.needs, known)] = t
		}
		v.retire(known)
	}
	v.enter(t)
	return t, nil
}

// watchForeign begins to follow a package of others.
func (v *View) watchForeign(pkg jamq.PackageHash) {
	v.lastWatched++
	t := &Trace{pkg: pkg, number: v.lastWatched}
	v.recall(t)
	v.enter(t)
}

// recall adds to the trace of a package of others what the blocks held say about
// it, as far as the view remembers their contents.
func (v *View) recall(t *Trace) {
	add := func(k kind, at *node) {
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
		switch done := n.accumulated.has(t.pkg); {
		case done && n.Hash.IsZero(): // from before recent history, when the view began
			t.partial = true
		case done:
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

// enter makes a trace known and links it with its prerequisites.
func (v *View) enter(t *Trace) {
	v.register(t)
	v.link(t)
}

// register makes a trace known.
func (v *View) register(t *Trace) {
	t.turn.Value, t.height.Value, t.inSlot.Value = t, t, t
	for _, s := range t.sightings { // from before it was entered
		if s.at.contents != nil {
			s.at.seen = append(s.at.seen, t)
		}
	}
	v.watched[t.pkg] = t
	v.reconsider(t)
}

// link links a trace with its prerequisites, which are known.
func (v *View) link(t *Trace) {
	for _, need := range t.prerequisites {
		if p, ok := v.watched[need]; ok {
			t.needs = append(t.needs, p)
			p.dependents = append(p.dependents, t)
		}
	}
}

// Forget ends Watch. A package that was never watched is ignored. For packages that name it, it
// counts as settled from then on.
func (v *View) Forget(pkg jamq.PackageHash) {
	t, ok := v.watched[pkg]
	if !ok {
		return
	}
	delete(v.watched, pkg)
	is := func(other *Trace) bool { return other == t }
	for _, p := range t.needs {
		p.dependents = slices.DeleteFunc(p.dependents, is)
		if p.anchor == nil && len(p.dependents) == 0 {
			v.Forget(p.pkg)
		}
	}
	for _, d := range t.dependents {
		d.needs = slices.DeleteFunc(d.needs, is)
		v.reconsider(d)
	}
	v.retire(t)
}

// retire takes a trace off the agenda.
func (v *View) retire(t *Trace) {
	v.agenda.turns.Remove(&t.turn)
	v.agenda.heights.Remove(&t.height)
	v.agenda.slots.Remove(&t.inSlot)
	if t.changed {
		v.agenda.changed = slices.DeleteFunc(v.agenda.changed, func(other *Trace) bool { return other == t })
	}
}

// Trace returns the trace of a package that is watched, and whether it is.
func (v *View) Trace(pkg jamq.PackageHash) (*Trace, bool) {
	t, ok := v.watched[pkg]
	return t, ok
}

// Status returns what became of a watched package on the best chain. The error wraps ErrNotWatched.
func (v *View) Status(pkg jamq.PackageHash) (Status, error) {
	s, err := v.verdictOn(pkg)
	return s.status(), err
}

// FinalStatus returns what became of a watched package on the finalized chain. The error wraps
// ErrNotWatched.
func (v *View) FinalStatus(pkg jamq.PackageHash) (Status, error) {
	s, err := v.verdictOn(pkg)
	return s.upTo(v.finalized.Height).status(), err
}

func (v *View) verdictOn(pkg jamq.PackageHash) (verdict, error) {
	t, ok := v.watched[pkg]
	if !ok {
		return verdict{}, fmt.Errorf("%w: %s", ErrNotWatched, pkg)
	}
	v.judge()
	return t.verdict, nil
}

// Changes calls f for each watched package whose status on the best chain has changed since the
// last call, mostly in the order of watching. f must not call Watch or Forget.
func (v *View) Changes(f func(*Trace)) {
	v.judge()
	changed := v.agenda.changed
	v.agenda.changed = v.agenda.changed[:0]
	for _, t := range changed {
		t.changed = false
		if t.anchor != nil {
			f(t)
		}
	}
	clear(changed)
}

// see records that a block speaks of a package. Packages of other rollups are the normal case and
// cost one look-up.
func (v *View) see(pkg jamq.PackageHash, k kind, at *node) {
	if t, ok := v.watched[pkg]; ok {
		t.sightings = append(slices.DeleteFunc(t.sightings, func(s sighting) bool { return s.at.lost }), sighting{kind: k, at: at})
		at.seen = append(at.seen, t)
		v.reconsider(t)
	}
}

// reconsider gives a trace its turn.
func (v *View) reconsider(t *Trace) { v.agenda.turns.Set(&t.turn, t.number) }

// reconsiderDue gives those a turn that may have died of old age at the best block.
func (v *View) reconsiderDue() {
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

// reconsiderAll gives everybody a turn of whom the new chain may speak otherwise than the old one.
// After a reorg this is all whose fate is not final.
func (v *View) reconsiderAll() {
	for _, t := range v.watched {
		newest := uint64(0)
		for _, s := range t.sightings {
			newest = max(newest, s.at.Height)
		}
		if newest > v.finalized.Height || !v.fateIsFinal(t) {
			v.reconsider(t)
		}
	}
}

// fateIsFinal reports whether the finalized chain has accumulated a package or can never do so.
func (v *View) fateIsFinal(t *Trace) bool {
	s := t.verdict.upTo(v.finalized.Height)
	return s.accumulated != nil || s.dead != anchor.Alive
}

// judge takes all turns, prerequisites before what depends on them.
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
		s.dead, s.deadSince = t.verdict.dead, t.verdict.deadSince // its evidence may be forgotten by now
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
	t.verdict = s
	if !t.changed {
		t.changed = true
		v.agenda.changed = append(v.agenda.changed, t)
	}
	for _, d := range t.dependents {
		v.reconsider(d)
	}
}

// schedule sets or clears a deadline.
func schedule(h *minheap.Heap[uint64, *Trace], e *minheap.Entry[uint64, *Trace], at uint64) {
	if at == 0 {
		h.Remove(e)
	} else {
		h.Set(e, at)
	}
}

// reason judges a package by its facts.
func (v *View) reason(t *Trace, f *anchor.Facts) anchor.Reason {
	if t.partial {
		return anchor.Alive
	}
	return anchor.Dead(&v.spec, f)
}

// death returns the oldest block held of the best chain at which the package is
// dead, and the reason that holds there. At later blocks other reasons may hold
// as well. Death is inherited, so a binary search finds the block.
func (v *View) death(t *Trace) (anchor.Reason, *node) {
	reasonAt := func(i int) anchor.Reason {
		s, removed := v.seenUpTo(t, v.main[i].Height)
		f := v.facts(t, v.main[i], s, removed)
		return v.reason(t, &f)
	}
	base := v.main[0].Height
	first, last := int(max(v.from, base)-base), len(v.main)-1
	i := first + sort.Search(last-first, func(i int) bool { return reasonAt(first+i) != anchor.Alive })
	return reasonAt(i), v.main[i]
}

// seenUpTo returns what the best chain up to a height has said about a package; the second result
// is the block that removed it from its core.
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

// facts is what decides the life of a package on the best chain up to head. The prerequisites must
// have been judged.
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
	} else { // of others: its anchors are not known, so they never expire
		f.AnchorOnChain, f.AnchorHeight, f.LookupAnchorSlot = true, math.MaxUint64, jamq.MaxSlot
	}
	for _, p := range t.needs {
		need := p.verdict.upTo(head.Height)
		f.Prerequisites = append(f.Prerequisites, anchor.Prerequisite{Dead: need.dead != anchor.Alive, Reported: need.reported.point()})
	}
	return f
}
