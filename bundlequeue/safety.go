package bundlequeue

import (
	"slices"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// This file contains the safety rule of the queue: no chain accumulates two versions of
// a bundle (promise B1). The queue applies the rule before it requests a build, and
// again when the package is built.
//
// A new version is built only if every earlier version that was sent is dead on the
// best chain. Its anchor is the block at which the last of them died, or a later one. A
// chain can report the new version only if it contains this anchor. On that chain the
// earlier versions are dead, and a dead package stays dead. So no chain accumulates two
// versions.

// admission is the answer to the question whether a new package of a bundle may be built
// now. If ok is true, the package must also meet the conditions in the other fields, so
// that no chain accumulates two packages of the bundle.
type admission struct {
	ok bool
	// minAnchor is the oldest block that the package may be anchored to, or zero for
	// any. All earlier packages of the bundle are dead there.
	minAnchor anchor.Point
	// prerequisites are the packages that the new package must name as prerequisites.
	prerequisites []jamq.PackageHash
}

// admissible decides whether a new package of a bundle may be built.
func (q *Queue) admissible(it *item) admission {
	minAnchor, ok := q.allDead(it)
	if !ok {
		// An earlier package of the bundle may still be accumulated.
		return admission{}
	}
	p := q.predecessor(it)
	if p == nil {
		return admission{ok: true, minAnchor: minAnchor}
	}
	// The bundles must be accumulated in order (promise B3). The bundle before this one
	// therefore needs a package that is accumulated or still can be.
	v := p.live()
	if v == nil {
		return admission{}
	}
	s, best := v.trace.Status(), q.view.Best().Height
	// The package of the previous bundle, v, is accumulated, so the new package need not name
	// it as a prerequisite. It must only be anchored on a chain that contains the
	// accumulation. If the view does not know which block reported v, naming v is not safe,
	// because the report may have left recent history.
	if done := s.Accumulated; !done.IsZero() && (done.Height < best || s.Reported.IsZero()) {
		return admission{ok: true, minAnchor: later(minAnchor, done)}
	}
	// The package of the previous bundle, v, is not accumulated on this chain yet, so the new
	// package must name it as a prerequisite. The chain accepts this only while the report of
	// v is in recent history (rule R3, Gray Paper 11.39).
	if anchor.PrerequisiteExpired(&q.cfg.Spec, s.Reported, best+uint64(q.buildBlocks())) {
		return admission{}
	}
	return admission{ok: true, minAnchor: minAnchor, prerequisites: []jamq.PackageHash{v.pkg}}
}

// allDead returns the first block at which all packages of a bundle are dead.
func (q *Queue) allDead(it *item) (since anchor.Point, ok bool) {
	if it.deadSince != nil {
		since = *it.deadSince
	}
	for _, v := range it.versions {
		if !v.dead() {
			// This package may still be accumulated, so no new one may be built.
			return anchor.Point{}, false
		}
		since = later(since, v.trace.Status().DeadSince)
	}
	return since, true
}

// later returns the higher of two blocks; the zero point is the lowest.
func later(a, b anchor.Point) anchor.Point {
	if a.IsZero() || b.Height > a.Height {
		return b
	}
	return a
}

// fits reports whether a package that was just built may still be sent.
func (q *Queue) fits(it *item, at anchor.Point, r *request) bool {
	// Blocks may have arrived during the build. Check once more that all earlier packages of
	// the bundle are dead at the anchor of this one.
	if since, ok := q.allDead(it); !ok || at.Height < since.Height {
		return false
	}
	p := q.predecessor(it)
	if p == nil {
		return true
	}
	v := p.live()
	if v == nil {
		return false
	}
	if len(r.prerequisites) > 0 {
		return slices.Contains(r.prerequisites, v.pkg)
	}
	done := v.trace.Status().Accumulated
	return !done.IsZero() && done.Height <= at.Height
}
