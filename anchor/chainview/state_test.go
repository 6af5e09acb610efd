package chainview

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// State is the state of work packages after one block: the parts C(3), C(10),
// C(14) and C(15) of the chain state in the Gray Paper that blocks show. The
// test vectors contain such states. Tests begin a view with one of them, and
// compare the state that the view derives with the next.
type State struct {
	// Recent is the recent history (C(3)), oldest first, with at most H blocks.
	// The last one is the block itself.
	Recent []RecentBlock
	// Cores holds the report on each core (C(10)), by core index. A zero
	// Package means that the core is free.
	Cores []CoreReport
	// Ready is the ready queue (C(14)).
	Ready []ReadyReport
	// Accumulated holds the packages that each of the last E blocks accumulated
	// (C(15)), oldest first.
	Accumulated [][]jamq.PackageHash
}

// RecentBlock is an entry of the recent history.
type RecentBlock struct {
	Hash jamq.HeaderHash
	// Slot is the block's slot. The chain state does not contain it, so 0 means
	// unknown.
	Slot jamq.Slot
	// StateRoot is the state root after the block. It is zero for the newest
	// block, because the next header will be the first to contain it.
	StateRoot common.Hash
	Reported  []ReportedPackage
}

// ReportedPackage is a package in the recent history.
type ReportedPackage struct {
	Package     jamq.PackageHash
	SegmentRoot common.Hash
}

type (
	CoreReport  = coreReport
	ReadyReport = readyReport
)

// NewAt returns a view that begins at root with the given state after it. The
// height of root is the number of earlier blocks in the state.
func NewAt(spec *jamq.ChainSpec, root jamq.Block, s State) (*View, error) {
	v, err := New(spec, root)
	if err != nil {
		return nil, err
	}
	v.main = nil
	count := max(1, len(s.Recent), len(s.Accumulated))
	for i := range count {
		n := &node{Point: anchor.Point{Height: uint64(i)}, contents: &contents{}}
		if i == count-1 {
			n = v.finalized
			n.Height, n.ready = uint64(i), slices.Clone(s.Ready)
			for core, r := range s.Cores {
				if !r.Package.IsZero() {
					n.cores[core] = &r
				}
			}
		}
		if r := i - (count - len(s.Recent)); r >= 0 {
			recent := s.Recent[r]
			n.Hash, n.stateRoot = recent.Hash, recent.StateRoot
			if n != v.finalized {
				n.Slot = recent.Slot
			}
			for _, p := range recent.Reported {
				n.reported = append(n.reported, CoreReport{Package: p.Package, SegmentRoot: p.SegmentRoot})
			}
		}
		if a := i - (count - len(s.Accumulated)); a >= 0 {
			n.accumulated.list = slices.Clone(s.Accumulated[a])
		}
		v.nodes[n.Hash] = n
		v.main = append(v.main, n)
	}
	return v, nil
}

// State returns the state after the best block.
func (v *View) State() State {
	best := v.best()
	s := State{Cores: make([]CoreReport, len(best.cores)), Ready: slices.Clone(best.ready)}
	for i, r := range best.cores {
		if r != nil {
			s.Cores[i] = *r
		}
	}
	for _, n := range v.last(v.spec.RecentHistory) {
		if n.Hash.IsZero() {
			continue // accumulated before recent history
		}
		r := RecentBlock{Hash: n.Hash, Slot: n.Slot}
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

// OnBest reports whether a block is in the tree and on the best chain.
func (v *View) OnBest(p anchor.Point) bool {
	_, ok := v.Locate(p.Hash)
	return ok
}

// FinalStatus returns the outcome of a watched package on the finalized chain.
// The error wraps ErrNotWatched.
func (v *View) FinalStatus(pkg jamq.PackageHash) (Status, error) {
	s, err := v.verdictOn(pkg)
	return s.upTo(v.finalized.Height).status(), err
}

// Holds reports whether a block is in the tree.
func (v *View) Holds(hash jamq.HeaderHash) bool {
	_, ok := v.nodes[hash]
	return ok
}
