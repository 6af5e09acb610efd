package bundlequeue

import (
	"fmt"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// The functions in this file ask the view of the JAM chain about packages and
// blocks. The view follows the rules D1 to D6 of package anchor, which define when
// a package can never be accumulated.

// watch registers a package with the view of the JAM chain, so that the queue learns
// when the package is reported, accumulated or dead. The error wraps ErrInadmissible if
// the package's refine context contradicts the known blocks.
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

// anchorAt returns the block of the best chain that lies offset blocks behind the newest
// one, or least if least is newer. actual is the offset of the returned block.
//
// ok is false if no block is suitable as an anchor yet. The newest block never is,
// because the state root of a block becomes public only with its child (rule R1, Gray
// Paper 11.33).
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

// finallyAccumulated reports whether the finalized chain has accumulated a package.
// Nothing can undo such an accumulation, because every future chain contains the
// finalized block.
func (q *Queue) finallyAccumulated(v *version) bool {
	at := v.trace.Status().Accumulated
	return !at.IsZero() && at.Height <= q.view.Finalized().Height
}

// finallyDead reports whether no chain can ever accumulate a package, because it was
// never sent, or because it is dead at the finalized block. In the second case it stays
// dead, because every future chain contains that block.
func (q *Queue) finallyDead(v *version) bool {
	s := v.trace.Status()
	return !v.sent || s.Dead != anchor.Alive && s.DeadSince.Height <= q.view.Finalized().Height
}
