package jamtest

import (
	"errors"
	"fmt"

	"github.com/jamq/jamq"
)

// ErrInvalidConfig is wrapped by every error of [Config.Validate].
var ErrInvalidConfig = errors.New("jamtest: invalid config")

// Config says what a simulated chain is like. Begin with [DefaultConfig].
type Config struct {
	// Spec holds the chain's constants.
	Spec jamq.ChainSpec
	// Seed decides everything that the rules leave open.
	Seed uint64
	// StartSlot is the slot of the genesis block.
	StartSlot jamq.Slot
	// SkipProbability is the share of slots without a block, from 0 to below 1.
	SkipProbability float64
	// LossProbability is the share of submissions that reach no guarantor, from 0 to 1.
	LossProbability float64
	// UnavailableProbability is the share of reports that never become available, from 0 to 1.
	UnavailableProbability float64
	// ReportLatency is the least and the greatest number of slots from a submission to the first block that may report it, at
	// least 1.
	ReportLatency [2]jamq.Slot
	// AvailabilityLatency is the same from a report to its availability, at least 1.
	AvailabilityLatency [2]jamq.Slot
	// FinalityLag is how many blocks the finalized block is behind the best one, at least 1.
	FinalityLag int
	// ForkProbability is the chance per slot that a second branch begins, from 0 to 1.
	ForkProbability float64
	// MaxForkDepth is how many blocks below the best one a branch may begin, from 0 to FinalityLag; 0 means no forks.
	MaxForkDepth int
}

// DefaultConfig returns a chain on which everything goes well: no loss, no skipped slots, no forks; reports in the next slot,
// available the slot after, final two blocks later.
func DefaultConfig(spec jamq.ChainSpec, seed uint64) Config {
	return Config{
		Spec:                spec,
		Seed:                seed,
		ReportLatency:       [2]jamq.Slot{1, 1},
		AvailabilityLatency: [2]jamq.Slot{1, 1},
		FinalityLag:         2,
	}
}

// Validate names the first field that is out of range, its value and what is allowed. The error wraps
// [ErrInvalidConfig].
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
		{"ForkProbability", c.ForkProbability},
	} {
		if !(p.have >= 0 && p.have <= 1) {
			return fmt.Errorf("%w: %s is %v, want 0 to 1", ErrInvalidConfig, p.field, p.have)
		}
	}
	if c.SkipProbability == 1 {
		return fmt.Errorf("%w: SkipProbability is 1, want below 1: the chain would never grow", ErrInvalidConfig)
	}
	for _, l := range []struct {
		field string
		have  [2]jamq.Slot
	}{{"ReportLatency", c.ReportLatency}, {"AvailabilityLatency", c.AvailabilityLatency}} {
		if l.have[0] < 1 || l.have[1] < l.have[0] {
			return fmt.Errorf("%w: %s is %v, want at least 1 slot and ascending", ErrInvalidConfig, l.field, l.have)
		}
	}
	if c.FinalityLag < 1 {
		return fmt.Errorf("%w: FinalityLag is %d, want at least 1 block", ErrInvalidConfig, c.FinalityLag)
	}
	if c.MaxForkDepth < 0 || c.MaxForkDepth > c.FinalityLag {
		return fmt.Errorf("%w: MaxForkDepth is %d, want 0 to FinalityLag %d: finality is never taken back", ErrInvalidConfig, c.MaxForkDepth, c.FinalityLag)
	}
	return nil
}
