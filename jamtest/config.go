package jamtest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/fields"
	"github.com/jamq/jamq/service"
)

// Config configures a simulated chain. Start from [DefaultConfig].
type Config struct {
	// Spec contains the constants of the chain, such as the numbers of cores and
	// validators.
	Spec jamq.ChainSpec
	// Seed determines everything that the rules of JAM do not, such as losses, latencies
	// and forks.
	Seed uint64
	// StartSlot is the slot of the genesis block, and must be below [jamq.MaxSlot]. With
	// very short slots, the present time is already in slot MaxSlot, so the chain cannot
	// start at the present time. In 2026 this applies to slots shorter than 14 ms.
	StartSlot jamq.Slot
	// SkipProbability is the probability, in each slot, that a series of slots without
	// blocks begins, from 0 to less than 1.
	SkipProbability float64
	// SkipBurst is the minimum and maximum number of slots that are skipped in a row, at
	// least 1.
	SkipBurst [2]int
	// LossProbability is the share of submissions that reach no guarantor, from 0 to 1.
	LossProbability float64
	// DelayProbability is the share of submissions that are delayed by Delay in addition to
	// ReportLatency, from 0 to 1.
	DelayProbability float64
	// Delay is the minimum and maximum delay in addition to ReportLatency, in slots, at
	// least 1.
	Delay [2]jamq.Slot
	// LastMomentProbability is the share of submissions whose guarantors wait until the
	// last block that may report the package, from 0 to 1.
	LastMomentProbability float64
	// ForeignLoad is the probability, in each block and for each free core, that a package
	// of another rollup takes the core, from 0 to 1. Some of these packages have an earlier
	// one as their prerequisite.
	ForeignLoad float64
	// UnavailableProbability is the share of reports that never become available, from 0 to 1.
	UnavailableProbability float64
	// VerdictProbability is the probability, in each block and for each occupied core, that
	// a verdict clears the core, from 0 to 1.
	VerdictProbability float64
	// ReportLatency is the minimum and maximum number of slots from a
	// submission to the first block that may report it, at least 1.
	ReportLatency [2]jamq.Slot
	// AvailabilityLatency is the minimum and maximum number of slots from a report to its
	// availability, at least 1. A report whose latency exceeds the time-out U times out. It
	// becomes available nevertheless if slots are skipped, so that the next block comes
	// only after the latency.
	AvailabilityLatency [2]jamq.Slot
	// FinalityLag is the number of blocks by which the finalized block is behind the best
	// one, at least 1. The distance grows while a fork is open.
	FinalityLag int
	// FinalityStallProbability is the probability, in each block, that finality stops for
	// FinalityStall slots, from 0 to less than 1.
	FinalityStallProbability float64
	// FinalityStall is the length of such a stop in slots.
	FinalityStall jamq.Slot
	// ForkProbability is the probability, in each block, that a second branch begins, from
	// 0 to 1.
	ForkProbability float64
	// MaxForkDepth is the maximum number of blocks below the best block at which a branch
	// can begin, from 0 to FinalityLag. 0 means that there are no forks. A branch that is
	// more than FinalityLag blocks behind the best one is abandoned.
	MaxForkDepth int
	// Retention is the number of finalized blocks that the chain keeps for inspection, at
	// least 0. It always keeps the blocks that the rules of JAM still need.
	Retention int
	// Script contains faults for certain slots, in addition to the random ones: see
	// [ParseScript]. If it is nil, there are none.
	Script *Script
	// Genesis contains the entries of the services in the genesis state, as service.Genesis
	// makes them. All services follow the rules of package service. A package for a service
	// without an account has no effect.
	//
	// If Genesis is set, the chain simulates the part of the state that contains the
	// services, and C(11) and C(16). Its state roots are then real, so that [Chain.Prove]
	// works, at the cost of some kilobytes per block. If Genesis is nil, there are no
	// services, and the roots are placeholders.
	Genesis service.State
	// Punished lists validators whose keys JAM has replaced by zeros, by index and without
	// repetition. Such a validator counts in its set but signs nothing: see [Chain.Trust]
	// and [Chain.Prove]. If Punished is nil, there are none.
	Punished []int
	// NewValidators gives each epoch a new set of validators, for tests of verifiers that
	// follow the changes with [Chain.Handoff]. It has an effect only with Genesis. By
	// default, the whole chain has one set.
	NewValidators bool
	// SetSizes contains the number of active validators in each epoch with blocks, which
	// may change from Gray Paper 0.8.0 on. After the last entry, the list begins again.
	// Each entry is a multiple of 3 from 6 to Spec.Validators, and a third of it is the
	// number of active cores. A block that changes the number clears all cores.
	//
	// If SetSizes is nil, the number is always Spec.Validators. SetSizes cannot be combined
	// with NewValidators, because proofs cannot lead to a set of another size.
	SetSizes []int
}

