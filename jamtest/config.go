package jamtest

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq"
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
	// Commit is the behaviour of the rollups' services. If it is set, state
	// roots are those of a real state with C(11), C(16) and the services'
	// commitments, so that [Chain.Prove] works. This takes some kilobytes per
	// block. Nil means that placeholder hashes are used.
	Commit Commit
	// Punished are the distinct indices of validators whose keys JAM has
	// replaced by zeros. They count in the set and sign nothing; see
	// [Chain.Trust] and [Chain.Prove]. Nil means none.
	Punished []int
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

// Validate returns an error that wraps [ErrInvalidConfig] and names the first
// field that is out of range, with its value and the allowed range.
func (c *Config) Validate() error {
	if err := c.Spec.Validate(); err != nil {
		return fmt.Errorf("%w: Spec: %w", ErrInvalidConfig, err)
	}
	for _, p := range []struct {
		field string
		have  float64
	}{
		{"SkipProbability", c.SkipProbability},
		{"LossProbability", c.LossProbability},
		{"UnavailableProbability", c.UnavailableProbability},
		{"VerdictProbability", c.VerdictProbability},
		{"DelayProbability", c.DelayProbability},
		{"LastMomentProbability", c.LastMomentProbability},
		{"ForeignLoad", c.ForeignLoad},
		{"FinalityStallProbability", c.FinalityStallProbability},
		{"ForkProbability", c.ForkProbability},
	} {
		if !(p.have >= 0 && p.have <= 1) { // so that NaN is refused
			return fmt.Errorf("%w: %s is %v, want 0 to 1", ErrInvalidConfig, p.field, p.have)
		}
	}
	if c.SkipProbability == 1 {
		return fmt.Errorf("%w: SkipProbability is 1, want below 1: the chain would never grow", ErrInvalidConfig)
	}
	for _, l := range []struct {
		field string
		have  [2]jamq.Slot
	}{{"ReportLatency", c.ReportLatency}, {"AvailabilityLatency", c.AvailabilityLatency}, {"Delay", c.Delay}} {
		if l.have[0] < 1 || l.have[1] < l.have[0] {
			return fmt.Errorf("%w: %s is %v, want at least 1 slot and ascending", ErrInvalidConfig, l.field, l.have)
		}
	}
	switch {
	case c.StartSlot == jamq.MaxSlot:
		return fmt.Errorf("%w: StartSlot is %d, the last that a block can have, want one before it: longer slots than %v, if it comes from a clock",
			ErrInvalidConfig, c.StartSlot, c.Spec.SlotDuration)
	case c.SkipBurst[0] < 1 || c.SkipBurst[1] < c.SkipBurst[0]:
		return fmt.Errorf("%w: SkipBurst is %v, want at least 1 slot and ascending", ErrInvalidConfig, c.SkipBurst)
	case c.FinalityStallProbability == 1:
		return fmt.Errorf("%w: FinalityStallProbability is 1, want below 1: nothing would ever be final", ErrInvalidConfig)
	case c.FinalityLag < 1:
		return fmt.Errorf("%w: FinalityLag is %d, want at least 1 block", ErrInvalidConfig, c.FinalityLag)
	case c.MaxForkDepth < 0 || c.MaxForkDepth > c.FinalityLag:
		return fmt.Errorf("%w: MaxForkDepth is %d, want 0 to FinalityLag %d: finality is never taken back", ErrInvalidConfig, c.MaxForkDepth, c.FinalityLag)
	case c.ForkProbability > 0 && c.MaxForkDepth == 0:
		return fmt.Errorf("%w: MaxForkDepth is 0, want at least 1 where ForkProbability is %v", ErrInvalidConfig, c.ForkProbability)
	case c.Retention < 0:
		return fmt.Errorf("%w: Retention is %d, want at least 0 blocks", ErrInvalidConfig, c.Retention)
	}
	return c.validatePunished()
}

func (c *Config) validatePunished() error {
	for i, v := range c.Punished {
		if v < 0 || v >= c.Spec.Validators || slices.Contains(c.Punished[:i], v) {
			return fmt.Errorf("%w: Punished[%d] is %d, want distinct indexes below %d", ErrInvalidConfig, i, v, c.Spec.Validators)
		}
	}
	return nil
}
