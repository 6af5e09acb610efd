package jamtest

import (
	"slices"

	"github.com/jamq/jamq"
)

// accumulate runs what became available and what waits in the ready queue, as far as prerequisites allow (GP 12.4 to 12.12),
// and sets the block's Accumulated and ready queue.
//
// The order: packages without prerequisites first; then the queue, the longest waiting first and the newcomers last, in rounds:
// each round runs all that wait for nothing more, and what they unlock runs in the next.
func (c *Chain) accumulate(b *block, available []*report) {
	queue := make([]waiting, 0, len(b.parent.ready)+len(available))
	for _, w := range b.parent.ready {
		w.unmet = slices.Clone(w.unmet) // the parent's is shared by its other children
		queue = append(queue, w)
	}
	for _, r := range available {
		if needs := r.pkg.Context.Prerequisites; len(needs) == 0 {
			b.Accumulated = append(b.Accumulated, r.pkg.Hash)
		} else {
			queue = append(queue, waiting{pkg: r.pkg, since: b.Slot, unmet: c.unmet(b.parent, needs)})
		}
	}
	meet(queue, b.Accumulated)
	done := c.withinGas(b.Accumulated, rounds(queue))
	b.Accumulated = append(b.Accumulated, done...)
	queue = slices.DeleteFunc(queue, func(w waiting) bool { return slices.Contains(done, w.pkg.Hash) })
	meet(queue, done)
	b.ready = slices.DeleteFunc(queue, func(w waiting) bool {
		over := c.overdue(w, b.Slot)
		if over {
			b.expired = append(b.expired, w.pkg.Hash)
		}
		return over
	})
}

// rounds returns what of a queue could run at once, in order: each round runs all that wait for nothing more, and what they unlock
// runs in the next (GP 12.8). The queue stays as it is.
func rounds(queue []waiting) []*Package {
	rest := make([]waiting, len(queue))
	for i, w := range queue {
		rest[i] = waiting{pkg: w.pkg, unmet: slices.Clone(w.unmet)}
	}
	var out []*Package
	for {
		var round []jamq.PackageHash
		rest = slices.DeleteFunc(rest, func(w waiting) bool {
			if len(w.unmet) == 0 {
				round = append(round, w.pkg.Hash)
				out = append(out, w.pkg)
			}
			return len(w.unmet) == 0
		})
		if len(round) == 0 {
			return out
		}
		meet(rest, round)
	}
}

// withinGas returns how much of the queue fits into a block beside what runs without waiting, which always does: the limit is never
// below what all cores may use (GP 12.18 to 12.21).
func (c *Chain) withinGas(free []jamq.PackageHash, queue []*Package) []jamq.PackageHash {
	spec := &c.cfg.Spec
	left := max(spec.BlockAccumulateGas, spec.MaxAccumulateGas*uint64(spec.Cores))
	for _, h := range free {
		left -= min(left, c.packages[h].Gas)
	}
	var out []jamq.PackageHash
	for _, p := range queue {
		if p.Gas > left {
			break // the order is kept: what is behind it waits as well
		}
		left -= p.Gas
		out = append(out, p.Hash)
	}
	return out
}

// unmet returns those of a package's prerequisites that were not accumulated in b or the E-1 blocks before it.
// One that was accumulated earlier counts as unmet for ever: the chain has forgotten it.
func (c *Chain) unmet(b *block, needs []jamq.PackageHash) []jamq.PackageHash {
	return slices.DeleteFunc(slices.Clone(needs), func(need jamq.PackageHash) bool {
		return b.newest(int(c.cfg.Spec.EpochLength), c.accumulatedIn[need]) != nil
	})
}

// overdue tells whether an entry leaves the ready queue in a block of the given slot. The queue has one list per slot of an
// epoch, so the first block at least E slots later, which reuses or passes its place, drops it (GP 12.41). It runs
// after accumulation: that block may still take the entry.
func (c *Chain) overdue(w waiting, slot jamq.Slot) bool {
	return slot >= w.since.Add(c.cfg.Spec.EpochLength)
}

// meet removes accumulated packages from the prerequisites that are waited for.
func meet(queue []waiting, accumulated []jamq.PackageHash) {
	if len(accumulated) == 0 {
		return
	}
	for i := range queue {
		queue[i].unmet = slices.DeleteFunc(queue[i].unmet, func(need jamq.PackageHash) bool {
			return slices.Contains(accumulated, need)
		})
	}
}
