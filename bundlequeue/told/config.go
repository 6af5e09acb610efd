package told

import (
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

var (
	// ErrInvalidConfig is wrapped by every error of [Config.Validate].
	ErrInvalidConfig = errors.New("told: invalid config")
	// ErrNotNow: a package was taken and must not be sent now; a job to send it comes later.
	ErrNotNow = errors.New("told: not to be sent now")
)

// Config holds the time-outs by which packages are given up. Begin with [DefaultConfig].
type Config struct {
	// GuaranteeTimeout is how long after its last send a package is given up that was not
	// guaranteed. It is at least the 2R-1 slots in which guarantors may report it, at most 1000
	// days; 54 s by default on the tiny spec.
	GuaranteeTimeout time.Duration
	// AccumulateTimeout is how long the queue waits for accumulation, positive, at most 1000 days;
	// 10 slots by default.
	AccumulateTimeout time.Duration
	// AccumulateTries is how often AccumulateTimeout may pass before the package is given up, at
	// least 1; 3 by default.
	AccumulateTries int
	// FailureHold is how long after the last send of any of its packages a bundle is held before it
	// is handed back, because one of them may still be accumulated. It is positive, at most 1000
	// days; by default twice the slots of H + U + E.
	FailureHold time.Duration
	// Remember is how many packages of failed bundles are remembered for bundlequeue.Resurrected,
	// at least 0; 606 by default.
	Remember int
}

// longest bounds every duration.
const longest = 1000 * 24 * time.Hour

// DefaultConfig returns the defaults for a chain.
func DefaultConfig(spec jamq.ChainSpec) Config {
	slots := func(n jamq.Slot) time.Duration { return time.Duration(n) * spec.SlotDuration }
	return Config{
		GuaranteeTimeout:  anchor.DefaultGuaranteeTimeout(&spec),
		AccumulateTimeout: slots(10),
		AccumulateTries:   3,
		FailureHold:       slots(2 * (jamq.Slot(spec.RecentHistory) + spec.AvailabilityTimeout + spec.EpochLength)),
		Remember:          606,
	}
}

// Validate names the first field that is out of range, its value and what is allowed. The error
// wraps [ErrInvalidConfig].
func (c *Config) Validate(spec *jamq.ChainSpec) error {
	for _, f := range []struct {
		field           string
		have, min, most int64
	}{
		{"GuaranteeTimeout", int64(c.GuaranteeTimeout), 1, int64(longest)},
		{"AccumulateTimeout", int64(c.AccumulateTimeout), 1, int64(longest)},
		{"AccumulateTries", int64(c.AccumulateTries), 1, 1 << 30},
		{"FailureHold", int64(c.FailureHold), 1, int64(longest)},
		{"Remember", int64(c.Remember), 0, 1 << 30},
	} {
		if f.have < f.min || f.have > f.most {
			return fmt.Errorf("%w: %s is %d, want %d to %d", ErrInvalidConfig, f.field, f.have, f.min, f.most)
		}
	}
	if err := (anchor.WallClock{GuaranteeTimeout: c.GuaranteeTimeout}).Validate(spec); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidConfig, err)
	}
	return nil
}
