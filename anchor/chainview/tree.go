package chainview

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// MaxUnfinalized is how many blocks the tree holds at most, in blocks: over a day of full-rate blocks without finality.
const MaxUnfinalized = 16_384

var (
	// ErrMissingParent is wrapped by Import when the parent is unknown; a [MissingError] names it.
	ErrMissingParent = errors.New("chainview: parent not imported")
	// ErrUnknownBlock is wrapped when a block is named that was never imported or was pruned.
	ErrUnknownBlock = errors.New("chainview: unknown block")
	// ErrConflict is wrapped when a call contradicts finality or the order of slots.
	ErrConflict = errors.New("chainview: block conflicts with the chain")
	// ErrFull is wrapped by Import when finality has stalled for [MaxUnfinalized] blocks.
	ErrFull = errors.New("chainview: too many unfinalized blocks")
)

// MissingError says which block must be imported first. It wraps [ErrMissingParent].
type MissingError struct {
	// Block is the block that was refused, Missing its parent.
	Block, Missing jamq.HeaderHash
}

// Error names both blocks.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%v: block %s needs %s imported first", ErrMissingParent, e.Block, e.Missing)
}

// Unwrap makes errors.Is(err, ErrMissingParent) true.
func (e *MissingError) Unwrap() error { return ErrMissingParent }

// node is a block of the tree with the cores as it leaves them.
type node struct {
	anchor.Point
	parent *node
	// cores is shared with the parent where the block changes none, and never written after the block is in the tree.
	cores []coreState
}

// coreState is the report that occupies a core; a zero package means that the core is free.
type coreState struct {
	pkg   jamq.PackageHash
	since jamq.Slot
}

// View is a tree of blocks with a best chain, and the watched packages' traces in it.
// It is not safe for concurrent use.
type View struct {
	spec      jamq.ChainSpec
	nodes     map[jamq.HeaderHash]*node
	main      []*node // the best chain by height, from the oldest block kept to the best
	finalized *node
	watched   map[jamq.PackageHash]*trace
}

// New returns a view that begins at root, a block that is final and has height 0. What was reported before it is
// unknown; its own Reported and so on are ignored.
func New(spec *jamq.ChainSpec, root jamq.Block) (*View, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if err := root.Validate(spec); err != nil {
		return nil, err
	}
	n := &node{
		Point: anchor.Point{Hash: root.Hash, Slot: root.Slot},
		cores: make([]coreState, spec.Cores),
	}
	return &View{
		spec:      *spec,
		nodes:     map[jamq.HeaderHash]*node{n.Hash: n},
		main:      []*node{n},
		finalized: n,
		watched:   make(map[jamq.PackageHash]*trace),
	}, nil
}

// Import adds a block below its parent. A block that is known already changes nothing.
// It does not become the best block by that: see SetBest.
//
// Errors wrap ErrMissingParent, ErrConflict (its slot is not after its parent's, or its parent is older than the
// finalized block), ErrFull or jamq.ErrInvalidBlock; a refused block changes nothing.
func (v *View) Import(b *jamq.Block) error {
	if _, known := v.nodes[b.Hash]; known {
		return nil
	}
	if err := b.Validate(&v.spec); err != nil {
		return err
	}
	parent, ok := v.nodes[b.Parent]
	if !ok {
		return &MissingError{Block: b.Hash, Missing: b.Parent}
	}
	if b.Slot <= parent.Slot {
		return fmt.Errorf("%w: %s has slot %d, want more than its parent's %d", ErrConflict, b.Hash, b.Slot, parent.Slot)
	}
	if parent.Height < v.finalized.Height {
		return fmt.Errorf("%w: %s forks off before the finalized block %s", ErrConflict, b.Hash, v.finalized.Hash)
	}
	if len(v.nodes) >= MaxUnfinalized {
		return fmt.Errorf("%w: %d blocks held, last finalized %s", ErrFull, len(v.nodes), v.finalized.Hash)
	}
	n := &node{
		Point:  anchor.Point{Hash: b.Hash, Height: parent.Height + 1, Slot: b.Slot},
		parent: parent,
	}
	v.nodes[n.Hash] = n
	v.applyCores(n, b)
	for _, pkg := range b.Accumulated {
		v.see(pkg, accumulated, n.Point)
	}
	return nil
}

// SetBest makes an imported block the head of the best chain. It must descend from the finalized block.
// Errors wrap ErrUnknownBlock or ErrConflict and change nothing.
func (v *View) SetBest(hash jamq.HeaderHash) error {
	n, ok := v.nodes[hash]
	if !ok {
		return fmt.Errorf("%w: best block %s", ErrUnknownBlock, hash)
	}
	if !v.descends(n, v.finalized) {
		return fmt.Errorf("%w: best block %s does not descend from the finalized %s", ErrConflict, hash, v.finalized.Hash)
	}
	var branch []*node // from the new head down to the first block that is on the old chain
	m := n
	for ; !v.onMain(m.Point); m = m.parent {
		branch = append(branch, m)
	}
	slices.Reverse(branch)
	v.main = append(v.main[:m.Height-v.main[0].Height+1], branch...)
	return nil
}

