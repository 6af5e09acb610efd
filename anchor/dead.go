package anchor

import (
	"fmt"

	"github.com/jamq/jamq"
)

// Reason is why a package can never be accumulated: one of the rules D1 to D6. The file
// docs/invariants.md defines the rules. The zero value means that the package is alive.
type Reason uint8

// These are the reasons for the death of a package. A rule that makes a package
// dead at a block also does so at every descendant of the block.
const (
	// Alive means that none of the rules applies.
	Alive Reason = iota
	// OtherFork (D1) means that the chain does not contain the anchor of the package and never
	// will, because it already has another block at that height (Gray Paper 11.33).
	OtherFork
	// AnchorExpired (D2) means that the package is unreported, and its anchor is too old for a
	// report in any later block (Gray Paper 11.33).
	AnchorExpired
	// LookupExpired (D3) means that the package is unreported, and its lookup anchor is too old
	// for a report in any later block (Gray Paper 11.34).
	LookupExpired
	// PrerequisiteGone (D4) means that the package is unreported and that a prerequisite rules
	// out a later report. The prerequisite either is dead, or was reported in a block that has
	// left recent history (Gray Paper 11.39).
	PrerequisiteGone
	// Unavailable (D5) means that the report was removed from its core before it became
	// available. The cause is one of these:
	//
	//   - the availability time-out (Gray Paper 11.17)
	//   - a verdict (10.15)
	//   - from Gray Paper 0.8.0 on, another number of active validators (11.18)
	Unavailable
	// NeverReady (D6) means that the package was reported but can never be accumulated. Either
	// its report was in the ready queue for a whole epoch and was dropped (Gray Paper 12.41),
	// or one of its prerequisites is dead.
	NeverReady
	// Overtaken is not a rule of the chain. It means that a package was built but never sent,
	// because the chain changed during the build: the package would now have to name another
	// package as its prerequisite, or have a newer anchor at which the earlier packages of its
	// block are dead.
	Overtaken
)

// String returns the rule and its meaning in a few words, such as "D2:
// unreported, anchor expired".
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
	case Overtaken:
		return "overtaken by the chain"
	}
	return fmt.Sprintf("anchor.Reason(%d)", uint8(r))
}

// Point is a block on a chain.
type Point struct {
	// Hash identifies the block. Zero means "no block".
	Hash jamq.HeaderHash
	// Height counts blocks along the chain: the height of the parent plus 1.
	Height uint64
	// Slot is the block's slot.
	Slot jamq.Slot
}

// IsZero reports whether p means "no block".
func (p Point) IsZero() bool { return p.Hash.IsZero() }

// String returns the height, the slot and the first bytes of the hash, or
// "none".
func (p Point) String() string {
	if p.IsZero() {
		return "none"
	}
	return fmt.Sprintf("%d/%d:%s", p.Height, p.Slot, p.Hash.Short())
}

// Facts contains all facts that determine whether a package is dead on a chain. They
// describe the package at the last block of that chain. A caller collects them from
// blocks and passes them to [Dead].
type Facts struct {
	// Head is the last block of the chain.
	Head Point
	// AnchorOnChain is true if the chain contains the package's anchor.
	AnchorOnChain bool
	// AnchorHeight is the height of the anchor on its own chain.
	AnchorHeight uint64
	// LookupAnchorSlot is the slot of the lookup anchor.
	LookupAnchorSlot jamq.Slot
	// Reported is the block that put the report on a core, or zero.
	Reported Point
	// Removed is the block that removed the report from its core before the report was
	// available, or zero. The cause is a verdict, the availability time-out, or another number
	// of validators.
	Removed Point
	// Available is the block in which the report became available, or zero.
	Available Point
	// Accumulated is the block in which the report was accumulated, or zero.
	Accumulated Point
	// Prerequisites contains the facts about each package that must be accumulated before this one.
	Prerequisites []Prerequisite
}

// Prerequisite contains the facts about a package that another package names as a
// prerequisite. They refer to the same chain as the [Facts] that contain them.
type Prerequisite struct {
	// Dead is true if the package can never be accumulated on this chain.
	Dead bool
	// Reported is the block that reported the package, or zero.
	Reported Point
}

// Dead returns the rule by which a package can never be accumulated on the chain
// that f describes. If several rules apply, the result is the first one in the
// order D1 to D6. If no rule applies, or the package is accumulated, the result is
// [Alive].
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

// deadUnreported applies the rules D2 to D4 to a package that is not reported.
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

// PrerequisiteExpired reports whether a package that was reported in the given
// block has left recent history. If so, no block after height head can report
// another package that names it as a prerequisite, even if it was accumulated (Gray
// Paper 11.39). A zero point means that the package is not reported yet, so the
// result is false.
func PrerequisiteExpired(spec *jamq.ChainSpec, reported Point, head uint64) bool {
	return !reported.IsZero() && head >= LastReportable(spec, reported.Height)
}

// deadOnCore applies rule D5 to a package that is reported but not yet available.
func deadOnCore(spec *jamq.ChainSpec, f *Facts) bool {
	return !f.Removed.IsZero() || f.Head.Slot >= f.Reported.Slot.Add(spec.AvailabilityTimeout)
}

// Deadline is the time at which a live package dies unless a block changes its
// state. The package dies at the first block that has at least this height or at
// least this slot. A zero height or a zero slot means that this limit does not
// exist.
type Deadline struct {
	// Height is the height of a block on the chain.
	Height uint64
	// Slot is the slot of a block.
	Slot jamq.Slot
}

// NextDeath returns the deadline of a live package. The deadline may be too early,
// but never too late. A caller that calls Dead again at each deadline therefore
// finds every death that time alone causes.
func NextDeath(spec *jamq.ChainSpec, f *Facts) Deadline {
	var d Deadline
	sooner := func(height uint64) {
		if d.Height == 0 || height < d.Height {
			d.Height = height
		}
	}
	switch { // as in Dead
	case !f.Accumulated.IsZero():
	case !f.Reported.IsZero() && !f.Available.IsZero():
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
