package jamtest

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// Package is a work package on the simulated chain.
type Package struct {
	// Hash is the hash of the encoded package. The chain does not check it, but refuses a
	// package with another content and the same hash.
	Hash jamq.PackageHash
	// Context is the refine context of the package.
	Context jamq.RefineContext
	// Service is the service of the rollup that the package belongs to.
	Service jamq.ServiceID
	// Gas is the gas for the accumulation of the package, at most the spec's
	// MaxAccumulateGas. The gas of all packages in a block is limited, so a large Gas can
	// defer packages in the ready queue to a later block (Gray Paper 12.18).
	Gas uint64
	// Authorizer is the hash of the authorizer's code hash and configuration. A service
	// compares it with the authorizer that it expects. [Work] checks that the authorizer
	// accepts the package; [Chain.Submit] assumes it.
	Authorizer common.Hash
	// Payload is the payload of the work item, which is the input of refine. The rules of
	// the service interpret it: see [Config.Genesis].
	Payload []byte
}

// NewPackage returns a package for tests that do not need a real, encoded work package.
// Its hash covers the whole content, so equal arguments give equal hashes. NewPackage
// sorts the prerequisites, removes duplicates, and leaves the authorizer zero. The
// package shares no memory with the arguments.
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

// check returns the reason why every guarantor refuses the content of the package, or
// nil.
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

// same reports whether two packages with the same hash have the same content.
func (p *Package) same(q *Package) bool {
	a, b := p.Context, q.Context
	return a.Anchor == b.Anchor && a.StateRoot == b.StateRoot && a.BeefyRoot == b.BeefyRoot &&
		a.LookupAnchor == b.LookupAnchor && a.LookupAnchorSlot == b.LookupAnchorSlot &&
		slices.Equal(a.Prerequisites, b.Prerequisites) && p.Service == q.Service && p.Gas == q.Gas && p.Authorizer == q.Authorizer && slices.Equal(p.Payload, q.Payload)
}

// delivery identifies the submission of a package to one guarantor of a core, so that
// repeating it has no effect.
type delivery struct {
	pkg       jamq.PackageHash
	core      jamq.CoreIndex
	guarantor int
}

// offer is a package that a guarantor of a core has received and may report.
type offer struct {
	pkg  *Package
	core jamq.CoreIndex
	// from is the first slot in which a block may report the package. last is the greatest
	// height at which a block may do so, because the anchor is too old for higher blocks.
	from jamq.Slot
	last uint64
	// lastMoment makes the guarantors hold the package back until a block of height
	// last.
	lastMoment bool
}

// Submit sends a package to a guarantor of a core. guarantor is any number that
// identifies the guarantor. A nil error means that the package was sent, but it may
// still be lost. Sending the same package to the same guarantor of a core again has no
// effect.
//
// If the error wraps [ErrRefused], nothing has changed. The reasons are:
//
//   - a core that does not exist
//   - a zero hash, or a different content with the same hash
//   - too many or unsorted prerequisites
//   - too much gas or a payload that is too large
//   - the service [ForeignService]
//
// Reasons that depend on the chain, such as an old anchor, cause no error, but no block
// ever reports such a package. [Chain.Reportable] returns these reasons.
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
	// An anchor that does not exist yet never will: hashes cannot be predicted.
	if lost || anchor == nil {
		return nil
	}
	c.offers = append(c.offers, offer{pkg: kept, core: core, from: from, last: anchor.height + uint64(spec.RecentHistory), lastMoment: lastMoment})
	return nil
}
