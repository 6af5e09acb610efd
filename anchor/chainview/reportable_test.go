package chainview

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// This file decides by the state that a view derives whether a block may report
// a package. The tests compare the decision with the public test vectors and
// with the reference, so it shows that the derived state is sufficient.

// The reasons why a block cannot report a package. [View.Reportable] wraps one
// of them.
var (
	// ErrAnchorNotRecent (R1) means that the anchor is not one of the last H
	// blocks (Gray Paper 11.33).
	ErrAnchorNotRecent = errors.New("chainview: anchor is not recent")
	// ErrAnchorStateRoot (R1) means that the context and the chain have
	// different state roots for the anchor (Gray Paper 11.33).
	ErrAnchorStateRoot = errors.New("chainview: wrong state root of the anchor")
	// ErrLookupAnchor (R1) means that the lookup anchor is too old or not an
	// ancestor (Gray Paper 11.34, 11.35).
	ErrLookupAnchor = errors.New("chainview: lookup anchor is too old or not an ancestor")
	// ErrReportedBefore (R2) means that the package is in recent history, on a
	// core, or in the ready queue, or was accumulated within E blocks. It also
	// means that the block reports it twice (Gray Paper 11.32, 11.36 to 11.38).
	ErrReportedBefore = errors.New("chainview: package was reported before")
	// ErrPrerequisite (R3) means that a prerequisite is reported neither in
	// recent history nor in the same block (Gray Paper 11.39).
	ErrPrerequisite = errors.New("chainview: prerequisite is not in recent history")
	// ErrSegmentRoot (R3) means that a segment-root lookup differs from the
	// segment root that the package exported (Gray Paper 11.42).
	ErrSegmentRoot = errors.New("chainview: wrong segment root")
	// ErrTooManyDependencies (R3) means that there are more than J
	// prerequisites and lookups together (Gray Paper 11.3).
	ErrTooManyDependencies = errors.New("chainview: too many dependencies")
	// ErrCoreEngaged (R4) means that the core holds a report that is neither
	// available nor timed out, or that the block puts two reports on it (Gray
	// Paper 11.24, 11.29).
	ErrCoreEngaged = errors.New("chainview: core is engaged")
	// ErrFutureGuarantee (R5) means that the guarantee's slot is after the
	// block's slot (Gray Paper 11.26).
	ErrFutureGuarantee = errors.New("chainview: guarantee is from the future")
	// ErrOldGuarantee (R5) means that the guarantee's slot is before the
	// previous rotation (Gray Paper 11.26).
	ErrOldGuarantee = errors.New("chainview: guarantee is from before the last rotation")
)

// Candidate is a report that a block may contain.
type Candidate struct {
	// Package is the hash of the reported package.
	Package jamq.PackageHash
	// SegmentRoot is the root of the segments that the package exports.
	SegmentRoot common.Hash
	// Core is the core of the report.
	Core jamq.CoreIndex
	// Context is the report's refine context.
	Context jamq.RefineContext
	// Lookups are the segment roots that the report assumes for other packages.
	Lookups []ReportedPackage
	// GuaranteeSlot is the slot of the guarantee.
	GuaranteeSlot jamq.Slot
}

// Reportable reports whether a block in the given slot may contain exactly
// these candidates, according to the rules R1 to R5. The block is a child of
// the best block, makes the given cores available, and condemns no report. A
// nil error means that it may.
//
// Blocks do not show credentials, authorizers, gas and services, so Reportable
// does not check them. It compares the anchor's state root only if it is known. A
// lookup anchor that is older than the oldest known block cannot be checked and
// is accepted.
//
// The error wraps the error of the first violated rule, in the order of the
// candidates. It wraps ErrConflict if slot is not after the best block's slot,
// and jamq.ErrInvalidBlock if a candidate's core does not exist. Cores in
// available that do not exist are ignored.
func (v *View) Reportable(slot jamq.Slot, available []jamq.CoreIndex, candidates []Candidate) error {
	if best := v.Best(); slot <= best.Slot {
		return fmt.Errorf("%w: slot %d, want more than the best block's %d", ErrConflict, slot, best.Slot)
	}
	cores, _, _ := v.best().cores.transition(&v.spec, &jamq.Block{Slot: slot, Available: v.coresThatExist(available)}, nil)
	for i := range candidates {
		c := &candidates[i]
		for _, rule := range []func() error{
			func() error { return v.guaranteeInTime(slot, c) },
			func() error { return coreIsFree(cores, c, candidates[:i]) },
			func() error { return v.anchorIsRecent(c) },
			func() error { return v.lookupAnchorServes(slot, c) },
			func() error { return v.isNew(c, candidates[:i]) },
			func() error { return v.dependenciesReported(c, candidates) },
		} {
			if err := rule(); err != nil {
				return fmt.Errorf("package %s on core %d in slot %d: %w", c.Package, c.Core, slot, err)
			}
		}
	}
	return nil
}

func (v *View) coresThatExist(cores []jamq.CoreIndex) []jamq.CoreIndex {
	return slices.DeleteFunc(slices.Clone(cores), func(c jamq.CoreIndex) bool { return int(c) >= v.spec.Cores })
}

