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

// watch makes the view of the JAM chain follow a package.
func (q *Queue) watch(pkg jamq.PackageHash, c *jamq.RefineContext) (*chainview.Trace, error) {
	trace, err := q.view.Watch(pkg, chainview.Package{
		Anchor: c.Anchor, LookupAnchorSlot: c.LookupAnchorSlot, Prerequisites: c.Prerequisites,
	})
	if err != nil {
		// The refine context of the package contradicts the known blocks.
		return nil, fmt.Errorf("%w: %w", ErrInadmissible, err)
	}
	_, err = q.view.Status(pkg) // judges the package for the first time
	return trace, err
}

// anchorAt returns the block that lies offset blocks behind the newest one.
func (q *Queue) anchorAt(least anchor.Point, offset int) (at anchor.Point, actual int, ok bool) {
	best := q.view.Best().Height
	height := best - min(uint64(offset), best)
	if !least.IsZero() {
		// The package must not be anchored before the block least. If the wanted anchor is
		// older, use least itself.
		height = max(height, least.Height)
	}
	// The newest block cannot be an anchor: its state root becomes public only with its
	// child (rule R1, Gray Paper 11.33).
	if height >= best {
		return anchor.Point{}, 0, false
	}
	at, ok = q.view.AtHeight(height)
	return at, int(best - height), ok
}

// finallyAccumulated reports whether the finalized chain has accumulated a package.
func (q *Queue) finallyAccumulated(v *version) bool {
	at := v.trace.Status().Accumulated
	// Nothing can undo this, because every future chain contains the finalized block.
	return !at.IsZero() && at.Height <= q.view.Finalized().Height
}

// finallyDead reports whether no chain can ever accumulate a package.
func (q *Queue) finallyDead(v *version) bool {
	s := v.trace.Status()
	// A package that was never sent cannot reach the chain. A package that is dead at the
	// finalized block is dead on every future chain, because all of them contain this block.
	return !v.sent || s.Dead != anchor.Alive && s.DeadSince.Height <= q.view.Finalized().Height
}
