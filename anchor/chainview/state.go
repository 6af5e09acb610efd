package chainview

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// coreReport is a report on a core that waits to become available.
type coreReport struct {
	// Hash is the hash of the work report, and Package the hash of its package.
	Hash common.Hash
	// Package is the hash of the waiting package.
	Package jamq.PackageHash
	// SegmentRoot is the root of the segments that the package exports.
	SegmentRoot common.Hash
	// Needs lists the packages that must be accumulated first.
	Needs []jamq.PackageHash
	// Since is the slot of the block that reported the package.
	Since jamq.Slot
}

// readyReport is an entry of the ready queue.
type readyReport struct {
	// Package is the package that waits.
	Package jamq.PackageHash
	// Unmet lists the packages that it still waits for.
	Unmet []jamq.PackageHash
	// Since is the slot of the block in which the report became available.
	Since jamq.Slot
}

// onCores holds the report on each core, or nil. Blocks share the reports, so
// they are never modified.
type onCores []*coreReport

// transition applies one block's disputes, assurances and guarantees to the
// cores of its parent, in this order (Gray Paper 4.2). It returns the cores
// after the block, the reports that became available, sorted by core, and the
// reports that were removed.
func (c onCores) transition(spec *jamq.ChainSpec, b *jamq.Block, reports []coreReport) (after onCores, available, removed []*coreReport) {
	after = c
	shared := true
	set := func(core int, r *coreReport) {
		if shared {
			after, shared = slices.Clone(c), false
		}
		after[core] = r
	}
	for _, condemned := range b.Condemned {
		for core, r := range after {
			// A zero hash means that the host does not report verdicts.
			if r != nil && r.Hash == condemned && condemned != (common.Hash{}) {
				removed = append(removed, r)
				set(core, nil)
			}
		}
	}
	for _, core := range sortedCores(b.Available) {
		if r := after[core]; r != nil {
			if available == nil {
				available = make([]*coreReport, 0, len(b.Available))
			}
			available = append(available, r)
			set(int(core), nil)
		}
	}
	for core, r := range after {
		if r != nil && b.Slot >= r.Since.Add(spec.AvailabilityTimeout) {
			removed = append(removed, r)
			set(core, nil)
		}
	}
	for i := range reports {
		core := int(b.Reported[i].Core)
		if r := after[core]; r != nil {
			removed = append(removed, r) // invalid block (Gray Paper 11.29)
		}
		set(core, &reports[i])
	}
	return after, available, removed
}

// sortedCores returns cores in ascending order, in which their reports
// accumulate (Gray Paper 11.16).
func sortedCores(cores []jamq.CoreIndex) []jamq.CoreIndex {
	if slices.IsSorted(cores) {
		return cores
	}
	cores = slices.Clone(cores)
	slices.Sort(cores)
	return cores
}
