package chainview

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/internal/wire"
)

// AppendSnapshot appends an encoding of the whole view to b, which [Restore]
// decodes. Equal views have equal snapshots. The encoding has no version and no
// checksum, so the caller must add them if it stores the snapshot. Call
// [View.Changes] first: a snapshot does not contain the changes that Changes has
// not reported yet.
func (v *View) AppendSnapshot(b []byte) []byte {
	v.judge()
	b = wire.AppendUint(b, v.main[0].Height)
	b = wire.AppendUint(b, uint64(len(v.main)))
	b = wire.AppendUint(b, v.finalized.Height-v.main[0].Height)
	for _, n := range v.main {
		b = v.appendNode(b, n)
	}
	b = wire.AppendUint(b, uint64(len(v.side)))
	for _, n := range v.side {
		b = wire.AppendHash(b, n.parent.Hash)
		b = v.appendNode(b, n)
	}
	b = wire.AppendHashes(b, v.abandoned)
	b = wire.AppendHashes(b, v.past)
	b = v.appendGraves(b)
	b = wire.AppendUint(b, v.lastWatched)
	traces := slices.SortedFunc(maps.Values(v.traces), byNumber)
	b = wire.AppendUint(b, uint64(len(traces)))
	for _, t := range traces {
		b = appendTrace(b, t)
	}
	return b
}

func (v *View) appendNode(b []byte, n *node) []byte {
	b = wire.AppendHash(b, n.Hash)
	b = wire.AppendUint(b, uint64(n.Slot))
	b = wire.AppendHash(b, n.stateRoot)
	b = wire.AppendHashes(b, n.accumulated.list)
	b = wire.AppendUint(b, uint64(len(n.reported)))
	for i := range n.reported {
		b = appendReport(b, &n.reported[i])
	}
	if n.cores == nil {
		return b // below the finalized block
	}
	var before onCores
	if n.parent != nil {
		before = n.parent.cores
	}
	// Only the differences between these cores and those of the parent are stored.
	changed := 0
	differs := func(core int) bool {
		return before == nil && n.cores[core] != nil || before != nil && before[core] != n.cores[core]
	}
	for core := range n.cores {
		if differs(core) {
			changed++
		}
	}
	b = wire.AppendUint(b, uint64(changed))
	for core, r := range n.cores {
		if differs(core) {
			b = wire.AppendUint(b, uint64(core))
			b = wire.AppendBool(b, r != nil)
			if r != nil {
				b = appendReport(b, r)
			}
		}
	}
	return appendReady(b, n.ready)
}

func appendReady(b []byte, ready []readyReport) []byte {
	b = wire.AppendUint(b, uint64(len(ready)))
	for _, r := range ready {
		b = wire.AppendHash(b, r.Package)
		b = wire.AppendUint(b, uint64(r.Since))
		b = wire.AppendHashes(b, r.Unmet)
	}
	return b
}

func readReady(r *wire.Reader) []readyReport {
	count := r.Count(32)
	if count == 0 {
		return nil
	}
	ready := make([]readyReport, count)
	for i := range ready {
		ready[i] = readyReport{Package: wire.ReadHash[jamq.PackageHash](r), Since: readSlot(r), Unmet: wire.ReadHashes[jamq.PackageHash](r)}
	}
	return ready
}

func appendReport(b []byte, r *coreReport) []byte {
	b = wire.AppendHash(b, r.Hash)
	b = wire.AppendHash(b, r.Package)
	b = wire.AppendHash(b, r.SegmentRoot)
	b = wire.AppendUint(b, uint64(r.Since))
	return wire.AppendHashes(b, r.Needs)
}

