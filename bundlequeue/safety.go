package bundlequeue

import (
	"slices"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// The safety theorem (promise B1): a new version is built only if every earlier version that may be
// out is dead on the best chain, and it is anchored at the block by which the last of them died, or
// later. A chain that reports the new version contains its anchor; there the earlier versions are
// dead, and death is inherited. So no chain accumulates two versions. This file is that rule,
// before a build and after it.

// admission says whether a new version of a bundle may be built, and how.
type admission struct {
	ok bool
	// minAnchor is the oldest block that the version may be anchored to; zero means any.
	minAnchor anchor.Point
	// prerequisites are the packages that the version must name.
	prerequisites []jamq.PackageHash
}

// admissible returns whether a new version of a bundle may be built. Its predecessor must have a
// live version, which the new one names, or leaves out if the chain of its anchor has accumulated
// it (promise B3).
func (q *Queue[B]) admissible(it *item[B]) admission {
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
	how := q.blocks.Follow(v.fate, q.BuildBlocks())
	switch {
	case !how.Possible:
		return admission{}
	case how.Name:
		return admission{ok: true, minAnchor: minAnchor, prerequisites: []jamq.PackageHash{v.pkg}}
	}
	return admission{ok: true, minAnchor: later(minAnchor, how.LeastAnchor)}
}

// allDead returns the block by which every version of a bundle is dead on the best chain, zero if
// it has none, and whether there is such a block.
func (q *Queue[B]) allDead(it *item[B]) (since anchor.Point, ok bool) {
	if it.deadSince != nil {
		since = *it.deadSince
	}
	for _, v := range it.versions {
		if !v.dead() {
			return anchor.Point{}, false
		}
		since = later(since, v.fate.Status().DeadSince)
	}
	return since, true
}

// later returns the higher of two blocks of one chain; zero is below all.
func later(a, b anchor.Point) anchor.Point {
	if a.IsZero() || b.Height > a.Height {
		return b
	}
	return a
}

// fits reports whether a package that was built at a block of the best chain may still be sent. The
// chain can have changed since the request: the evidence of death must hold at the package's anchor
// as the chain is now, and the package must follow the live version of its predecessor.
func (q *Queue[B]) fits(it *item[B], at anchor.Point, r *request) bool {
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
	done := v.fate.Status().Accumulated
	return !done.IsZero() && done.Height <= at.Height
}

// settledDead reports whether no chain can ever accumulate a version: it never left, or it is dead
// on the finalized chain.
func (v *version[B]) settledDead() bool { return !v.sent || v.fate.Settled() == SettledDead }
