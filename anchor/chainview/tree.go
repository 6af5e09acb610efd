package chainview

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// MaxUnfinalized is the maximum number of blocks in the tree that are not final. It
// bounds the memory of a view while finality stalls. With one block every six
// seconds, the tree is full after a little more than a day.
const MaxUnfinalized = 16_384

var (
	// ErrMissingParent is wrapped by the error of Import if the parent of the block is unknown.
	// The error is a [MissingError].
	ErrMissingParent = errors.New("chainview: parent not imported")
	// ErrUnknownBlock is wrapped by errors about a block that was never imported or was pruned.
	ErrUnknownBlock = errors.New("chainview: unknown block")
	// ErrConflict is wrapped if a block does not descend from the finalized block, or if its
	// slot is not after the slot of its parent.
	ErrConflict = errors.New("chainview: block conflicts with the chain")
	// ErrOld is wrapped if a block cannot descend from the finalized block, or is one of its
	// ancestors. The caller may ignore the error, because such a block has no effect on the
	// best chain.
	ErrOld = errors.New("chainview: older than the finalized block")
	// ErrFull is wrapped by the error of Import if the tree already contains [MaxUnfinalized]
	// blocks that are not final.
	ErrFull = errors.New("chainview: too many unfinalized blocks")
)

// MissingError is the error of Import if the parent of a block must be imported first. It wraps
// [ErrMissingParent].
type MissingError struct {
	// Block is the refused block, and Missing is its parent.
	Block, Missing jamq.HeaderHash
}

// Error returns a message with both hashes.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%v: block %s needs %s imported first", ErrMissingParent, e.Block, e.Missing)
}

// Unwrap returns [ErrMissingParent].
func (e *MissingError) Unwrap() error { return ErrMissingParent }

// node is a block of the tree. A trace may refer to a node long after the block was
// pruned. The node itself is therefore small, and its contents are a separate value
// that the view frees when it prunes the block.
type node struct {
	anchor.Point
	*contents
	// lost is true if the view has dropped the block with its fork.
	lost bool
}

// contents contains the reports in a block and the state after the block. Blocks share
// the unchanged parts of the state with their children, so the state is never modified.
type contents struct {
	parent    *node       // nil if the block is final
	stateRoot common.Hash // zero until the first child is imported

	reported    []coreReport
	accumulated packageSet
	cores       onCores       // nil below the finalized block
	ready       []readyReport // nil below the finalized block

	seen []*Trace // traces of the packages with an event in this block
}

// View is a tree of JAM blocks with a best chain. It computes the outcome of each
// watched package from these blocks. Create it with [New] or [Restore]. It is not
// safe for concurrent use.
type View struct {
	spec  jamq.ChainSpec
	nodes map[jamq.HeaderHash]*node
	// main is the best chain, from the oldest known block on.
	main []*node
	// side has the blocks of all other forks. They are sorted, so that two views of the same
	// tree have equal snapshots, even if they imported the blocks in different orders.
	side      []*node
	finalized *node
	// abandoned has the hashes of the newest blocks on abandoned forks, oldest first.
	abandoned []jamq.HeaderHash
	// past has the hashes of the newest final blocks that were pruned, oldest first.
	past []jamq.HeaderHash
	// graves has the packages that were dead when the host forgot them, oldest first.
	// If the chain accumulates one of them, it goes to contradictions until the host
	// takes it.
	graves         []grave
	contradictions []jamq.PackageHash

	traces      map[jamq.PackageHash]*Trace
	lastWatched uint64 // number of the newest Trace
	agenda      agenda
}

// New returns a view whose first block is root, which must be final and gets height 0. The
// view assumes that no report is on a core and that the ready queue is empty after root,
// so it knows nothing of packages that were reported earlier. Errors wrap
// jamq.ErrInvalidSpec or jamq.ErrInvalidBlock.
func New(spec *jamq.ChainSpec, root jamq.Block) (*View, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if err := root.Validate(spec); err != nil {
		return nil, err
	}
	n := &node{Point: anchor.Point{Hash: root.Hash, Slot: root.Slot}, contents: &contents{cores: make(onCores, spec.Cores)}}
	return &View{
		spec:      *spec,
		nodes:     map[jamq.HeaderHash]*node{root.Hash: n},
		main:      []*node{n},
		finalized: n,
		traces:    make(map[jamq.PackageHash]*Trace),
	}, nil
}

