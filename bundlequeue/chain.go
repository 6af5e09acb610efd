package bundlequeue

import (
	"fmt"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// This file has all questions that the queue asks about the JAM chain. The view answers them by the
// rules D1 to D6 of package anchor, which say when a package can never be accumulated.

// watch lets the view follow a package from now on. The error wraps ErrInadmissible if the refine
// context of the package is impossible.
func (q *Queue) watch(pkg jamq.PackageHash, c *jamq.RefineContext) (*chainview.Trace, error) {
	trace, err := q.view.Watch(pkg, chainview.Package{
		Anchor: c.Anchor, LookupAnchorSlot: c.LookupAnchorSlot, Prerequisites: c.Prerequisites,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInadmissible, err)
	}
	_, err = q.view.Status(pkg) // which judges the package for the first time
	return trace, err
}

// anchorAt returns the block of the best chain that lies offset blocks behind the newest one,
// together with the offset that was possible. If least is newer than that block, anchorAt returns
// least.
//
// ok is false if no block is suitable yet. The newest block never is, because the state root of a
// block becomes public only with its child (rule R1, Gray Paper 11.33).
func (q *Queue) anchorAt(least anchor.Point, offset int) (at anchor.Point, actual int, ok bool) {
	best := q.view.Best().Height
	height := best - min(uint64(offset), best)
	if !least.IsZero() {
		height = max(height, least.Height)
	}
	if height >= best {
		return anchor.Point{}, 0, false
	}
	at, ok = q.view.AtHeight(height)
	return at, int(best - height), ok
}

// finallyAccumulated reports whether the finalized chain has accumulated a version. Every future
// chain contains the finalized block, so nothing can undo it.
func (q *Queue) finallyAccumulated(v *version) bool {
	at := v.trace.Status().Accumulated
	return !at.IsZero() && at.Height <= q.view.Finalized().Height
}

// finallyDead reports whether no chain can ever accumulate a version. This is so if the version was
// never sent, or if it is dead at the finalized block, because a dead package stays dead on all
// chains that contain that block.
func (q *Queue) finallyDead(v *version) bool {
	s := v.trace.Status()
	return !v.sent || s.Dead != anchor.Alive && s.DeadSince.Height <= q.view.Finalized().Height
}
