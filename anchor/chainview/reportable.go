package chainview

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// Why a block cannot report a package. Each is wrapped by [View.Reportable].
var (
	// ErrAnchorNotRecent (R1): the anchor is not one of the last H blocks (GP 11.33).
	ErrAnchorNotRecent = errors.New("chainview: anchor is not recent")
	// ErrAnchorStateRoot (R1): the context gives the anchor another state root than the chain (GP
	// 11.33).
	ErrAnchorStateRoot = errors.New("chainview: wrong state root of the anchor")
	// ErrAnchorBeefyRoot (R1): the context gives it another peak of the accumulation-output log (GP
	// 11.33).
	ErrAnchorBeefyRoot = errors.New("chainview: wrong accumulation-output log of the anchor")
	// ErrLookupAnchor (R1): the lookup anchor is too old or not an ancestor (GP 11.34, 11.35).
	ErrLookupAnchor = errors.New("chainview: lookup anchor is too old or not an ancestor")
	// ErrReportedBefore (R2): the package is in recent history, on a core, in the ready queue or
	// was accumulated within E blocks, or the block reports it twice (GP 11.32, 11.36 to 11.38).
	ErrReportedBefore = errors.New("chainview: package was reported before")
	// ErrPrerequisite (R3): a prerequisite is reported neither in recent history nor in the same
	// block (GP 11.39).
	ErrPrerequisite = errors.New("chainview: prerequisite is not in recent history")
	// ErrSegmentRoot (R3): a segment-root lookup contradicts what the package exported (GP 11.42).
	ErrSegmentRoot = errors.New("chainview: wrong segment root")
	// ErrTooManyDependencies (R3): more than J prerequisites and lookups together (GP 11.3).
	ErrTooManyDependencies = errors.New("chainview: too many dependencies")
	// ErrCoreEngaged (R4): the core holds a report that neither is available nor has timed out, or
	// the block puts two on it (GP 11.24, 11.29).
	ErrCoreEngaged = errors.New("chainview: core is engaged")
	// ErrFutureGuarantee and ErrOldGuarantee (R5): the guarantee's slot is not in this rotation or
	// the last (GP 11.26).
	ErrFutureGuarantee = errors.New("chainview: guarantee is from the future")
	ErrOldGuarantee    = errors.New("chainview: guarantee is from before the last rotation")
)

// Candidate is a report that a block may carry.
type Candidate struct {
	// Package is the reported package.
	Package jamq.PackageHash
	// SegmentRoot is the root of the segments that it exports.
	SegmentRoot common.Hash
	// Core is where it is to go.
	Core jamq.CoreIndex
	// Context is the report's refine context.
	Context jamq.RefineContext
	// Lookups are the segment roots that it takes other packages to have exported.
	Lookups []ReportedPackage
	// GuaranteeSlot is the slot that its guarantors signed with.
	GuaranteeSlot jamq.Slot
}

// Reportable says whether a block in the given slot on top of the best one, which makes the given
// cores available and condemns no report, may carry exactly these candidates, as far as rules R1 to
// R5 decide. Credentials, authorizers, gas and services are outside of what blocks show; the
// anchor's roots are compared only if they are known. A lookup anchor older than all blocks whose
// slot is known is believed.
//
// Nil means reportable. The error wraps the first rule that is broken, in the order of the
// candidates; ErrConflict for a slot that is not after the best block's; or jamq.ErrInvalidBlock
// for a core that does not exist. Cores in available that do not exist are ignored.
func (v *View) Reportable(slot jamq.Slot, available []jamq.CoreIndex, candidates []Candidate) error {
	if best := v.Best(); slot <= best.Slot {
		return fmt.Errorf("%w: slot %d after the best block's %d", ErrConflict, slot, best.Slot)
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

// guaranteeInTime is R5.
func (v *View) guaranteeInTime(slot jamq.Slot, c *Candidate) error {
	oldest, _ := anchor.GuaranteeSlots(&v.spec, slot)
	switch {
	case c.GuaranteeSlot > slot:
		return fmt.Errorf("%w: slot %d", ErrFutureGuarantee, c.GuaranteeSlot)
	case c.GuaranteeSlot < oldest:
		return fmt.Errorf("%w: slot %d, want at least %d", ErrOldGuarantee, c.GuaranteeSlot, oldest)
	}
	return nil
}

// coreIsFree is R4: the core is free, and the block puts nothing else on it.
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

// anchorIsRecent is the first half of R1.
func (v *View) anchorIsRecent(c *Candidate) error {
	for _, n := range v.last(v.spec.RecentHistory) {
		if n.Hash != c.Context.Anchor || n.Hash.IsZero() {
			continue
		}
		if n.stateRoot != (common.Hash{}) && n.stateRoot != c.Context.StateRoot {
			return fmt.Errorf("%w: %s, want %s", ErrAnchorStateRoot, c.Context.StateRoot, n.stateRoot)
		}
		if n.beefyRoot != (common.Hash{}) && n.beefyRoot != c.Context.BeefyRoot {
			return fmt.Errorf("%w: %s, want %s", ErrAnchorBeefyRoot, c.Context.BeefyRoot, n.beefyRoot)
		}
		return nil
	}
	return fmt.Errorf("%w: %s is none of the last %d blocks", ErrAnchorNotRecent, c.Context.Anchor, v.spec.RecentHistory)
}

// lookupAnchorServes is the second half of R1.
func (v *View) lookupAnchorServes(slot jamq.Slot, c *Candidate) error {
	at := c.Context.LookupAnchorSlot
	if anchor.LookupStale(&v.spec, at, slot) {
		return fmt.Errorf("%w: slot %d is more than %d ago", ErrLookupAnchor, at, v.spec.MaxLookupAnchorAge)
	}
	if p, ok := v.Locate(c.Context.LookupAnchor); ok && p.Slot == at {
		return nil
	}
	for _, n := range v.main {
		if n.Slot != 0 {
			if at < n.Slot {
				return nil // before all that is remembered
			}
			break
		}
	}
	return fmt.Errorf("%w: %s of slot %d is not on the chain", ErrLookupAnchor, c.Context.LookupAnchor, at)
}

// isNew is R2.
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

// dependenciesReported is R3.
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
		// One rule: a package that nobody reported has no segments either.
		if root, ok := find(l.Package); !ok || root != l.SegmentRoot {
			return fmt.Errorf("%w: %s of package %s", ErrSegmentRoot, l.SegmentRoot, l.Package)
		}
	}
	return nil
}

// exported looks a package up in recent history.
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
