package jamtest

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// Reportable returns nil if a block in the given slot on top of the best block could
// report a package on a core. It ignores verdicts, because they cannot be foreseen.
//
// Otherwise the error wraps the first reason that applies, in this order:
// ErrAnchorNotRecent, ErrAnchorRoots, ErrLookupAnchor, ErrDuplicate, ErrPrerequisite,
// ErrCoreInactive, ErrCoreEngaged. It wraps [ErrRefused] if the core does not exist or
// the slot is not after that of the best block.
func (c *Chain) Reportable(p Package, core jamq.CoreIndex, slot jamq.Slot) error {
	if int(core) >= c.cfg.Spec.Cores {
		return fmt.Errorf("%w: core %d, want below %d", ErrRefused, core, c.cfg.Spec.Cores)
	}
	if slot <= c.best.Slot {
		return fmt.Errorf("%w: slot %d, want above the best block's %d", ErrRefused, slot, c.best.Slot)
	}
	b := c.childOf(c.best, slot)
	c.freeCores(b)
	if err := c.refusal(b, &p, core); err != nil {
		return fmt.Errorf("%s on core %d in slot %d: %w", p.Hash, core, slot, err)
	}
	return nil
}

// refusal returns the reason why block b must not report a package on a core, or nil.
// The slot, the parent, the cores and all earlier reports of b must be set.
func (c *Chain) refusal(b *block, p *Package, core jamq.CoreIndex) error {
	spec, context := &c.cfg.Spec, &p.Context
	anchor := c.blocks[context.Anchor]
	lookup := c.blocks[context.LookupAnchor]
	switch {
	case anchor == nil || !b.parent.has(anchor, spec.RecentHistory):
		return ErrAnchorNotRecent
	case context.StateRoot != anchor.stateRoot || context.BeefyRoot != anchor.beefyRoot:
		return ErrAnchorRoots
	case context.LookupAnchorSlot.Add(spec.MaxLookupAnchorAge) < b.Slot:
		return ErrLookupAnchor
	case lookup == nil || lookup.Slot != context.LookupAnchorSlot || b.parent.within(lookup.height) != lookup:
		return ErrLookupAnchor
	case c.known(b, p.Hash):
		return ErrDuplicate
	}
	for _, need := range context.Prerequisites {
		if !b.reports(need) && b.parent.newest(spec.RecentHistory, c.reportedIn[need]) == nil {
			return ErrPrerequisite
		}
	}
	if int(core) >= b.active {
		return ErrCoreInactive
	}
	if b.cores[core] != nil {
		return ErrCoreEngaged
	}
	return nil
}

// known reports whether a package is in this block, in recent history, on a core, in
// the ready queue, or accumulated in the last E blocks.
func (c *Chain) known(b *block, h jamq.PackageHash) bool {
	if b.reports(h) {
		return true
	}
	if len(c.reportedIn[h]) == 0 {
		return false // on no branch at all: the usual case
	}
	spec := &c.cfg.Spec
	return b.parent.newest(spec.RecentHistory, c.reportedIn[h]) != nil ||
		slices.ContainsFunc(b.parent.cores, func(r *report) bool { return r != nil && r.pkg.Hash == h }) ||
		slices.ContainsFunc(b.parent.ready, func(w waiting) bool { return w.pkg.Hash == h }) ||
		b.parent.newest(int(spec.EpochLength), c.accumulatedIn[h]) != nil
}

// reports reports whether the block reports a package.
func (b *block) reports(h jamq.PackageHash) bool {
	return slices.ContainsFunc(b.Reported, func(r jamq.Report) bool { return r.Package == h })
}

// report adds every submitted package that the rules allow to the block, in the order
// of submission. It repeats this until no more can be added, because a package may have
// a prerequisite that was submitted later.
func (c *Chain) report(b *block) {
	for progress := true; progress; {
		progress = false
		for _, o := range c.offers {
			if o.from > b.Slot || o.last < b.height || o.lastMoment && o.last != b.height || c.refusal(b, o.pkg, o.core) != nil {
				continue
			}
			c.putOnCore(b, o.pkg, o.core)
			progress = true
		}
	}
}

// putOnCore reports a package in a block and decides when it will become available.
func (c *Chain) putOnCore(b *block, p *Package, core jamq.CoreIndex) {
	r := &report{pkg: p, reportedAt: b.Slot, availableAt: b.Slot.Add(c.between(c.cfg.AvailabilityLatency))}
	r.hash = digest("report", p.Hash[:], binary.LittleEndian.AppendUint32([]byte{byte(core), byte(core >> 8)}, uint32(b.Slot)))
	if c.chance(c.cfg.UnavailableProbability) || p.Service != ForeignService && c.script.take(actUnavailable) {
		r.availableAt = jamq.MaxSlot
	}
	b.cores[core] = r
	b.Reported = append(b.Reported, jamq.Report{
		Hash:          r.hash,
		Package:       p.Hash,
		SegmentRoot:   digest("segments", p.Hash[:]),
		Core:          core,
		Anchor:        p.Context.Anchor,
		Prerequisites: slices.Clone(p.Context.Prerequisites),
	})
}
