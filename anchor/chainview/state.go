package chainview

import (
	"cmp"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// This file contains the two parts of the JAM state that determine the outcome of a
// package, and the effect of a block on them: first the reports on the cores, then
// the ready queue.

// coreReport is a work report that occupies a core until enough validators have
// assured that its data is available.
type coreReport struct {
	// Hash is the hash of the work report.
	Hash common.Hash
	// Package is the hash of the work package that the report is about.
	Package jamq.PackageHash
	// SegmentRoot is the root of the segments that the package exports.
	SegmentRoot common.Hash
	// Needs lists the packages that must be accumulated first.
	Needs []jamq.PackageHash
	// Since is the slot of the block that reported the package.
	Since jamq.Slot
}

// onCores contains one entry for each core: the report on the core, or nil if the
// core is free. The states of several blocks share the reports, so a report is
// never modified.
type onCores []*coreReport

// transition returns the cores after a block; c contains the cores after its
// parent. It applies the disputes, the assurances, a change of the number of
// validators, and the guarantees of the block, in this order (Gray Paper 4.2; from
// 0.8.0 on 11.18). It also returns two lists of reports: those that became
// available, sorted by core, and those that were removed before they became
// available.
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
			// A hash of zero means that the host does not follow verdicts.
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
		if r != nil && (b.CoresCleared || b.Slot >= r.Since.Add(spec.AvailabilityTimeout)) {
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

// sortedCores returns cores in ascending order, because JAM accumulates the reports that
// become available in one block in this order (Gray Paper 11.16). It does not modify its
// argument.
func sortedCores(cores []jamq.CoreIndex) []jamq.CoreIndex {
	if slices.IsSorted(cores) {
		return cores
	}
	cores = slices.Clone(cores)
	slices.Sort(cores)
	return cores
}

// readyReport is an entry of the ready queue: an available report that waits until its
// prerequisites are accumulated.
type readyReport struct {
	// Package is the package that waits.
	Package jamq.PackageHash
	// Unmet lists the prerequisites that are not accumulated yet.
	Unmet []jamq.PackageHash
	// Since is the slot of the block in which the report became available.
	Since jamq.Slot
}

// accumulation is the effect of one block on the available reports.
type accumulation struct {
	// done lists the packages that the block accumulates, in order.
	done []jamq.PackageHash
	// ready is the ready queue after the block.
	ready []readyReport
}

// accumulate computes which packages a block accumulates. Candidates are the newly
// available reports and those of the ready queue, but a report that still waits for
// a prerequisite stays in the queue (Gray Paper 12.4 to 12.12). accumulate also
// computes the ready queue after the block (Gray Paper 12.41). The function before
// reports whether one of the E blocks before this one has accumulated a package.
//
// If the host has listed the accumulated packages in the block, accumulate uses
// that list. It is more exact, because the gas limit of a block may defer a part of
// the queue.
func accumulate(spec *jamq.ChainSpec, b *jamq.Block, queue []readyReport, available []*coreReport, before func(jamq.PackageHash) bool) accumulation {
	var a accumulation
	var bound []readyReport // reports with prerequisites
	for _, r := range available {
		if len(r.Needs) == 0 {
			if a.done == nil {
				a.done = make([]jamq.PackageHash, 0, len(available))
			}
			a.done = append(a.done, r.Package)
			continue
		}
		unmet := slices.DeleteFunc(slices.Clone(r.Needs), before)
		bound = append(bound, readyReport{Package: r.Package, Unmet: unmet, Since: b.Slot})
	}
	if b.AccumulatedKnown {
		a.done = slices.Clone(b.Accumulated) // the host may reuse its slice
	} else if len(queue)+len(bound) > 0 {
		a.done = append(a.done, rounds(edit(append(inTurn(spec, b.Slot, queue), bound...), a.done))...)
	}
	if len(queue)+len(bound) > 0 {
		kept := make([]readyReport, 0, len(queue)+len(bound))
		for _, r := range queue {
			if b.Slot < r.Since.Add(spec.EpochLength) {
				kept = append(kept, r)
			}
		}
		a.ready = edit(append(kept, bound...), a.done)
	}
	return a
}

// inTurn returns the ready queue in the order that a block in the given slot uses (Gray
// Paper 12.10). JAM keeps a separate queue for each slot of an epoch. The block begins
// with the queue at its own position in the epoch, which contains the reports that have
// waited longest, and continues cyclically.
func inTurn(spec *jamq.ChainSpec, slot jamq.Slot, queue []readyReport) []readyReport {
	place := func(s jamq.Slot) jamq.Slot {
		e := spec.EpochLength
		return (s%e + e - slot%e) % e
	}
	out := slices.Clone(queue)
	slices.SortStableFunc(out, func(a, b readyReport) int { return cmp.Compare(place(a.Since), place(b.Since)) })
	return out
}

// rounds returns the packages of a ready queue that a block can accumulate, in
// order (Gray Paper 12.8). The first round contains the packages without unmet
// prerequisites. Each further round contains the packages whose last unmet
// prerequisites were in the round before.
func rounds(queue []readyReport) []jamq.PackageHash {
	var out []jamq.PackageHash
	for {
		var round []jamq.PackageHash
		for _, r := range queue {
			if len(r.Unmet) == 0 {
				round = append(round, r.Package)
			}
		}
		if len(round) == 0 {
			return out
		}
		out = append(out, round...)
		queue = edit(queue, round)
	}
}

// edit returns a queue without the packages that were just accumulated. It also removes
// them from the unmet prerequisites of the remaining entries (Gray Paper 12.7). It does
// not modify its arguments, because the queues of different blocks share memory.
func edit(queue []readyReport, done []jamq.PackageHash) []readyReport {
	if len(done) == 0 {
		return queue
	}
	is := memberOf(done)
	out := make([]readyReport, 0, len(queue))
	for _, r := range queue {
		if is(r.Package) {
			continue
		}
		if slices.ContainsFunc(r.Unmet, is) {
			r.Unmet = slices.DeleteFunc(slices.Clone(r.Unmet), is)
		}
		out = append(out, r)
	}
	return out
}

// memberOf returns a function that reports whether a package is in the list. For a
// long list, it builds a map first.
func memberOf(list []jamq.PackageHash) func(jamq.PackageHash) bool {
	const few = 8
	if len(list) <= few {
		return func(h jamq.PackageHash) bool { return slices.Contains(list, h) }
	}
	set := make(map[jamq.PackageHash]struct{}, len(list))
	for _, h := range list {
		set[h] = struct{}{}
	}
	return func(h jamq.PackageHash) bool {
		_, ok := set[h]
		return ok
	}
}
