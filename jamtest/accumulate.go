package jamtest

import (
	"slices"

	"github.com/jamq/jamq"
)

// accumulate determines the packages that a block accumulates: those that became
// available in it and those in the ready queue, if their prerequisites allow it (Gray
// Paper 12.4 to 12.12). It sets the block's Accumulated and its ready queue.
//
// Packages without prerequisites come first. The queue follows, longest waiting first,
// in rounds: each round takes all packages whose prerequisites are accumulated.
// Packages that were waiting for these follow in the next round.
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

// rounds returns, in order, the packages of a queue that could be accumulated now (Gray
// Paper 12.8). It does not change the queue.
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

// withinGas returns the packages at the front of the queue whose gas fits into a block
// together with the packages in free, which have no prerequisites. All packages in free
// always fit, because the limit is never below the gas of all cores (Gray Paper 12.18
// to 12.21). On a congested chain (Faults.Congested), the result is empty.
func (c *Chain) withinGas(free []jamq.PackageHash, queue []*Package) []jamq.PackageHash {
	if c.congested {
		return nil
	}
	spec := &c.cfg.Spec
	left := max(spec.BlockAccumulateGas, spec.MaxAccumulateGas*uint64(spec.Cores))
	for _, h := range free {
		left -= min(left, c.packages[h].Gas)
	}
	var out []jamq.PackageHash
	for _, p := range queue {
		if p.Gas > left {
			break // later packages wait to keep the order
		}
		left -= p.Gas
		out = append(out, p.Hash)
	}
	return out
}

// unmet returns the prerequisites in needs that neither b nor the E-1 blocks before b
// have accumulated. The chain forgets older accumulations, so a prerequisite that was
// accumulated earlier stays unmet.
func (c *Chain) unmet(b *block, needs []jamq.PackageHash) []jamq.PackageHash {
	return slices.DeleteFunc(slices.Clone(needs), func(need jamq.PackageHash) bool {
		return b.newest(int(c.cfg.Spec.EpochLength), c.accumulatedIn[need]) != nil
	})
}

// overdue reports whether an entry leaves the ready queue in a block of the given slot.
// The queue has one list per slot of an epoch, so the first block at least E slots
// after the entry drops it (Gray Paper 12.41). This happens after accumulation, so the
// same block may still accumulate the package.
func (c *Chain) overdue(w waiting, slot jamq.Slot) bool {
	return slot >= w.since.Add(c.cfg.Spec.EpochLength)
}

// meet removes newly accumulated packages from the unmet prerequisites of every entry
// in the queue.
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