// Import adds a block to the tree, as a child of its parent. It does nothing if the
// tree already contains the block. Import does not change the best block: see
// [View.SetBest].
//
// If Import fails, the view is unchanged, and the error wraps one of these errors:
//
//   - [ErrOld] if the block cannot descend from the finalized block: its slot is
//     not later, or the block or its parent is older or on an abandoned fork. Call
//     [View.Abandon], so that the view recognizes the descendants of the block as
//     old too.
//   - [ErrMissingParent] if the parent is unknown and must be imported first
//   - [ErrConflict] if the slot is not after the slot of the parent
//   - [ErrFull] if there are too many unfinalized blocks
//   - [jamq.ErrInvalidBlock] if the block is invalid
func (v *View) Import(b *jamq.Block) error {
	if _, known := v.nodes[b.Hash]; known {
		return nil
	}
	if err := b.Validate(&v.spec); err != nil {
		return err
	}
	parent, ok := v.nodes[b.Parent]
	switch {
	case ok && b.Slot <= parent.Slot:
		return fmt.Errorf("%w: %s has slot %d, want more than its parent's %d", ErrConflict, b.Hash, b.Slot, parent.Slot)
	case ok && parent.Height < v.finalized.Height, slices.Contains(v.abandoned, b.Hash),
		!ok && (b.Slot <= v.finalized.Slot || slices.Contains(v.abandoned, b.Parent)):
		return fmt.Errorf("%w: block %s of slot %d, finalized is %s of slot %d", ErrOld, b.Hash, b.Slot, v.finalized.Hash, v.finalized.Slot)
	case !ok:
		return &MissingError{Block: b.Hash, Missing: b.Parent}
	}
	if v.unfinalized() >= MaxUnfinalized {
		return fmt.Errorf("%w: %d blocks held, last finalized %s", ErrFull, v.unfinalized(), v.finalized.Hash)
	}
	n := &node{
		Point:    anchor.Point{Hash: b.Hash, Height: parent.Height + 1, Slot: b.Slot},
		contents: &contents{parent: parent, reported: reportsOf(b)},
	}
	if parent.stateRoot == (common.Hash{}) {
		parent.stateRoot = b.ParentStateRoot
	}
	v.apply(n, b)
	v.nodes[n.Hash] = n
	i, _ := slices.BinarySearchFunc(v.side, n, byHeight)
	v.side = slices.Insert(v.side, i, n)
	return nil
}

// byHeight orders blocks by height, and blocks of the same height by hash.
func byHeight(a, b *node) int {
	return cmp.Or(cmp.Compare(a.Height, b.Height), bytes.Compare(a.Hash[:], b.Hash[:]))
}

// unfinalized returns the number of blocks in the tree that are not final.
func (v *View) unfinalized() int {
	return len(v.side) + int(v.Best().Height-v.finalized.Height)
}

// reportsOf returns the reports of a block's guarantees.
func reportsOf(b *jamq.Block) []coreReport {
	if len(b.Reported) == 0 {
		return nil
	}
	out := make([]coreReport, len(b.Reported))
	for i := range b.Reported {
		r := &b.Reported[i]
		out[i] = coreReport{Hash: r.Hash, Package: r.Package, SegmentRoot: r.SegmentRoot, Needs: slices.Clone(r.Prerequisites), Since: b.Slot}
	}
	return out
}

// apply computes the state after a block, and records its events about followed
// packages.
func (v *View) apply(n *node, b *jamq.Block) {
	cores, available, removedReports := n.parent.cores.transition(&v.spec, b, n.reported)
	a := accumulate(&v.spec, b, n.parent.ready, available, func(pkg jamq.PackageHash) bool {
		return v.accumulatedBefore(n, pkg)
	})
	n.cores, n.ready, n.accumulated.list = cores, a.ready, a.done
	if len(v.traces) == 0 {
		return
	}
	for _, r := range removedReports {
		v.see(r.Package, removed, n)
	}
	for _, r := range available {
		v.see(r.Package, becameAvailable, n)
	}
	for i := range n.reported {
		v.see(n.reported[i].Package, reported, n)
	}
	for _, pkg := range a.done {
		v.see(pkg, accumulated, n)
	}
}

