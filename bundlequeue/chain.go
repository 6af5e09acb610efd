package bundlequeue

import (
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// chain is the evidence from imported JAM blocks. It applies the rules D1 to D6
// of package anchor.
type chain struct {
	spec *jamq.ChainSpec
	view *chainview.View
}

// newChain returns the evidence of a chain that begins at root.
func newChain(spec jamq.ChainSpec, root jamq.Block) (*chain, error) {
	c := &chain{spec: &spec}
	var err error
	c.view, err = chainview.New(c.spec, root)
	return c, err
}

// restoreChain decodes the output of AppendSnapshot.
func restoreChain(spec jamq.ChainSpec, snapshot []byte) (*chain, error) {
	c := &chain{spec: &spec}
	var err error
	c.view, err = chainview.Restore(c.spec, snapshot)
	return c, err
}

// Observe implements Evidence.
func (c *chain) Observe(_ time.Time, ev Event) (effects []Effect, err error) {
	switch ev := ev.(type) {
	case Imported:
		err = c.importBlock(&ev.Block, ev.Best)
	case FinalizedBlock:
		err = c.view.Finalize(ev.Hash)
	case Continue:
		err = c.view.Continue(ev.Root, ev.State, ev.Accumulated)
	default:
		err = fmt.Errorf("%w: %T, want imported blocks", ErrWrongEvidence, ev)
	}
	if err != nil {
		return nil, err
	}
	for _, pkg := range c.view.Contradictions() {
		effects = append(effects, Resurrected{Package: pkg})
	}
	return effects, nil
}

// importBlock imports a block. If the block cannot descend from the finalized
// one, it only becomes known as such, because the host delivers its descendants
// too. If only the best block is older than the finalized one, it is ignored.
func (c *chain) importBlock(b *jamq.Block, best jamq.HeaderHash) error {
	err := c.view.ImportBest(b, best)
	if !errors.Is(err, chainview.ErrOld) {
		return err
	}
	if err := c.view.Import(b); !errors.Is(err, chainview.ErrOld) {
		return err
	}
	c.view.Abandon(b.Hash)
	return nil
}

// Advance implements Evidence. It does nothing, because time is not evidence.
func (c *chain) Advance(time.Time) {}

// NextWake implements Evidence.
func (c *chain) NextWake() time.Time { return time.Time{} }

// Watch implements Evidence.
func (c *chain) Watch(p Watched) (Fate, error) {
	trace, err := c.view.Watch(p.Package, chainview.Package{
		Anchor: p.Context.Anchor, LookupAnchorSlot: p.Context.LookupAnchorSlot, Prerequisites: p.Context.Prerequisites,
	})
	if err != nil {
		return nil, err
	}
	// Status judges the package for the first time.
	if _, err := c.view.Status(p.Package); err != nil {
		return nil, err
	}
	return &traced{trace, c.view}, nil
}

// Fate implements Evidence.
func (c *chain) Fate(pkg jamq.PackageHash) (Fate, bool) {
	trace, ok := c.view.Trace(pkg)
	return &traced{trace, c.view}, ok
}

// Forget implements Evidence.
func (c *chain) Forget(pkg jamq.PackageHash) { c.view.Forget(pkg) }

// Changes implements Evidence.
func (c *chain) Changes(f func(jamq.PackageHash)) {
	c.view.Changes(func(t *chainview.Trace) { f(t.Package()) })
}

// Blocks implements Evidence.
func (c *chain) Blocks() Blocks { return c }

// AppendSnapshot implements Evidence.
func (c *chain) AppendSnapshot(b []byte) []byte { return c.view.AppendSnapshot(b) }

// Best implements Blocks.
func (c *chain) Best() anchor.Point { return c.view.Best() }

// Finalized implements Blocks.
func (c *chain) Finalized() anchor.Point { return c.view.Finalized() }

// Locate implements Blocks.
func (c *chain) Locate(hash jamq.HeaderHash) (anchor.Point, bool) { return c.view.Locate(hash) }

// Knows implements Blocks.
func (c *chain) Knows(hash jamq.HeaderHash) bool { return c.view.Knows(hash) }

// CoreFree implements Blocks.
func (c *chain) CoreFree(core jamq.CoreIndex) bool { return c.view.CoreFree(core) }

// Anchor implements Evidence's Blocks. It never returns the newest block,
// because the state root of a block is public only when the block has a child
// (rule R1, Gray Paper 11.33).
func (c *chain) Anchor(least anchor.Point, offset int) (anchor.Point, int, bool) {
	best := c.view.Best().Height
	height := best - min(uint64(offset), best)
	if !least.IsZero() {
		height = max(height, least.Height)
	}
	if height >= best {
		return anchor.Point{}, 0, false
	}
	at, ok := c.view.AtHeight(height)
	return at, int(best - height), ok
}

// Follow implements Blocks. A package may omit its predecessor only if the
// predecessor is accumulated on the chain of the package's anchor. Otherwise it
// must name the predecessor, which is possible only while the predecessor's
// report is in recent history (rule R3, Gray Paper 11.39).
func (c *chain) Follow(f Fate, blocks int) Following {
	s := f.Status()
	best := c.view.Best().Height
	done := s.Accumulated
	// If the report's block is unknown, so is whether recent history has it.
	if !done.IsZero() && (done.Height < best || s.Reported.IsZero()) {
		return Following{Possible: true, LeastAnchor: done}
	}
	expired := anchor.PrerequisiteExpired(c.spec, s.Reported, best+uint64(blocks))
	return Following{Possible: !expired, Name: true}
}

// traced is the Fate of a package that a chainview.View follows.
type traced struct {
	trace *chainview.Trace
	view  *chainview.View
}

// Status implements Fate.
func (t *traced) Status() chainview.Status { return t.trace.Status() }

// Standing implements Fate.
func (t *traced) Standing() Standing {
	return Standing{Reported: t.trace.IsReported(), Accumulated: t.trace.IsAccumulated(), Dead: t.trace.Dead()}
}

// Settled implements Fate. A package that is accumulated or dead at the
// finalized block is so on every future chain, because every future chain
// contains that block and a dead package stays dead.
func (t *traced) Settled() Settlement {
	s, final := t.trace.Status(), t.view.Finalized().Height
	switch {
	case !s.Accumulated.IsZero() && s.Accumulated.Height <= final:
		return SettledAccumulated
	case s.Dead != anchor.Alive && s.DeadSince.Height <= final:
		return SettledDead
	}
	return Unsettled
}

// Prerequisites implements Fate.
func (t *traced) Prerequisites() []jamq.PackageHash { return t.trace.Prerequisites() }

// Anchor implements Fate.
func (t *traced) Anchor() (anchor.Point, jamq.Slot) {
	return t.trace.Anchor(), t.trace.LookupAnchorSlot()
}

// Sent implements Fate. It does nothing, because a send is not evidence.
func (t *traced) Sent(time.Time) {}
