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

// coreReport is a work report that occupies a core until enough validators have assured
// that its data is available.
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

// onCores has the report on each core, or nil for a free core. The states of several
// blocks share the reports, so a report is never modified.
type onCores []*coreReport

// transition returns the cores after a block, and the available and the removed
// reports.
func (c onCores) transition(spec *jamq.ChainSpec, b *jamq.Block, reports []coreReport) (after onCores, available, removed []*coreReport) {
	// A block changes the cores in the order of the Gray Paper (4.2; from 0.8.0 on 11.18).
	// Other blocks share the slice c, so set copies it before the first change.
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

// sortedCores returns cores in ascending order, without modifying its argument.
func sortedCores(cores []jamq.CoreIndex) []jamq.CoreIndex {
	if slices.IsSorted(cores) {
		return cores
	}
	// The order matters: JAM accumulates the reports that become available in the same block
	// by ascending core (Gray Paper 11.16).
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

// accumulate computes which packages a block accumulates, and the ready queue after it.
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
		// Of the prerequisites, only those remain unmet that none of the last E blocks has
		// accumulated (Gray Paper 12.4 to 12.12).
		unmet := slices.DeleteFunc(slices.Clone(r.Needs), before)
		bound = append(bound, readyReport{Package: r.Package, Unmet: unmet, Since: b.Slot})
	}
	// If the host knows which packages the block accumulated, its list replaces the computed
	// one. The gas limit of a block may defer a part of the ready queue, and only the host can
	// know that.
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

// inTurn sorts the reports of the ready queue as a block in the given slot accumulates
// them: those that have waited longest come first (Gray Paper 12.10).
func inTurn(spec *jamq.ChainSpec, slot jamq.Slot, queue []readyReport) []readyReport {
	// JAM keeps one ready queue for each slot of an epoch. A block starts with the queue of
	// its slot, which was filled an epoch ago and has waited longest, and then takes the
	// others in turn.
	place := func(s jamq.Slot) jamq.Slot {
		e := spec.EpochLength
		return (s%e + e - slot%e) % e
	}
	out := slices.Clone(queue)
	slices.SortStableFunc(out, func(a, b readyReport) int { return cmp.Compare(place(a.Since), place(b.Since)) })
	return out
}

// rounds returns the packages of a ready queue that a block can accumulate, in order (Gray
// Paper 12.8). A package follows as soon as all its prerequisites are in the result.
func rounds(queue []readyReport) []jamq.PackageHash {
	var out []jamq.PackageHash
	for {
		// A round contains the packages whose last unmet prerequisites were in the
		// round before.
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

// edit is the queue-editing function of the Gray Paper (12.7). It removes the packages
// that were just accumulated from the ready queue, and from the unmet prerequisites of the
// packages that remain.
func edit(queue []readyReport, done []jamq.PackageHash) []readyReport {
	if len(done) == 0 {
		return queue
	}
	// The queues of different blocks share memory, so edit modifies none of its
	// arguments.
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

// memberOf returns a function that reports whether a package is in the list.
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
