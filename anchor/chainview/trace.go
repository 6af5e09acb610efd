package chainview

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// ErrNotWatched is wrapped when a package is asked about that is not watched.
var ErrNotWatched = errors.New("chainview: package not watched")

// Package is what the view must know of a package to judge it.
type Package struct {
	// Anchor is the anchor block, AnchorHeight its height in this view.
	Anchor       jamq.HeaderHash
	AnchorHeight uint64
	// LookupAnchorSlot is the slot of the lookup anchor.
	LookupAnchorSlot jamq.Slot
	// Prerequisites are the packages that must be accumulated before it. Those that are not watched are taken to be
	// accumulated and settled.
	Prerequisites []jamq.PackageHash
}

// kind is what a block says about a package.
type kind uint8

const (
	reported kind = iota
	available
	removed // by a verdict or the availability time-out
	accumulated
)

// sighting is one thing that one block says about one package.
type sighting struct {
	kind kind
	at   anchor.Point
}

// trace is a watched package and all its sightings, on every fork.
type trace struct {
	Package
	sightings []sighting
	// lost is set when finality passed the anchor's height on another fork: the package is dead for ever.
	lost bool
}

// Status is what became of a package on the best chain.
type Status struct {
	// Reported, Available and Accumulated are the blocks in which that happened; zero where it did not.
	Reported, Available, Accumulated anchor.Point
	// Dead is why the package can never be accumulated on this chain, or anchor.Alive.
	Dead anchor.Reason
	// DeadSince is the oldest block held at which Dead holds. A package for the same rollup block may be anchored
	// there or later.
	DeadSince anchor.Point
}

// Watch begins to follow a package. It must be watched before its bytes first leave the host, so that no block that
// speaks of it can have been imported. Watching it again changes nothing.
func (v *View) Watch(pkg jamq.PackageHash, p Package) {
	if _, ok := v.watched[pkg]; ok {
		return
	}
	p.Prerequisites = slices.Clone(p.Prerequisites)
	v.watched[pkg] = &trace{Package: p}
}

// Forget ends Watch. A package that was never watched is ignored.
func (v *View) Forget(pkg jamq.PackageHash) { delete(v.watched, pkg) }

// Status returns what became of a watched package on the best chain.
func (v *View) Status(pkg jamq.PackageHash) (Status, error) { return v.status(pkg, v.Best()) }

// FinalStatus returns what became of a watched package on the finalized chain.
func (v *View) FinalStatus(pkg jamq.PackageHash) (Status, error) { return v.status(pkg, v.Finalized()) }

// status judges a package on the best chain up to head, which is on it.
func (v *View) status(pkg jamq.PackageHash, head anchor.Point) (Status, error) {
	t, ok := v.watched[pkg]
	if !ok {
		return Status{}, fmt.Errorf("%w: %s", ErrNotWatched, pkg)
	}
	f := v.facts(t, head)
	s := Status{
		Reported:    f.Reported,
		Available:   f.Available,
		Accumulated: f.Accumulated,
		Dead:        anchor.Dead(&v.spec, &f),
	}
	if s.Dead != anchor.Alive {
		s.DeadSince = v.deadSince(t, head)
	}
	return s, nil
}

// deadSince finds the oldest block of the best chain at which the package is dead. Death is inherited, so a binary
// search finds it.
func (v *View) deadSince(t *trace, head anchor.Point) anchor.Point {
	n := int(head.Height-v.main[0].Height) + 1
	i := sort.Search(n, func(i int) bool {
		f := v.facts(t, v.main[i].Point)
		return anchor.Dead(&v.spec, &f) != anchor.Alive
	})
	return v.main[min(i, n-1)].Point
}

// facts gathers what the best chain up to head says about a package.
func (v *View) facts(t *trace, head anchor.Point) anchor.Facts {
	f := anchor.Facts{
		Head:             head,
		AnchorOnChain:    !t.lost && v.onMain(anchor.Point{Hash: t.Anchor, Height: t.AnchorHeight}),
		AnchorHeight:     t.AnchorHeight,
		LookupAnchorSlot: t.LookupAnchorSlot,
	}
	for _, s := range t.sightings {
		if s.at.Height > head.Height || !v.onMain(s.at) {
			continue
		}
		switch s.kind {
		case reported:
			f.Reported = s.at
		case available:
			f.Available = s.at
		case removed:
			f.Removed = s.at
		case accumulated:
			f.Accumulated = s.at
		}
	}
	for _, need := range t.Prerequisites {
		p, ok := v.watched[need]
		if !ok {
			continue
		}
		pf := v.facts(p, head)
		f.Prerequisites = append(f.Prerequisites, anchor.Prerequisite{
			Dead:        anchor.Dead(&v.spec, &pf) != anchor.Alive,
			Reported:    pf.Reported,
			Accumulated: pf.Accumulated,
		})
	}
	return f
}

// see records that a block speaks of a package. Packages of other rollups are the normal case and cost one look-up.
func (v *View) see(pkg jamq.PackageHash, k kind, at anchor.Point) {
	if t, ok := v.watched[pkg]; ok {
		t.sightings = append(t.sightings, sighting{kind: k, at: at})
	}
}

// settle drops what a trace remembers of forks that finality has passed by.
func (v *View) settle(t *trace) {
	passed := func(p anchor.Point) bool { return p.Height <= v.finalized.Height && !v.onMain(p) }
	t.sightings = slices.DeleteFunc(t.sightings, func(s sighting) bool { return passed(s.at) })
	t.lost = t.lost || passed(anchor.Point{Hash: t.Anchor, Height: t.AnchorHeight})
}

// applyCores derives the cores after a block from those before it, in the order of GP 4.2: verdicts, availability,
// time-outs, then new reports.
func (v *View) applyCores(n *node, b *jamq.Block) {
	n.cores = n.parent.cores
	copied := false
	set := func(core jamq.CoreIndex, c coreState) {
		if !copied {
			n.cores, copied = slices.Clone(n.cores), true
		}
		n.cores[core] = c
	}
	release := func(core jamq.CoreIndex, k kind) {
		if pkg := n.cores[core].pkg; !pkg.IsZero() {
			v.see(pkg, k, n.Point)
			set(core, coreState{})
		}
	}
	for _, core := range b.Cleared {
		release(core, removed)
	}
	for _, core := range b.Available {
		release(core, available)
	}
	for i, c := range n.cores {
		if !c.pkg.IsZero() && n.Slot >= c.since.Add(v.spec.AvailabilityTimeout) {
			release(jamq.CoreIndex(i), removed)
		}
	}
	for _, r := range b.Reported {
		v.see(r.Package, reported, n.Point)
		set(r.Core, coreState{pkg: r.Package, since: n.Slot})
	}
}

// Watched reports whether a package is being followed.
func (v *View) Watched(pkg jamq.PackageHash) bool {
	_, ok := v.watched[pkg]
	return ok
}