// DefaultConfig returns the configuration of a chain without faults: no loss, no
// skipped slots, no forks. Packages are reported in the next slot, available one slot
// later, and final two blocks later. The chain keeps 14,400 finalized blocks, a day of
// slots of six seconds.
func DefaultConfig(spec jamq.ChainSpec, seed uint64) Config {
	return Config{
		Spec:                spec,
		Seed:                seed,
		ReportLatency:       [2]jamq.Slot{1, 1},
		AvailabilityLatency: [2]jamq.Slot{1, 1},
		SkipBurst:           [2]int{1, 1},
		Delay:               [2]jamq.Slot{1, 1},
		FinalityLag:         2,
		Retention:           14_400,
	}
}

// Validate returns an error that wraps [ErrInvalidConfig] and lists each field
// that is out of range, with its value and the allowed range.
func (c *Config) Validate() error {
	var wrong fields.Errors
	wrong.AddPart("Spec", c.Spec.Validate())
	fields.Range(&wrong, "SkipProbability", c.SkipProbability, 0, 1)
	fields.Range(&wrong, "LossProbability", c.LossProbability, 0, 1)
	fields.Range(&wrong, "UnavailableProbability", c.UnavailableProbability, 0, 1)
	fields.Range(&wrong, "VerdictProbability", c.VerdictProbability, 0, 1)
	fields.Range(&wrong, "DelayProbability", c.DelayProbability, 0, 1)
	fields.Range(&wrong, "LastMomentProbability", c.LastMomentProbability, 0, 1)
	fields.Range(&wrong, "ForeignLoad", c.ForeignLoad, 0, 1)
	fields.Range(&wrong, "FinalityStallProbability", c.FinalityStallProbability, 0, 1)
	fields.Range(&wrong, "ForkProbability", c.ForkProbability, 0, 1)
	wrong.Want(c.SkipProbability != 1, "SkipProbability", c.SkipProbability, "below 1: the chain would never grow")
	wrong.Want(c.FinalityStallProbability != 1, "FinalityStallProbability", c.FinalityStallProbability, "below 1: nothing would ever be final")
	wantSlots(&wrong, "ReportLatency", c.ReportLatency)
	wantSlots(&wrong, "AvailabilityLatency", c.AvailabilityLatency)
	wantSlots(&wrong, "Delay", c.Delay)
	wantSlots(&wrong, "SkipBurst", c.SkipBurst)
	wrong.Want(c.StartSlot != jamq.MaxSlot, "StartSlot", c.StartSlot,
		fmt.Sprintf("one before the last that a block can have: longer slots than %v, if it comes from a clock", c.Spec.SlotDuration))
	wrong.Want(c.FinalityLag >= 1, "FinalityLag", c.FinalityLag, "at least 1 block")
	wrong.Want(c.MaxForkDepth >= 0 && c.MaxForkDepth <= c.FinalityLag, "MaxForkDepth", c.MaxForkDepth,
		fmt.Sprintf("0 to FinalityLag %d: finality is never taken back", c.FinalityLag))
	wrong.Want(c.ForkProbability == 0 || c.MaxForkDepth != 0, "MaxForkDepth", c.MaxForkDepth, fmt.Sprintf("at least 1 where ForkProbability is %v", c.ForkProbability))
	wrong.Want(c.Retention >= 0, "Retention", c.Retention, "at least 0 blocks")
	for i, n := range c.SetSizes {
		wrong.Want(n%3 == 0 && n >= 6 && n <= c.Spec.Validators, fmt.Sprintf("SetSizes[%d]", i), n, fmt.Sprintf("a multiple of 3 from 6 to %d", c.Spec.Validators))
	}
	wrong.Want(len(c.SetSizes) == 0 || !c.NewValidators, "SetSizes", c.SetSizes, "none with NewValidators")
	for key, value := range c.Genesis {
		const account, least = 255, 89
		wrong.Want(key[0] != account || len(value) >= least, fmt.Sprintf("Genesis[%x]", key), len(value), fmt.Sprintf("at least %d bytes for an account", least))
	}
	for i, v := range c.Punished {
		known := v >= 0 && v < c.Spec.Validators
		wrong.Want(known && !slices.Contains(c.Punished[:i], v), fmt.Sprintf("Punished[%d]", i), v, fmt.Sprintf("distinct indexes below %d", c.Spec.Validators))
	}
	return wrong.Wrap(ErrInvalidConfig)
}

// wantSlots checks that a range is ascending and begins at 1 or more.
func wantSlots[T cmp.Ordered](wrong *fields.Errors, field string, have [2]T) {
	var none T
	wrong.Want(have[0] > none && have[1] >= have[0], field, have, "at least 1 slot and ascending")
}
