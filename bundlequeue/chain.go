package bundlequeue

import (
	"errors"
	"fmt"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// This file asks the view of the JAM chain, which applies the rules D1 to D6 of package
// anchor, and gives it blocks.

// observe processes an event about the chain.
func (q *Queue) observe(ev Event) (err error) {
	switch ev := ev.(type) {
	case Imported:
		err = q.importBlock(&ev.Block, ev.Best)
	case FinalizedBlock:
		err = q.view.Finalize(ev.Hash)
	}
	if err != nil {
		return err
	}
	for _, pkg := range q.view.Contradictions() {
		q.total.AccumulatedAfterFailed++
		q.emit(Resurrected{Package: pkg})
	}
	return nil
}

// importBlock imports a block. If the block cannot descend from the finalized
// one, it only becomes known as such, because the host delivers its descendants
// too. If only the best block is older than the finalized one, it is ignored.
func (q *Queue) importBlock(b *jamq.Block, best jamq.HeaderHash) error {
	err := q.view.ImportBest(b, best)
	if !errors.Is(err, chainview.ErrOld) {
		return err
	}
	if err := q.view.Import(b); !errors.Is(err, chainview.ErrOld) {
		return err
	}
	q.view.Abandon(b.Hash)
	return nil
}

// watch begins to follow a package.
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

// anchorAt returns the block of the best chain that lies offset blocks behind the
// newest one, or least if least is newer, with its actual offset. ok is false if no
// block is suitable yet. The newest block never is, because the state root of a block
// is public only when the block has a child (rule R1, Gray Paper 11.33).
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

// finallyAccumulated reports whether the finalized chain has accumulated a version. Every
// future chain contains the finalized block, so every future chain has too.
func (q *Queue) finallyAccumulated(v *version) bool {
	at := v.trace.Status().Accumulated
	return !at.IsZero() && at.Height <= q.view.Finalized().Height
}

// finallyDead reports whether no chain can ever accumulate a version: it was never
// sent, or it is dead at the finalized block, and a dead package stays dead.
func (q *Queue) finallyDead(v *version) bool {
	s := v.trace.Status()
	return !v.sent || s.Dead != anchor.Alive && s.DeadSince.Height <= q.view.Finalized().Height
}
