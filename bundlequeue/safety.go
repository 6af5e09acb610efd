package bundlequeue

import (
	"slices"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// This file is the safety rule (promise B1), before a build and after it.
//
// A new version is built only if every earlier version that was sent is dead on
// the best chain. Its anchor is the block at which the last of them died, or a
// later one. A chain that reports the new version contains this anchor. On that
// chain the earlier versions are dead, and a dead package stays dead. So no
// chain accumulates two versions.

// admission is the decision whether a new version of a bundle may be built, and
// its conditions.
type admission struct {
	ok bool
	// minAnchor is the oldest block that the version may be anchored to. Zero
	// means no limit.
	minAnchor anchor.Point
	// prerequisites are the packages that the version must name.
	prerequisites []jamq.PackageHash
}

// admissible decides whether a new version of a bundle may be built. The
// predecessor must have a live version. The new version names it, unless the
// chain of its anchor has accumulated it (promise B3).
func (q *Queue) admissible(it *item) admission {
	minAnchor, ok := q.allDead(it)
	if !ok {
		return admission{}
	}
	p := q.predecessor(it)
	if p == nil {
		return admission{ok: true, minAnchor: minAnchor}
	}
	v := p.live()
	if v == nil {
		return admission{}
	}
	s, best := v.trace.Status(), q.view.Best().Height
	// The new version may leave the other one out only if the chain of its anchor has
	// accumulated that. If the block of the report is unknown, so is whether recent history
	// has it.
	if done := s.Accumulated; !done.IsZero() && (done.Height < best || s.Reported.IsZero()) {
		return admission{ok: true, minAnchor: later(minAnchor, done)}
	}
	// It must name the other one, which is possible only while the report of that is in
	// recent history (rule R3, Gray Paper 11.39).
	if anchor.PrerequisiteExpired(&q.cfg.Spec, s.Reported, best+uint64(q.buildBlocks())) {
		return admission{}
	}
	return admission{ok: true, minAnchor: minAnchor, prerequisites: []jamq.PackageHash{v.pkg}}
}

// allDead returns the block at which all versions of a bundle are dead on the
// best chain, or zero if there are no versions. ok is false if a version is not
// dead.
func (q *Queue) allDead(it *item) (since anchor.Point, ok bool) {
	if it.deadSince != nil {
		since = *it.deadSince
	}
	for _, v := range it.versions {
		if !v.dead() {
			return anchor.Point{}, false
		}
		since = later(since, v.trace.Status().DeadSince)
	}
	return since, true
}

// later returns the higher of two blocks of one chain. Zero is lower than all
// blocks.
func later(a, b anchor.Point) anchor.Point {
	if a.IsZero() || b.Height > a.Height {
		return b
	}
	return a
}

// fits reports whether a package that was built at a block of the best chain
// may still be sent. The chain may have changed since the request. So fits
// checks on the current chain that the earlier versions are dead at the
// package's anchor, and that the package follows the live version of its
// predecessor.
func (q *Queue) fits(it *item, at anchor.Point, r *request) bool {
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
