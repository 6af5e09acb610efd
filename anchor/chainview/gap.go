package chainview

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jamq/jamq"
)

// ErrUndecided is wrapped by [View.Continue] if a watched package may still be accumulated after
// the new root. A later root decides it.
var ErrUndecided = errors.New("chainview: package is undecided at the new root")

// Continue moves the view to a later final block if the blocks in between are lost to the caller. s
// is the whole state after root: H recent blocks, all cores, the ready queue, and what each of the
// last E blocks accumulated. A chain younger than that is imported from its beginning. accumulated
// names all watched packages that the chain up to root has accumulated; the caller reads them from
// the state of the rollup's service at root.
//
// Every other watched package must be dead at root: neither on a core nor in the ready queue, and
// its anchor has left recent history. The view keeps the watched packages with these outcomes,
// which are final, and forgets all blocks from before.
//
// A package of others that is followed as a prerequisite is followed from root on. If a block up to
// root has reported it, it is not taken for dead any more, because the gap may have made it
// available; its report still expires as a prerequisite.
//
// The error wraps one of these, and a refused root changes nothing:
//   - ErrOld if root is not after the finalized block;
//   - ErrUndecided if a watched package is neither accumulated nor dead at root;
//   - ErrConflict if the view holds root already, or for a state that does not fit or is not whole;
//   - jamq.ErrInvalidBlock.
func (v *View) Continue(root jamq.Block, s State, accumulated []jamq.PackageHash) error {
	if err := s.validate(&v.spec, root); err != nil {
		return err
	}
	if root.Slot <= v.finalized.Slot {
		return fmt.Errorf("%w: root %s of slot %d, finalized is %s of slot %d", ErrOld, root.Hash, root.Slot, v.finalized.Hash, v.finalized.Slot)
	}
	if err := v.wholeState(&s); err != nil {
		return err
	}
	if v.Holds(root.Hash) {
		return fmt.Errorf("%w: root %s is known, want a block behind a gap; use Finalize", ErrConflict, root.Hash)
	}
	v.judge()
	traces := slices.SortedFunc(maps.Values(v.watched), byNumber)
	for _, t := range traces {
		if err := v.decidedAt(&s, t, slices.Contains(accumulated, t.pkg)); err != nil {
			return err
		}
	}
	height := v.forgetTree()
	v.lay(root, s, height+uint64(v.spec.RecentHistory)+1)
	for _, t := range traces {
		v.rebase(t)
		v.decide(t, slices.Contains(accumulated, t.pkg))
		if t.anchor == nil && !v.fateIsFinal(t) {
			// The gap may have changed what became of its report.
			t.partial = t.partial || len(t.sightings) > 0
			v.recall(t)
		}
		v.reconsider(t)
	}
	return nil
}

// wholeState refuses a state that leaves something out: what is missing would count as evidence of
// death.
func (v *View) wholeState(s *State) error {
	have := [3]int{len(s.Recent), len(s.Cores), len(s.Accumulated)}
	want := [3]int{v.spec.RecentHistory, v.spec.Cores, int(v.spec.EpochLength)}
	if have != want {
		return fmt.Errorf("%w: a state of %d recent blocks, %d cores and accumulation of %d blocks, want %d, %d and %d",
			ErrConflict, have[0], have[1], have[2], want[0], want[1], want[2])
	}
	final := v.finalized
	spans := s.Recent[0].Slot != 0 && s.Recent[0].Slot <= final.Slot
	if spans && !slices.ContainsFunc(s.Recent, func(b RecentBlock) bool { return b.Hash == final.Hash }) {
		return fmt.Errorf("%w: recent history goes back to slot %d without the finalized block %s of slot %d", ErrConflict, s.Recent[0].Slot, final.Hash, final.Slot)
	}
	return nil
}

func byNumber(a, b *Trace) int { return cmp.Compare(a.number, b.number) }

// decidedAt reports whether the chain that ends with the state s has decided the fate of a package.
func (v *View) decidedAt(s *State, t *Trace, accumulated bool) error {
	if accumulated || t.anchor == nil || v.fateIsFinal(t) {
		return nil
	}
	is := func(pkg jamq.PackageHash) bool { return pkg == t.pkg }
	switch {
	case slices.ContainsFunc(s.Cores, func(r CoreReport) bool { return is(r.Package) }):
		return fmt.Errorf("%w: %s is on a core", ErrUndecided, t.pkg)
	case slices.ContainsFunc(s.Ready, func(r ReadyReport) bool { return is(r.Package) }):
		return fmt.Errorf("%w: %s is in the ready queue", ErrUndecided, t.pkg)
	case slices.ContainsFunc(s.Recent, func(b RecentBlock) bool { return b.Hash == t.anchor.Hash }):
		return fmt.Errorf("%w: %s can still be reported", ErrUndecided, t.pkg)
	case slices.ContainsFunc(s.Accumulated, func(list []jamq.PackageHash) bool { return slices.ContainsFunc(list, is) }):
		return fmt.Errorf("%w: the state at the root has accumulated %s, and the caller says that it was not", ErrConflict, t.pkg)
	}
	return nil
}

// forgetTree drops all blocks and returns the greatest height among them. It marks those that are
// not final as lost: whether the chain up to the new root contains them is not known.
//
// The new blocks get greater heights, so that all comparisons of heights along the chain stay
// right. The jump is wider than recent history, so every unreported package expires, as it has at
// root.
func (v *View) forgetTree() (highest uint64) {
	lose := func(n *node) {
		n.lost, n.contents = true, nil
		highest = max(highest, n.Height)
	}
	highest = v.finalized.Height
	for _, n := range v.main[v.finalized.Height-v.main[0].Height+1:] {
		lose(n)
	}
	for _, n := range v.side {
		lose(n)
	}
	v.nodes, v.main, v.side = make(map[jamq.HeaderHash]*node), nil, nil
	return highest
}

// rebase makes a trace refer to the new blocks where they are blocks that it referred to before.
func (v *View) rebase(t *Trace) {
	for _, n := range []**node{&t.anchor, &t.verdict.reported, &t.verdict.available, &t.verdict.accumulated, &t.verdict.deadSince} {
		if *n != nil {
			*n = v.sameBlock(*n)
		}
	}
	for i := range t.sightings {
		t.sightings[i].at = v.sameBlock(t.sightings[i].at)
	}
	t.sightings = slices.DeleteFunc(t.sightings, func(s sighting) bool { return s.at.lost })
}

func (v *View) sameBlock(n *node) *node {
	if known, ok := v.nodes[n.Hash]; ok {
		return known
	}
	return n
}

// decide gives a trace the outcome that the caller of Continue told, as if root had brought it.
func (v *View) decide(t *Trace, accumulatedThere bool) {
	add := func(k kind) {
		t.sightings = append(t.sightings, sighting{kind: k, at: v.finalized})
		v.finalized.seen = append(v.finalized.seen, t)
	}
	switch {
	case v.fateIsFinal(t), t.anchor == nil && !accumulatedThere:
	case accumulatedThere:
		// In which block it was reported is known only if the view has seen it.
		t.sightings = slices.DeleteFunc(t.sightings, func(s sighting) bool { return s.kind != reported })
		add(becameAvailable)
		add(accumulated)
	default: // nothing of it is left at root, whether it was reported or not
		t.sightings = slices.DeleteFunc(t.sightings, func(s sighting) bool { return s.kind != reported })
		add(removed)
	}
}
