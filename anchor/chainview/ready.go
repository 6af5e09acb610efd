package chainview

import (
	"cmp"
	"slices"

	"github.com/jamq/jamq"
)

// accumulation is what one block does with the reports that are available.
type accumulation struct {
	// done are the packages that it accumulates, in order.
	done []jamq.PackageHash
	// ready is the ready queue after it.
	ready []ReadyReport
}

// accumulate runs what has become available and what waits in the ready queue, as far as
// prerequisites allow (GP 12.4 to 12.12), and then edits the queue (GP 12.41). before tells whether
// a package was accumulated in the E blocks before this one.
//
// If the block says what was accumulated, that is believed: gas may have deferred some of the
// queue.
func accumulate(spec *jamq.ChainSpec, b *jamq.Block, queue []ReadyReport, available []*CoreReport, before func(jamq.PackageHash) bool) accumulation {
	var a accumulation
	var bound []ReadyReport // in need of others
	for _, r := range available {
		if len(r.Needs) == 0 {
			if a.done == nil {
				a.done = make([]jamq.PackageHash, 0, len(available))
			}
			a.done = append(a.done, r.Package)
			continue
		}
		unmet := slices.DeleteFunc(slices.Clone(r.Needs), before)
		bound = append(bound, ReadyReport{Package: r.Package, Unmet: unmet, Since: b.Slot})
	}
	if b.AccumulatedKnown {
		a.done = slices.Clone(b.Accumulated) // the host may use its slice again
	} else if len(queue)+len(bound) > 0 {
		a.done = append(a.done, rounds(edit(append(inTurn(spec, b.Slot, queue), bound...), a.done))...)
	}
	if len(queue)+len(bound) > 0 {
		kept := make([]ReadyReport, 0, len(queue)+len(bound))
		for _, r := range queue {
			if b.Slot < r.Since.Add(spec.EpochLength) {
				kept = append(kept, r)
			}
		}
		a.ready = edit(append(kept, bound...), a.done)
	}
	return a
}

// inTurn returns the queue in the order in which a block of the given slot goes through it: by the
// place in the epoch at which a report became available, beginning with the block's own place, that
// is with the oldest (GP 12.10).
func inTurn(spec *jamq.ChainSpec, slot jamq.Slot, queue []ReadyReport) []ReadyReport {
	place := func(s jamq.Slot) jamq.Slot {
		e := spec.EpochLength
		return (s%e + e - slot%e) % e
	}
	out := slices.Clone(queue)
	slices.SortStableFunc(out, func(a, b ReadyReport) int { return cmp.Compare(place(a.Since), place(b.Since)) })
	return out
}

// rounds returns the packages of a queue that accumulate at once: all that need nothing more, then
// those that these unlock, and so on (GP 12.8).
func rounds(queue []ReadyReport) []jamq.PackageHash {
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

// edit takes accumulated packages out of a queue and out of what the others wait for (GP 12.7). It
// does not write to what it is given: queues share their parts with those of other blocks.
func edit(queue []ReadyReport, done []jamq.PackageHash) []ReadyReport {
	if len(done) == 0 {
		return queue
	}
	is := memberOf(done)
	out := make([]ReadyReport, 0, len(queue))
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

// memberOf returns a test for membership.
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