// ImportBest is Import and SetBest in one: both happen or neither.
func (v *View) ImportBest(b *jamq.Block, best jamq.HeaderHash) error {
	if best != b.Hash {
		n, ok := v.nodes[best]
		if !ok {
			return fmt.Errorf("%w: best block %s", ErrUnknownBlock, best)
		}
		if !v.descends(n, v.finalized) {
			return fmt.Errorf("%w: best block %s does not descend from the finalized %s", ErrConflict, best, v.finalized.Hash)
		}
	}
	if err := v.Import(b); err != nil {
		return err
	}
	// Import takes only blocks below the finalized one, and of the known ones best was checked above.
	return v.SetBest(best)
}

// descends reports whether n is below ancestor or the same.
func (v *View) descends(n, ancestor *node) bool {
	for n != nil && n.Height > ancestor.Height {
		n = n.parent
	}
	return n == ancestor
}

// Finalize marks an imported block final and prunes what cannot matter any more. Finality never moves back: an
// ancestor of the finalized block changes nothing. If the block is not on the best chain, it becomes the best block.
// Errors wrap ErrUnknownBlock or ErrConflict and change nothing.
func (v *View) Finalize(hash jamq.HeaderHash) error {
	n, ok := v.nodes[hash]
	if !ok {
		return fmt.Errorf("%w: finalized block %s", ErrUnknownBlock, hash)
	}
	if v.descends(v.finalized, n) {
		return nil
	}
	if !v.descends(n, v.finalized) {
		return fmt.Errorf("%w: finalized block %s does not descend from the finalized %s", ErrConflict, hash, v.finalized.Hash)
	}
	if !v.onMain(n.Point) {
		if err := v.SetBest(hash); err != nil {
			return err
		}
	}
	v.finalized = n
	v.prune()
	return nil
}

// prune drops forks that lost and finalized blocks that no anchor can refer to.
func (v *View) prune() {
	for _, t := range v.watched {
		v.settle(t)
	}
	for hash, n := range v.nodes {
		if !v.onMain(n.Point) && !v.descends(n, v.finalized) {
			delete(v.nodes, hash)
		}
	}
	oldest := v.main[0].Height
	for len(v.main) > 1 && oldest+uint64(v.spec.RecentHistory) < v.finalized.Height {
		delete(v.nodes, v.main[0].Hash)
		v.main = v.main[1:]
		v.main[0].parent = nil
		oldest++
	}
}

// onMain reports whether a block is on the best chain. Blocks older than the oldest kept are final, and traces of
// final forks that lost are gone (see settle), so an older height is on it.
func (v *View) onMain(p anchor.Point) bool {
	base := v.main[0].Height
	if p.Height < base {
		return true
	}
	i := p.Height - base
	return i < uint64(len(v.main)) && v.main[i].Hash == p.Hash
}

// OnBest reports whether a block is on the best chain; a block older than all that are held counts as on it if it was
// when it became final.
func (v *View) OnBest(p anchor.Point) bool { return v.onMain(p) }

// Best returns the head of the best chain.
func (v *View) Best() anchor.Point { return v.main[len(v.main)-1].Point }

// Finalized returns the last finalized block.
func (v *View) Finalized() anchor.Point { return v.finalized.Point }

// AtHeight returns the block of the best chain at a height, and whether the view holds one.
func (v *View) AtHeight(height uint64) (anchor.Point, bool) {
	base := v.main[0].Height
	if height < base || height-base >= uint64(len(v.main)) {
		return anchor.Point{}, false
	}
	return v.main[height-base].Point, true
}

// Locate returns the block with the given hash if it is on the best chain and still held.
func (v *View) Locate(hash jamq.HeaderHash) (anchor.Point, bool) {
	n, ok := v.nodes[hash]
	if !ok || !v.onMain(n.Point) {
		return anchor.Point{}, false
	}
	return n.Point, true
}

// CoreFree reports whether a core can take a report in the block after the best one even if nothing becomes available
// in it, assuming that it is authored in the next slot.
func (v *View) CoreFree(core jamq.CoreIndex) bool {
	best := v.main[len(v.main)-1]
	if int(core) >= len(best.cores) {
		return false
	}
	c := best.cores[core]
	return c.pkg.IsZero() || best.Slot.Add(1) >= c.since.Add(v.spec.AvailabilityTimeout)
}
