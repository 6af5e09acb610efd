package chainview

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// State is the state of work packages after one block. It consists of the parts
// of the chain state C(3), C(10), C(14) and C(15) in the Gray Paper that blocks
// show.
type State struct {
	// Recent is the recent history (C(3)), oldest first, with at most H blocks.
	// The last one is the block itself.
	Recent []RecentBlock
	// Cores holds the report on each core (C(10)), by core index. A zero
	// Package means that the core is free.
	Cores []CoreReport
	// Ready is the ready queue (C(14)): available reports that need packages
	// that are not accumulated.
	Ready []ReadyReport
	// Accumulated holds the packages that each of the last E blocks accumulated
	// (C(15)), oldest first.
	Accumulated [][]jamq.PackageHash
}

// RecentBlock is an entry of the recent history.
type RecentBlock struct {
	// Hash identifies the block.
	Hash jamq.HeaderHash
	// Slot is the block's slot. The chain state does not contain it, so NewAt
	// accepts 0 for unknown.
	Slot jamq.Slot
	// StateRoot is the state root after the block. It is zero for the newest
	// block, because the next header will be the first to contain it.
	StateRoot common.Hash
	// BeefyRoot is the peak of the accumulation-output log after the block.
	// Blocks do not contain it. It is known only for blocks that were passed to
	// NewAt or Continue, and zero for others.
	BeefyRoot common.Hash
	// Reported holds the packages that the block reports.
	Reported []ReportedPackage
}

// ReportedPackage is a package in the recent history.
type ReportedPackage struct {
	// Package is the hash of the package.
	Package jamq.PackageHash
	// SegmentRoot is the root of the segments that the package exports.
	SegmentRoot common.Hash
}

// CoreReport is a report on a core that waits to become available.
type CoreReport struct {
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

// ReadyReport is an entry of the ready queue.
type ReadyReport struct {
	// Package is the package that waits.
	Package jamq.PackageHash
	// Unmet lists the packages that it still waits for.
	Unmet []jamq.PackageHash
	// Since is the slot of the block in which the report became available.
	Since jamq.Slot
}

// onCores holds the report on each core, or nil. Blocks share the reports, so
// they are never modified.
type onCores []*CoreReport

// transition applies one block's disputes, assurances and guarantees to the
// cores of its parent, in this order (Gray Paper 4.2). It returns the cores
// after the block, the reports that became available, sorted by core, and the
// reports that were removed.
func (c onCores) transition(spec *jamq.ChainSpec, b *jamq.Block, reports []CoreReport) (after onCores, available, removed []*CoreReport) {
	after = c
	shared := true
	set := func(core int, r *CoreReport) {
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
				available = make([]*CoreReport, 0, len(b.Available))
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