// guaranteeInTime checks rule R5: the guarantee's slot is in this rotation or
// the previous one.
func (v *View) guaranteeInTime(slot jamq.Slot, c *Candidate) error {
	// The previous rotation begins at R·(⌊slot/R⌋-1), or at 0.
	oldest := slot - slot%v.spec.RotationPeriod
	oldest -= min(oldest, v.spec.RotationPeriod)
	switch {
	case c.GuaranteeSlot > slot:
		return fmt.Errorf("%w: slot %d", ErrFutureGuarantee, c.GuaranteeSlot)
	case c.GuaranteeSlot < oldest:
		return fmt.Errorf("%w: slot %d, want at least %d", ErrOldGuarantee, c.GuaranteeSlot, oldest)
	}
	return nil
}

// coreIsFree checks rule R4: the core is free, and the block puts no other
// report on it.
func coreIsFree(cores onCores, c *Candidate, before []Candidate) error {
	if int(c.Core) >= len(cores) {
		return fmt.Errorf("%w: core %d of %d", jamq.ErrInvalidBlock, c.Core, len(cores))
	}
	if r := cores[c.Core]; r != nil {
		return fmt.Errorf("%w: by package %s since slot %d", ErrCoreEngaged, r.Package, r.Since)
	}
	for i := range before {
		if before[i].Core == c.Core {
			return fmt.Errorf("%w: by package %s of the same block", ErrCoreEngaged, before[i].Package)
		}
	}
	return nil
}

// anchorIsRecent checks the first part of rule R1: the anchor is in recent
// history, with the right roots.
func (v *View) anchorIsRecent(c *Candidate) error {
	for _, n := range v.last(v.spec.RecentHistory) {
		if n.Hash != c.Context.Anchor || n.Hash.IsZero() {
			continue
		}
		if n.stateRoot != (common.Hash{}) && n.stateRoot != c.Context.StateRoot {
			return fmt.Errorf("%w: %s, want %s", ErrAnchorStateRoot, c.Context.StateRoot, n.stateRoot)
		}
		return nil
	}
	return fmt.Errorf("%w: %s is not among the last %d blocks", ErrAnchorNotRecent, c.Context.Anchor, v.spec.RecentHistory)
}

// lookupAnchorServes checks the second part of rule R1: the lookup anchor is an
// ancestor and not too old.
func (v *View) lookupAnchorServes(slot jamq.Slot, c *Candidate) error {
	at := c.Context.LookupAnchorSlot
	if slot.Since(at) > v.spec.MaxLookupAnchorAge {
		return fmt.Errorf("%w: slot %d is more than %d ago", ErrLookupAnchor, at, v.spec.MaxLookupAnchorAge)
	}
	if p, ok := v.Locate(c.Context.LookupAnchor); ok && p.Slot == at {
		return nil
	}
	for _, n := range v.main {
		if n.Slot != 0 {
			if at < n.Slot {
				return nil // older than the oldest known block
			}
			break
		}
	}
	return fmt.Errorf("%w: %s of slot %d is not on the chain", ErrLookupAnchor, c.Context.LookupAnchor, at)
}

// isNew checks rule R2: the package was not reported before.
func (v *View) isNew(c *Candidate, before []Candidate) error {
	for i := range before {
		if before[i].Package == c.Package {
			return fmt.Errorf("%w: in the same block", ErrReportedBefore)
		}
	}
	best := v.best()
	if _, found := v.exported(c.Package); found {
		return fmt.Errorf("%w: in recent history", ErrReportedBefore)
	}
	for core, r := range best.cores {
		if r != nil && r.Package == c.Package {
			return fmt.Errorf("%w: on core %d", ErrReportedBefore, core)
		}
	}
	for i := range best.ready {
		if best.ready[i].Package == c.Package {
			return fmt.Errorf("%w: in the ready queue", ErrReportedBefore)
		}
	}
	for _, n := range v.last(int(v.spec.EpochLength)) {
		if n.accumulated.has(c.Package) {
			return fmt.Errorf("%w: accumulated at height %d", ErrReportedBefore, n.Height)
		}
	}
	return nil
}

// dependenciesReported checks rule R3: all dependencies are reported, and not
// too many.
func (v *View) dependenciesReported(c *Candidate, together []Candidate) error {
	if n := len(c.Context.Prerequisites) + len(c.Lookups); n > v.spec.MaxDependencies {
		return fmt.Errorf("%w: %d, want at most %d", ErrTooManyDependencies, n, v.spec.MaxDependencies)
	}
	find := func(pkg jamq.PackageHash) (common.Hash, bool) {
		for i := range together {
			if together[i].Package == pkg {
				return together[i].SegmentRoot, true
			}
		}
		return v.exported(pkg)
	}
	for _, need := range c.Context.Prerequisites {
		if _, ok := find(need); !ok {
			return fmt.Errorf("%w: %s", ErrPrerequisite, need)
		}
	}
	for _, l := range c.Lookups {
		// A package that was not reported has no segments.
		if root, ok := find(l.Package); !ok || root != l.SegmentRoot {
			return fmt.Errorf("%w: %s of package %s", ErrSegmentRoot, l.SegmentRoot, l.Package)
		}
	}
	return nil
}

// exported returns the segment root of a package in recent history, and false
// if the package is not there.
func (v *View) exported(pkg jamq.PackageHash) (common.Hash, bool) {
	for _, n := range v.last(v.spec.RecentHistory) {
		for i := range n.reported {
			if n.reported[i].Package == pkg {
				return n.reported[i].SegmentRoot, true
			}
		}
	}
	return common.Hash{}, false
}
