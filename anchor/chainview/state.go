package chainview

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// State is what the work packages of a chain have come to after one block: the state chapters C(3),
// C(10), C(14) and C(15), as far as blocks alone show them.
type State struct {
	// Recent is the recent history (C(3)), oldest first, at most H blocks; the last is the block
	// itself.
	Recent []RecentBlock
	// Cores holds each core's report (C(10)), by core; a zero Package means that the core is free.
	Cores []CoreReport
	// Ready is the ready queue (C(14)): available, but in need of packages that are not
	// accumulated.
	Ready []ReadyReport
	// Accumulated are the packages accumulated in each of the last E blocks (C(15)), oldest first.
	Accumulated [][]jamq.PackageHash
}

// RecentBlock is an entry of the recent history.
type RecentBlock struct {
	// Hash identifies the block.
	Hash jamq.HeaderHash
	// Slot is its slot; the state of a chain does not tell it, so NewAt takes 0 for unknown.
	Slot jamq.Slot
	// StateRoot is the root after the block; zero for the newest, because the next header will be
	// the first to carry it.
	StateRoot common.Hash
	// BeefyRoot is the peak of the accumulation-output log after the block. No block shows it: it
	// is known only of blocks that NewAt was given, and zero otherwise.
	BeefyRoot common.Hash
	// Reported are the packages that it reports.
	Reported []ReportedPackage
}

// ReportedPackage is a package in the recent history, with the root of the segments that it
// exports.
type ReportedPackage struct {
	// Package is its hash.
	Package jamq.PackageHash
	// SegmentRoot is the root of the segments that it exports.
	SegmentRoot common.Hash
}

// CoreReport is a report that waits on its core to become available.
type CoreReport struct {
	// Hash is the work report's hash, Package its package.
	Hash    common.Hash
	Package jamq.PackageHash
	// SegmentRoot is the root of the segments that the package exports.
	SegmentRoot common.Hash
	// Needs are the packages that must be accumulated before it.
	Needs []jamq.PackageHash
	// Since is the slot of the block that reported it.
	Since jamq.Slot
}

// ReadyReport is an entry of the ready queue.
type ReadyReport struct {
	// Package is the package that waits.
	Package jamq.PackageHash
	// Unmet are the packages that it still waits for.
	Unmet []jamq.PackageHash
	// Since is the slot of the block in which it became available.
	Since jamq.Slot
}

// onCores is which report each core holds. Its values are shared between blocks and never written.
type onCores []*CoreReport

// transition applies one block's disputes, assurances and guarantees to the cores of its parent, in
// this order (GP 4.2). It returns the cores after it, the reports that became available, by core,
// and those that were removed.
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
			if r != nil && r.Hash == condemned && condemned != (common.Hash{}) { // zero: the host shows no verdicts
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
			removed = append(removed, r) // no valid block does this (GP 11.29)
		}
		set(core, &reports[i])
	}
	return after, available, removed
}

// sortedCores returns cores in ascending order, the order in which their reports accumulate (GP
// 11.16).
func sortedCores(cores []jamq.CoreIndex) []jamq.CoreIndex {
	if slices.IsSorted(cores) {
		return cores
	}
	cores = slices.Clone(cores)
	slices.Sort(cores)
	return cores
}