func appendTrace(b []byte, t *Trace) []byte {
	b = wire.AppendUint(b, t.number)
	b = wire.AppendHash(b, t.pkg)
	b = wire.AppendBool(b, t.partial)
	b = wire.AppendBool(b, t.forgotten)
	b = wire.AppendBool(b, t.anchor != nil)
	if t.anchor != nil {
		b = appendRef(b, t.anchor)
	}
	b = wire.AppendUint(b, uint64(t.lookupAnchorSlot))
	b = wire.AppendHashes(b, t.prerequisites)
	b = wire.AppendUint(b, uint64(len(t.sightings)))
	for _, s := range t.sightings {
		b = wire.AppendUint(b, uint64(s.kind))
		b = appendRef(b, s.at)
	}
	for _, n := range []*node{t.verdict.reported, t.verdict.available, t.verdict.accumulated, t.verdict.deadSince} {
		b = wire.AppendBool(b, n != nil)
		if n != nil {
			b = appendRef(b, n)
		}
	}
	return wire.AppendUint(b, uint64(t.verdict.dead))
}

func appendPoint(b []byte, p anchor.Point) []byte {
	b = wire.AppendHash(b, p.Hash)
	b = wire.AppendUint(b, p.Height)
	return wire.AppendUint(b, uint64(p.Slot))
}

// appendRef appends a reference to a block. Besides the hash it contains the height and
// the slot, because Restore cannot look these up for a block that was pruned from the
// tree.
func appendRef(b []byte, n *node) []byte { return wire.AppendBool(appendPoint(b, n.Point), n.lost) }

// ErrCorrupt is wrapped by the error of Restore if the bytes are not a snapshot of a view.
var ErrCorrupt = errors.New("chainview: corrupt snapshot")

