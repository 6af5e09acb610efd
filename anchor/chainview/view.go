package chainview

import (
	"slices"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// Best returns the head of the best chain.
func (v *View) Best() anchor.Point { return v.best().Point }

// Finalized returns the last finalized block.
func (v *View) Finalized() anchor.Point { return v.finalized.Point }

// Holds reports whether a block is in the tree.
func (v *View) Holds(hash jamq.HeaderHash) bool {
	_, ok := v.nodes[hash]
	return ok
}

// Knows reports whether a block is in the tree, or was removed from it with an
// abandoned fork. The view remembers a limited number of removed blocks.
func (v *View) Knows(hash jamq.HeaderHash) bool {
	return v.Holds(hash) || slices.Contains(v.abandoned, hash)
}

// AtHeight returns the block of the best chain at a height, and false if it is
// not in the tree.
func (v *View) AtHeight(height uint64) (anchor.Point, bool) {
	base := v.main[0].Height
	if height < base || height-base >= uint64(len(v.main)) || v.main[height-base].Hash.IsZero() {
		return anchor.Point{}, false
	}
	return v.main[height-base].Point, true
}

// Locate returns the block with the given hash, and false if it is not in the
// tree or not on the best chain.
func (v *View) Locate(hash jamq.HeaderHash) (anchor.Point, bool) {
	n, ok := v.nodes[hash]
	if !ok || !v.onMain(n) {
		return anchor.Point{}, false
	}
	return n.Point, true
}

// OnBest reports whether a block is in the tree and on the best chain.
func (v *View) OnBest(p anchor.Point) bool {
	_, ok := v.Locate(p.Hash)
	return ok
}

// CoreFree reports whether a core can take a report in the block after the best
// one, even if no report becomes available in that block. It assumes that the
// block is authored in the next slot (Gray Paper 11.29).
func (v *View) CoreFree(core jamq.CoreIndex) bool {
	best := v.best()
	if int(core) >= len(best.cores) {
		return false
	}
	r := best.cores[core]
	return r == nil || best.Slot.Add(1) >= r.Since.Add(v.spec.AvailabilityTimeout)
}

// State returns the state after the best block. It shares no memory with the
// view.
func (v *View) State() State {
	best := v.best()
	s := State{Cores: make([]CoreReport, len(best.cores)), Ready: slices.Clone(best.ready)}
	for i, r := range best.cores {
		if r != nil {
			s.Cores[i] = *r
			s.Cores[i].Needs = slices.Clone(r.Needs)
		}
	}
	for i := range s.Ready {
		s.Ready[i].Unmet = slices.Clone(s.Ready[i].Unmet)
	}
	for _, n := range v.last(v.spec.RecentHistory) {
		if n.Hash.IsZero() {
			continue
		}
		r := RecentBlock{Hash: n.Hash, Slot: n.Slot, BeefyRoot: n.beefyRoot}
		if n != best {
			r.StateRoot = n.stateRoot
		}
		for _, report := range n.reported {
			r.Reported = append(r.Reported, ReportedPackage{Package: report.Package, SegmentRoot: report.SegmentRoot})
		}
		s.Recent = append(s.Recent, r)
	}
	for _, n := range v.last(int(v.spec.EpochLength)) {
		s.Accumulated = append(s.Accumulated, slices.Clone(n.accumulated.list))
	}
	return s
}

// last returns the newest n blocks of the best chain, oldest first.
func (v *View) last(n int) []*node { return v.main[max(0, len(v.main)-n):] }
