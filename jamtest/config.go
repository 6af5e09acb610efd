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
	// Spec has the constants of the chain.
	Spec jamq.ChainSpec
	// Seed decides everything that the rules of JAM leave open.
	Seed uint64
	// StartSlot is the slot of the genesis block, below [jamq.MaxSlot]. A clock
	// with very short slots returns MaxSlot: slots below 14 ms have run out
	// since the common era in 2026.
	StartSlot jamq.Slot
	// SkipProbability is the share of slots without a block, from 0 to less
	// than 1.
	SkipProbability float64
	// SkipBurst is the minimum and maximum number of slots that are skipped in
	// a row, at least 1.
	SkipBurst [2]int
	// LossProbability is the share of submissions that reach no guarantor, from 0 to 1.
	LossProbability float64
	// DelayProbability is the share of submissions that take Delay slots longer
	// than ReportLatency, from 0 to 1.
	DelayProbability float64
	// Delay is the minimum and maximum number of those slots, at least 1.
	Delay [2]jamq.Slot
	// LastMomentProbability is the share of submissions whose guarantors sign
	// only for the last block that may report the package, from 0 to 1.
	LastMomentProbability float64
	// ForeignLoad is the probability, per block and free core, that a package
	// of another rollup takes the core, from 0 to 1. Some of these packages are
	// prerequisites of each other.
	ForeignLoad float64
	// UnavailableProbability is the share of reports that never become available, from 0 to 1.
	UnavailableProbability float64
	// VerdictProbability is the probability, per block and occupied core, that
	// a verdict clears the core, from 0 to 1.
	VerdictProbability float64
	// ReportLatency is the minimum and maximum number of slots from a
	// submission to the first block that may report it, at least 1.
	ReportLatency [2]jamq.Slot
	// AvailabilityLatency is the minimum and maximum number of slots from a
	// report to its availability, at least 1. With a latency above the time-out
	// U reports time out, unless slots are skipped.
	AvailabilityLatency [2]jamq.Slot
	// FinalityLag is the number of blocks that the finalized block is behind
	// the best one, at least 1. The distance is greater while a fork is open.
	FinalityLag int
	// FinalityStallProbability is the probability, per block, that finality
	// stops for FinalityStall slots, from 0 to less than 1.
	FinalityStallProbability float64
	// FinalityStall is the length of such a stop, in slots.
	FinalityStall jamq.Slot
	// ForkProbability is the probability, per block, that a second branch
	// begins, from 0 to 1.
	ForkProbability float64
	// MaxForkDepth is the maximum depth below the best block at which a branch
	// can begin, in blocks, from 0 to FinalityLag. 0 means no forks. A branch
	// that falls more than FinalityLag behind is abandoned.
	MaxForkDepth int
	// Retention is the number of finalized blocks that are kept for inspection,
	// at least 0. Blocks that the rules need are always kept.
	Retention int
	// Script has faults at given slots, in addition to the random ones; see
	// [ParseScript]. Nil means none.
	Script *Script
	// Genesis has entries of the genesis state: the accounts of services, as
	// service.Genesis makes them. All services follow the rules of package service;
	// packages of a service without an account have no effect. If Genesis is set,
	// state roots are those of a real state with C(11), C(16) and the services, so
	// that [Chain.Prove] works. This takes some kilobytes per block. Nil means that
	// there are no services and that placeholder hashes are used.
	Genesis service.State
	// Punished are the distinct indices of validators whose keys JAM has
	// replaced by zeros. They count in the set and sign nothing; see
	// [Chain.Trust] and [Chain.Prove]. Nil means none.
	Punished []int
	// NewValidators gives each epoch its own validators, as [Chain.Handoff] and
	// [Chain.Trust] need them for tests of verifiers. It has an effect with Genesis
	// only. The default, false, is one set for the whole chain.
	NewValidators bool
	// SetSizes has the numbers of active validators of the epochs with blocks, one
	// after the other and then again from the first, as Gray Paper 0.8.0 allows: each
	// is a multiple of 3 from 6 to Spec.Validators. A block that changes the number
	// clears all cores, and a third of the number is that of the active cores. Nil is
	// Spec.Validators for the whole chain. Only one of SetSizes and NewValidators can
	// be set, because proofs do not lead to a set of another size.
	SetSizes []int
}

// DefaultConfig returns a chain without faults: no loss, no skipped slots, no
// forks. Packages are reported in the next slot, available one slot later, and
// final two blocks later. A day of blocks is kept.
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

// wantSlots checks a range of slots.
func wantSlots[T cmp.Ordered](wrong *fields.Errors, field string, have [2]T) {
	var none T
	wrong.Want(have[0] > none && have[1] >= have[0], field, have, "at least 1 slot and ascending")
}
