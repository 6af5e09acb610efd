package jamtest

import (
	"slices"

	"github.com/jamq/jamq"
)

// Reportable says whether a block in the given slot on top of the best one could report a package on a core (GP 11.16 to
// 11.39), and if not, why in words.
func (c *Chain) Reportable(p *Package, core jamq.CoreIndex, slot jamq.Slot) (bool, string) {
	b := &block{Block: jamq.Block{Slot: slot}, parent: c.best, height: c.best.height + 1}
	c.freeCores(b)
	why := c.refusal(b, p, core)
	return why == "", why
}

// refusal returns why a block must not report a package, or "". The block has its slot, its parent, the cores as they are
// before its guarantees, and the reports that were put into it already.
func (c *Chain) refusal(b *block, p *Package, core jamq.CoreIndex) string {
	spec, parent := &c.cfg.Spec, b.parent
	anchor := parent.find(spec.RecentHistory, func(x *block) bool { return x.Hash == p.Context.Anchor })
	switch {
	case anchor == nil:
		return "anchor is not recent"
	case p.Context.StateRoot != stateRoot(anchor.Hash) || p.Context.BeefyRoot != beefyRoot(anchor.Hash):
		return "anchor has other roots"
	case p.Context.LookupAnchorSlot.Add(spec.MaxLookupAnchorAge) < b.Slot:
		return "lookup anchor is too old"
	case !c.isAncestor(parent, p.Context.LookupAnchor, p.Context.LookupAnchorSlot):
		return "lookup anchor is not an ancestor"
	case c.known(b, p.Hash):
		return "package was reported before"
	case b.cores[core] != nil:
		return "core is engaged"
	}
	for _, need := range p.Context.Prerequisites {
		if !b.reports(need) && parent.find(spec.RecentHistory, func(x *block) bool { return x.reports(need) }) == nil {
			return "prerequisite is not in recent history"
		}
	}
	return ""
}

// known tells whether a package is in recent history, on a core, in the ready queue or accumulated within an epoch.
func (c *Chain) known(b *block, h jamq.PackageHash) bool {
	if b.reports(h) || b.parent.find(c.cfg.Spec.RecentHistory, func(x *block) bool { return x.reports(h) }) != nil {
		return true
	}
	for _, r := range b.parent.cores {
		if r != nil && r.pkg.Hash == h {
			return true
		}
	}
	return slices.ContainsFunc(b.parent.ready, func(w waiting) bool { return w.pkg.Hash == h }) || c.accumulatedBefore(b.parent, h)
}

// accumulatedBefore tells whether a package was accumulated in b or the E-1 blocks before it.
func (c *Chain) accumulatedBefore(b *block, h jamq.PackageHash) bool {
	return b.find(int(c.cfg.Spec.EpochLength), func(x *block) bool { return slices.Contains(x.Accumulated, h) }) != nil
}

// isAncestor tells whether b or a block before it has the given hash and slot. Blocks that were pruned are taken on trust of
// their slot alone: they are final.
func (c *Chain) isAncestor(b *block, hash jamq.HeaderHash, slot jamq.Slot) bool {
	for ; b != nil && b.Slot >= slot; b = b.parent {
		if b.Hash == hash {
			return b.Slot == slot
		}
		if b.parent == nil {
			return b.Slot > slot
		}
	}
	return false
}

// freeCores fills b's cores and Available from its parent's: what is available in b's slot leaves and goes on to
// accumulation, then what is over its time leaves for good.
func (c *Chain) freeCores(b *block) (available []*report) {
	b.cores = slices.Clone(b.parent.cores)
	for i, r := range b.cores {
		switch {
		case r == nil:
		case b.Slot >= r.availableAt:
			b.Available = append(b.Available, jamq.CoreIndex(i))
			available = append(available, r)
			b.cores[i] = nil
		case b.Slot >= r.reportedAt.Add(c.cfg.Spec.AvailabilityTimeout):
			b.cores[i] = nil
		}
	}
	return available
}

// accumulate runs what became available and what waits in the ready queue, as far as prerequisites allow (GP 12.1 to 12.41).
// A waiting report may still run in the first block at least an epoch after it became available, and is dropped then.
func (c *Chain) accumulate(b *block, available []*report) {
	queue := slices.Clone(b.parent.ready)
	var free, bound []waiting
	for _, r := range available {
		w := waiting{pkg: r.pkg, since: b.Slot}
		if len(r.pkg.Context.Prerequisites) == 0 {
			free = append(free, w)
		} else {
			bound = append(bound, w)
		}
	}
	queue = append(append(free, queue...), bound...)
	met := func(h jamq.PackageHash) bool {
		return slices.Contains(b.Accumulated, h) || c.accumulatedBefore(b.parent, h)
	}
	for progress := true; progress; {
		progress = false
		queue = slices.DeleteFunc(queue, func(w waiting) bool {
			for _, need := range w.pkg.Context.Prerequisites {
				if !met(need) {
					return false
				}
			}
			b.Accumulated = append(b.Accumulated, w.pkg.Hash)
			progress = true
			return true
		})
	}
	b.ready = slices.DeleteFunc(queue, func(w waiting) bool { return b.Slot >= w.since.Add(c.cfg.Spec.EpochLength) })
}