// descends reports whether block n is ancestor or descends from it.
func (v *View) descends(n, ancestor *node) bool {
	if ancestor.lost || ancestor.Height > n.Height {
		return false
	}
	for n.Height > ancestor.Height && !v.onMain(n) {
		n = n.parent
	}
	if n.Height > ancestor.Height {
		return v.onMain(ancestor)
	}
	return n == ancestor
}

// SetBest makes an imported block the head of the best chain. The block must be the
// finalized block or one of its descendants. If SetBest fails, the view is
// unchanged, and the error wraps one of these errors:
//
//   - ErrUnknownBlock if the block is not in the tree
//   - ErrOld if the block is an ancestor of the finalized block
//   - ErrConflict if the block is on a fork that the finalized block excludes
func (v *View) SetBest(hash jamq.HeaderHash) error {
	n, err := v.candidate(hash)
	if err != nil {
		return err
	}
	v.setBest(n)
	return nil
}

// candidate returns the block with a hash if it can become the best one. Otherwise it
// returns the error of SetBest.
func (v *View) candidate(hash jamq.HeaderHash) (*node, error) {
	n, ok := v.nodes[hash]
	if !ok {
		return nil, fmt.Errorf("%w: best block %s", ErrUnknownBlock, hash)
	}
	switch {
	case v.descends(n, v.finalized):
		return n, nil
	case v.descends(v.finalized, n):
		return nil, fmt.Errorf("%w: best block %s of height %d, finalized is %s of height %d", ErrOld, hash, n.Height, v.finalized.Hash, v.finalized.Height)
	}
	return nil, fmt.Errorf("%w: best block %s does not descend from the finalized %s", ErrConflict, hash, v.finalized.Hash)
}

func (v *View) setBest(n *node) {
	old := v.best()
	var branch []*node // blocks that join the best chain
	m := n
	for ; !v.onMain(m); m = m.parent {
		branch = append(branch, m)
	}
	slices.Reverse(branch)
	keep := int(m.Height-v.main[0].Height) + 1
	left := slices.Clone(v.main[keep:])
	v.main = append(v.main[:keep], branch...)
	for _, joined := range branch {
		v.searchGraves(joined)
	}
	v.side = append(slices.DeleteFunc(v.side, v.onMain), left...)
	slices.SortFunc(v.side, byHeight)
	switch {
	case m != old:
		v.reconsiderAll()
	case m != n:
		// The best chain now continues on a fork whose blocks may have been imported long ago.
		// The events in these blocks did not count until now, so the packages in them are
		// judged again.
		for _, joined := range branch {
			for _, t := range joined.seen {
				if v.traces[t.pkg] == t {
					v.reconsider(t)
				}
			}
		}
		v.reconsiderDue()
	}
}

// ImportBest imports a block and then sets the best block, like Import followed by
// SetBest. If it fails, the view is unchanged.
//
// There is one difference. If the block is already in the tree, ImportBest never
// moves the best block back to one of its ancestors. The reason is that a feed that
// starts again may name each old block in turn as the best one. ImportBest can
// still move the best chain to another fork.
func (v *View) ImportBest(b *jamq.Block, best jamq.HeaderHash) error {
	_, known := v.nodes[b.Hash]
	if known || best != b.Hash {
		head, err := v.candidate(best)
		if err != nil {
			return err
		}
		if known && v.onMain(head) {
			return nil
		}
	}
	if err := v.Import(b); err != nil {
		return err
	}
	// The block is imported, so nothing may fail from here on. SetBest cannot: if best is an
	// older block, candidate has already checked it.
	v.setBest(v.nodes[best])
	return nil
}

// onMain reports whether a block is on the best chain.
func (v *View) onMain(n *node) bool {
	base := v.main[0].Height
	if n.Height < base {
		return !n.lost // final and pruned
	}
	i := n.Height - base
	return i < uint64(len(v.main)) && v.main[i] == n
}

func (v *View) best() *node { return v.main[len(v.main)-1] }
