package anchor

import (
	"fmt"

	"github.com/jamq/jamq"
)

// Reason says why a package is dead, by the rules D1 to D6 (docs/invariants.md). The zero
// value means alive.
type Reason uint8

// The reasons of death. Each is inherited by every descendant of the block at which it holds.
const (
	// Alive means that none of the rules applies.
	Alive Reason = iota
	// OtherFork (D1): the anchor is not on the chain although the chain is as long (GP 11.33).
	OtherFork
	// AnchorExpired (D2): unreported, and no later block can report it (GP 11.33).
	AnchorExpired
	// LookupExpired (D3): unreported, and its lookup anchor is too old (GP 11.34).
	LookupExpired
	// PrerequisiteGone (D4): unreported, and a prerequisite is dead or its report has left recent history (GP 11.39).
	PrerequisiteGone
	// Unavailable (D5): reported, and removed from its core by the availability time-out or a verdict (GP 11.17, 10.15).
	Unavailable
	// NeverReady (D6): reported, and dropped from the ready queue (GP 12.41), or in need of a package that is dead.
	NeverReady
	// ClockExpired is no rule of the chain and no evidence: a host that sees no blocks gave the
	// package up by the clock.
	ClockExpired
	// Overtaken is no rule of the chain either: the package was built and never sent, because the
	// chain changed meanwhile, and the package it follows or replaces is another one by now.
	Overtaken
)

// String returns the rule and its meaning in a few words, such as "D2: unreported, anchor expired".
func (r Reason) String() string {
	switch r {
	case Alive:
		return "alive"
	case OtherFork:
		return "D1: anchor on another fork"
	case AnchorExpired:
		return "D2: unreported, anchor expired"
	case LookupExpired:
		return "D3: unreported, lookup anchor expired"
	case PrerequisiteGone:
		return "D4: unreported, prerequisite gone"
	case Unavailable:
		return "D5: reported, not available in time"
	case NeverReady:
		return "D6: reported, can never be ready"
	case ClockExpired:
		return "clock: given up without evidence"
	case Overtaken:
		return "overtaken by the chain"
	}
	return fmt.Sprintf("anchor.Reason(%d)", uint8(r))
}

// Point is a block on a chain.
type Point struct {
	// Hash identifies the block; zero means "no block".
	Hash jamq.HeaderHash
	// Height counts blocks along the chain.
	Height uint64
	// Slot is the block's slot.
	Slot jamq.Slot
}

// IsZero reports whether p stands for "no block".
func (p Point) IsZero() bool { return p.Hash.IsZero() }

// String returns the height, the slot and the first bytes of the hash.
func (p Point) String() string {
	if p.IsZero() {
		return "none"
	}
	return fmt.Sprintf("%d/%d:%s", p.Height, p.Slot, p.Hash.Short())
}

// Facts is all that decides the life of one package on one chain, as seen at the chain's last block.
type Facts struct {
	// Head is the last block of the chain.
	Head Point
	// AnchorOnChain says whether the chain contains the package's anchor.
	AnchorOnChain bool
	// AnchorHeight is the height of the anchor on its own chain.
	AnchorHeight uint64
	// LookupAnchorSlot is the slot of the lookup anchor.
	LookupAnchorSlot jamq.Slot
	// Reported is the block that put the report on a core, or zero.
	Reported Point
	// Removed is the block that took the report from its core unaccumulated: a verdict or the time-out. Or zero.
	Removed Point
	// Available is the block in which the report became available, or zero.
	Available Point
	// Accumulated is the block in which it was accumulated, or zero.
	Accumulated Point
	// Prerequisites holds what is known of each package that must come first.
	Prerequisites []Prerequisite
}

// Prerequisite is what is known of a package that must come before another one, on the same chain.
type Prerequisite struct {
	// Dead says that the package can never be accumulated on this chain.
	Dead bool
	// Reported is the block that reported it, or zero.
	Reported Point
}

// Dead says whether a package can never again be accumulated on a chain, and by which rule.
// If several rules hold it returns the first in the order D1 to D6. A package that was accumulated is never dead.
func Dead(spec *jamq.ChainSpec, f *Facts) Reason {
	switch {
	case !f.Accumulated.IsZero():
		return Alive
	case !f.AnchorOnChain && f.Head.Height >= f.AnchorHeight:
		return OtherFork
	case f.Reported.IsZero():
		return deadUnreported(spec, f)
	case f.Available.IsZero() && deadOnCore(spec, f):
		return Unavailable
	case !f.Available.IsZero() && f.Head.Slot >= f.Available.Slot.Add(spec.EpochLength):
		return NeverReady
	}
	for _, p := range f.Prerequisites {
		if p.Dead {
			return NeverReady
		}
	}
	return Alive
}

// deadUnreported applies D2 to D4.
func deadUnreported(spec *jamq.ChainSpec, f *Facts) Reason {
	if f.Head.Height >= LastReportable(spec, f.AnchorHeight) {
		return AnchorExpired
	}
	if f.Head.Slot >= f.LookupAnchorSlot.Add(spec.MaxLookupAnchorAge) {
		return LookupExpired
	}
	for _, p := range f.Prerequisites {
		if p.Dead || PrerequisiteExpired(spec, p.Reported, f.Head.Height) {
			return PrerequisiteGone
		}
	}
	return Alive
}

// PrerequisiteExpired reports whether a package reported at the given block has left recent history, so that no block
// after height head can report a package that names it (GP 11.39). Being accumulated does not help it.
// A zero block, not reported yet, has not expired.
func PrerequisiteExpired(spec *jamq.ChainSpec, reported Point, head uint64) bool {
	return !reported.IsZero() && head >= LastReportable(spec, reported.Height)
}

// deadOnCore applies D5.
func deadOnCore(spec *jamq.ChainSpec, f *Facts) bool {
	return !f.Removed.IsZero() || f.Head.Slot >= f.Reported.Slot.Add(spec.AvailabilityTimeout)
}

// Deadline is when a package that is alive dies if no block says another word about it: at the first block of at least
// this height or at least this slot. The zero values mean never.
type Deadline struct {
	// Height counts blocks along the chain.
	Height uint64
	// Slot is a time slot.
	Slot jamq.Slot
}

// NextDeath returns the deadline of a package that is alive. It may be early, never late: who asks Dead again at the
// deadline misses no death that comes from time alone.
func NextDeath(spec *jamq.ChainSpec, f *Facts) Deadline {
	var d Deadline
	sooner := func(height uint64) {
		if d.Height == 0 || height < d.Height {
			d.Height = height
		}
	}
	switch {
	case !f.Accumulated.IsZero():
	case !f.Available.IsZero():
		d.Slot = f.Available.Slot.Add(spec.EpochLength)
	case !f.Reported.IsZero():
		d.Slot = f.Reported.Slot.Add(spec.AvailabilityTimeout)
	default:
		sooner(LastReportable(spec, f.AnchorHeight))
		d.Slot = f.LookupAnchorSlot.Add(spec.MaxLookupAnchorAge)
		for _, p := range f.Prerequisites {
			if !p.Reported.IsZero() {
				sooner(LastReportable(spec, p.Reported.Height))
			}
		}
	}
	if f.Accumulated.IsZero() && !f.AnchorOnChain {
		sooner(f.AnchorHeight)
	}
	return d
}
