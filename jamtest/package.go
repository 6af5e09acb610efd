package jamtest

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// Package is a work package as the simulated chain needs it.
type Package struct {
	// Hash is the hash of its bytes. The chain takes it on trust, but never two contents under one hash.
	Hash jamq.PackageHash
	// Context is the refine context in them.
	Context jamq.RefineContext
	// Service is the rollup that the package is for.
	Service jamq.ServiceID
	// Gas is what its accumulation takes, at most the spec's MaxAccumulateGas. Together with that of others it may defer packages
	// of the ready queue to a later block (GP 12.18).
	Gas uint64
	// Payload is what the rollup's service gets when the package is accumulated. The chain does not look at it.
	Payload []byte
}

// NewPackage returns a package with a hash over all of its contents, for tests that encode no real work packages.
// The prerequisites are sorted and made distinct. Equal arguments give equal hashes; nothing is shared with them.
func NewPackage(service jamq.ServiceID, context jamq.RefineContext, payload []byte) Package {
	p := Package{Context: context, Service: service, Payload: payload}.clone()
	slices.SortFunc(p.Context.Prerequisites, jamq.PackageHash.Compare)
	p.Context.Prerequisites = slices.Compact(p.Context.Prerequisites)
	fixed := binary.LittleEndian.AppendUint32(nil, uint32(service))
	fixed = binary.LittleEndian.AppendUint32(fixed, uint32(context.LookupAnchorSlot))
	fixed = binary.LittleEndian.AppendUint32(fixed, uint32(len(p.Context.Prerequisites)))
	for _, need := range p.Context.Prerequisites {
		fixed = append(fixed, need[:]...)
	}
	p.Hash = digest("package", fixed, context.Anchor[:], context.StateRoot[:], context.BeefyRoot[:], context.LookupAnchor[:], payload)
	return p
}

func (p Package) clone() Package {
	p.Context.Prerequisites = slices.Clone(p.Context.Prerequisites)
	p.Payload = slices.Clone(p.Payload)
	return p
}

// check returns why any guarantor would refuse the package for what is in it.
func (p *Package) check(spec *jamq.ChainSpec) error {
	needs := p.Context.Prerequisites
	switch {
	case p.Hash.IsZero():
		return fmt.Errorf("%w: hash is zero", ErrRefused)
	case len(needs) > spec.MaxDependencies:
		return fmt.Errorf("%w: %d prerequisites, want at most %d", ErrRefused, len(needs), spec.MaxDependencies)
	case p.Gas > spec.MaxAccumulateGas:
		return fmt.Errorf("%w: %d gas, want at most %d", ErrRefused, p.Gas, spec.MaxAccumulateGas)
	case p.Service == ForeignService:
		return fmt.Errorf("%w: service %d stands for foreign rollups", ErrRefused, p.Service)
	case len(p.Payload) > spec.MaxBundleSize:
		return fmt.Errorf("%w: %d bytes, want at most %d", ErrRefused, len(p.Payload), spec.MaxBundleSize)
	}
	for i := 1; i < len(needs); i++ {
		if needs[i-1].Compare(needs[i]) >= 0 {
			return fmt.Errorf("%w: prerequisite %d is %s after %s, want ascending and distinct", ErrRefused, i, needs[i], needs[i-1])
		}
	}
	return nil
}

// same tells whether two packages of one hash have the same contents.
func (p *Package) same(q *Package) bool {
	a, b := p.Context, q.Context
	return a.Anchor == b.Anchor && a.StateRoot == b.StateRoot && a.BeefyRoot == b.BeefyRoot &&
		a.LookupAnchor == b.LookupAnchor && a.LookupAnchorSlot == b.LookupAnchorSlot &&
		slices.Equal(a.Prerequisites, b.Prerequisites) && p.Service == q.Service && p.Gas == q.Gas && slices.Equal(p.Payload, q.Payload)
}

// delivery is a package at a guarantor; the same one again does nothing.
type delivery struct {
	pkg       jamq.PackageHash
	core      jamq.CoreIndex
	guarantor int
}

// offer is a package in the hands of a guarantor.
type offer struct {
	pkg  *Package
	core jamq.CoreIndex
	// from is the first slot in which it may be reported, last the greatest height at which its anchor allows it.
	from jamq.Slot
	last uint64
	// lastMoment says that its guarantors wait for that height.
	lastMoment bool
}

// Submit gives a package to a guarantor of a core; guarantor is any number that tells one from another. That it returns nil
// says that it was sent, not that it arrived. The same package at the same guarantor of a core again does nothing: it has seen
// the hash.
//
// The error wraps [ErrRefused] and nothing changed: a core that does not exist, a zero hash, too many prerequisites or
// unsorted ones, a payload that is too large, or other contents under a hash that was used before. What depends on the
// chain, such as an anchor that is too old, shows only in that no block ever reports the package; see [Chain.Reportable].
func (c *Chain) Submit(p Package, core jamq.CoreIndex, guarantor int) error {
	spec := &c.cfg.Spec
	if int(core) >= spec.Cores {
		return fmt.Errorf("%w: core %d, want below %d", ErrRefused, core, spec.Cores)
	}
	if err := p.check(spec); err != nil {
		return err
	}
	kept := c.packages[p.Hash]
	if kept != nil && !kept.same(&p) {
		return fmt.Errorf("%w: %s was used for other contents", ErrRefused, p.Hash)
	}
	to := delivery{p.Hash, core, guarantor}
	if c.seen[to] {
		return nil
	}
	if kept == nil {
		copied := p.clone()
		kept = &copied
		c.packages[p.Hash] = kept
	}
	c.seen[to] = true
	lost := c.chance(c.cfg.LossProbability) || c.script.take(actLose) || c.killed[p.Hash]
	from := c.slot.Add(c.between(c.cfg.ReportLatency))
	if c.chance(c.cfg.DelayProbability) {
		from = from.Add(c.between(c.cfg.Delay))
	}
	if slots := c.script.delay(); slots > 0 {
		from = from.Add(slots)
	}
	lastMoment := c.chance(c.cfg.LastMomentProbability) || c.script.take(actHold)
	anchor := c.blocks[p.Context.Anchor]
	if lost || anchor == nil { // an anchor that does not exist yet never will: hashes cannot be foreseen
		return nil
	}
	c.offers = append(c.offers, offer{pkg: kept, core: core, from: from, last: anchor.height + uint64(spec.RecentHistory), lastMoment: lastMoment})
	return nil
}
