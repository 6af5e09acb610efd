package chainview

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jamq/jamq"
)

// ErrUndecided is wrapped by [View.Continue] if a watched package may still be
// accumulated after the new root. Try a later root.
var ErrUndecided = errors.New("chainview: package is undecided at the new root")

// Continue moves the view to a later final block if the blocks in between are
// not available. s is the complete state after root: H recent blocks, all
// cores, the ready queue, and the packages that each of the last E blocks
// accumulated. A chain with fewer blocks must be imported from its beginning.
// accumulated lists all watched packages that the chain up to root has
// accumulated; the caller reads them from the state of the rollup's service at
// root.
//
// Every other watched package must be dead at root: it is neither on a core nor
// in the ready queue, and its anchor has left recent history. The view keeps
// the watched packages with these final outcomes, and forgets all earlier
// blocks.
//
// A prerequisite that is not watched (see [View.Watch]) is followed from root
// on, and so is a forgotten package whose outcome was not final. If an earlier
// block reported it, it does not count as dead any more, because it may have
// become available in the gap. Its report can still expire as a prerequisite.
//
// The error wraps one of these errors; the view is then unchanged:
//
//   - [ErrOld] if root is not after the finalized block
//   - [ErrUndecided] if a watched package is neither accumulated nor dead at
//     root
//   - [ErrConflict] if root is already in the tree, or if s is incomplete or
//     does not fit
//   - [jamq.ErrInvalidBlock] if root is invalid
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
		return fmt.Errorf("%w: root %s is in the tree, want a block after a gap; use Finalize", ErrConflict, root.Hash)
	}
	v.judge()
	traces := slices.SortedFunc(maps.Values(v.traces), byNumber)
	for _, t := range traces {
		if err := v.decidedAt(&s, t, slices.Contains(accumulated, t.pkg)); err != nil {
			return err
		}
	}
	height := v.forgetTree()
	v.lay(root, s, height+uint64(v.spec.RecentHistory)+1)
	for _, t := range traces {
		v.rebase(t)
		if t.forgotten && !v.fateIsFinal(t) {
			// Its outcome in the gap is not known, like that of other prerequisites.
			v.disown(t)
		}
		if v.traces[t.pkg] != t {
			continue // no package needs it any more
		}
		v.decide(t, slices.Contains(accumulated, t.pkg))
		if !t.watched() && !v.fateIsFinal(t) {
			// The gap may have changed the outcome of its report.
			t.partial = t.partial || len(t.sightings) > 0
			v.recall(t)
		}
		v.reconsider(t)
	}
	return nil
}

// wholeState returns an error if a state is incomplete. Missing parts would
// count as evidence of death.
func (v *View) wholeState(s *State) error {
	have := [3]int{len(s.Recent), len(s.Cores), len(s.Accumulated)}
	want := [3]int{v.spec.RecentHistory, v.spec.Cores, int(v.spec.EpochLength)}
	if have != want {
		return fmt.Errorf("%w: state of %d recent blocks, %d cores and accumulation of %d blocks, want %d, %d and %d",
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

// decidedAt returns an error if the chain that ends with the state s has not
// decided the fate of a package.
func (v *View) decidedAt(s *State, t *Trace, accumulated bool) error {
	if accumulated || !t.watched() || v.fateIsFinal(t) {
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
		return fmt.Errorf("%w: the state has accumulated %s, but the caller's list does not contain it", ErrConflict, t.pkg)
	}
	return nil
}

// forgetTree removes all blocks and returns their greatest height. It marks the
// blocks that are not final as lost, because the chain up to the new root may
// not contain them.
//
// The new blocks get greater heights, so that all comparisons of heights stay
// correct. The difference is greater than recent history, so that every
// unreported package expires, as it has at root.
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

// rebase replaces old blocks in a trace by the new blocks with the same hash.
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

// decide gives a trace the outcome that the caller of Continue reported, as if
// the root had caused it.
func (v *View) decide(t *Trace, accumulatedThere bool) {
	add := func(k kind) {
		t.sightings = append(t.sightings, sighting{kind: k, at: v.finalized})
		v.finalized.seen = append(v.finalized.seen, t)
	}
	switch {
	case v.fateIsFinal(t), !t.watched() && !accumulatedThere:
	case accumulatedThere:
		// The block that reported it is known only if the view has seen it.
		t.sightings = slices.DeleteFunc(t.sightings, func(s sighting) bool { return s.kind != reported })
		add(becameAvailable)
		add(accumulated)
	default: // dead at root
		t.sightings = slices.DeleteFunc(t.sightings, func(s sighting) bool { return s.kind != reported })
		add(removed)
	}
}