// Restore returns the view that [View.AppendSnapshot] has encoded in a snapshot.
// spec must be the same as for the original view. The error wraps ErrCorrupt or
// jamq.ErrInvalidSpec. Restore does not panic, even if the bytes are arbitrary.
func Restore(spec *jamq.ChainSpec, snapshot []byte) (*View, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	r := wire.NewReader(snapshot)
	v := read(spec, r)
	if err := r.Done(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return v, nil
}

func read(spec *jamq.ChainSpec, r *wire.Reader) *View {
	v := &View{spec: *spec, nodes: make(map[jamq.HeaderHash]*node), traces: make(map[jamq.PackageHash]*Trace)}
	v.readTree(r)
	if r.Err() != nil {
		return nil
	}
	v.abandoned = wire.ReadHashes[jamq.HeaderHash](r)
	v.past = wire.ReadHashes[jamq.HeaderHash](r)
	v.readGraves(r)
	v.lastWatched = r.Uint()
	pruned := make(map[anchor.Point]*node)
	for range r.Count(32) {
		v.readTrace(r, pruned)
	}
	if r.Err() != nil {
		return nil
	}
	for _, t := range slices.SortedFunc(maps.Values(v.traces), byNumber) {
		v.link(t)
	}
	v.judge()
	for _, t := range v.agenda.changed {
		r.Fail("status of package %s contradicts its blocks", t.pkg)
	}
	return v
}

func (v *View) readTree(r *wire.Reader) {
	base, count := r.Uint(), r.Count(32)
	final := int(r.UintBelow(uint64(max(count, 1)), "place of the finalized block"))
	if count == 0 || base > 1<<62 {
		r.Fail("%d blocks from height %d", count, base)
	}
	for i := 0; i < count && r.Err() == nil; i++ {
		var parent *node
		if i > final {
			parent = v.main[i-1]
		}
		n := v.readNode(r, base+uint64(i), parent, i >= final)
		v.main = append(v.main, n)
		if i == final {
			v.finalized = n
		}
	}
	for range r.Count(32) {
		hash := wire.ReadHash[jamq.HeaderHash](r)
		parent, ok := v.nodes[hash]
		if !ok || parent.cores == nil {
			r.Fail("side block without a parent")
			return
		}
		v.side = append(v.side, v.readNode(r, parent.Height+1, parent, true))
	}
}

func (v *View) readNode(r *wire.Reader, height uint64, parent *node, withState bool) *node {
	n := &node{contents: &contents{parent: parent}}
	n.Height = height
	n.Hash = wire.ReadHash[jamq.HeaderHash](r)
	n.Slot = readSlot(r)
	n.stateRoot = wire.ReadHash[common.Hash](r)
	n.accumulated.list = wire.ReadHashes[jamq.PackageHash](r)
	if count := r.Count(32); count > 0 {
		n.reported = make([]coreReport, count)
		for i := range n.reported {
			n.reported[i] = readReport(r)
		}
	}
	if _, twice := v.nodes[n.Hash]; twice || n.Hash.IsZero() || parent != nil && n.Slot <= parent.Slot {
		r.Fail("block %s does not fit", n.Hash)
	}
	if withState {
		n.cores = make(onCores, v.spec.Cores)
		if parent != nil {
			copy(n.cores, parent.cores)
		}
		v.readState(r, n)
	}
	if r.Err() == nil {
		v.nodes[n.Hash] = n
	}
	return n
}

func (v *View) readState(r *wire.Reader, n *node) {
	for range r.Count(2) {
		core := r.UintBelow(uint64(v.spec.Cores), "core")
		n.cores[core] = nil
		if r.Bool() {
			report := readReport(r)
			n.cores[core] = &report
		}
	}
	n.ready = readReady(r)
}

func readReport(r *wire.Reader) coreReport {
	return coreReport{
		Hash:        wire.ReadHash[common.Hash](r),
		Package:     wire.ReadHash[jamq.PackageHash](r),
		SegmentRoot: wire.ReadHash[common.Hash](r),
		Since:       readSlot(r),
		Needs:       wire.ReadHashes[jamq.PackageHash](r),
	}
}

func (v *View) readTrace(r *wire.Reader, pruned map[anchor.Point]*node) {
	t := &Trace{number: r.Uint(), pkg: wire.ReadHash[jamq.PackageHash](r)}
	t.partial, t.forgotten = r.Bool(), r.Bool()
	if r.Bool() {
		t.anchor = v.readRef(r, pruned)
	}
	t.lookupAnchorSlot = readSlot(r)
	t.prerequisites = wire.ReadHashes[jamq.PackageHash](r)
	for range r.Count(32) {
		k := kind(r.UintBelow(uint64(accumulated)+1, "kind of sighting"))
		t.sightings = append(t.sightings, sighting{kind: k, at: v.readRef(r, pruned)})
	}
	for _, n := range []**node{&t.verdict.reported, &t.verdict.available, &t.verdict.accumulated, &t.verdict.deadSince} {
		if r.Bool() {
			*n = v.readRef(r, pruned)
		}
	}
	t.verdict.dead = anchor.Reason(r.UintBelow(uint64(anchor.NeverReady)+1, "reason"))
	if (t.verdict.dead != anchor.Alive) != (t.verdict.deadSince != nil) {
		r.Fail("package %s is dead without evidence", t.pkg)
	}
	if _, twice := v.traces[t.pkg]; twice || t.number > v.lastWatched {
		r.Fail("package %s does not fit", t.pkg)
	}
	if r.Err() != nil {
		return
	}
	v.register(t)
	if t.verdict.dead != anchor.Alive {
		// Do not judge it again: its evidence may have been pruned.
		v.agenda.turns.Remove(&t.turn)
	}
}

// readRef reads a reference to a block and returns the block.
func (v *View) readRef(r *wire.Reader, pruned map[anchor.Point]*node) *node {
	p, lost := readPoint(r), r.Bool()
	if n, ok := v.nodes[p.Hash]; ok {
		if n.Point != p || lost {
			r.Fail("block %s differs from its reference", p.Hash)
		}
		return n
	}
	if n, ok := pruned[p]; ok && n.lost == lost {
		return n
	}
	n := &node{Point: p, lost: lost}
	// The snapshot no longer contains this block, because it was pruned. Create one node for
	// it, and return the same node for every later reference to the block: the view compares
	// blocks by pointer.
	pruned[p] = n
	return n
}

func readPoint(r *wire.Reader) anchor.Point {
	return anchor.Point{Hash: wire.ReadHash[jamq.HeaderHash](r), Height: r.Uint(), Slot: readSlot(r)}
}

func readSlot(r *wire.Reader) jamq.Slot {
	return jamq.Slot(r.UintBelow(uint64(jamq.MaxSlot)+1, "slot"))
}
