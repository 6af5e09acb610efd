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
	// ErrNotNow means that the queue accepted a package that must not be sent
	// yet. A later job requests the send.
	ErrNotNow = errors.New("told: package must not be sent yet")
)

// Config holds the time-outs after which packages are given up. Start from
// [DefaultConfig].
type Config struct {
	// GuaranteeTimeout is how long after its last send a package is given up if
	// it is not guaranteed. It is at least 2R-1 slots, in which guarantors may
	// report the package (R is the rotation period), and at most 1000 days. The
	// default is 54 s on the tiny chain: see anchor.DefaultGuaranteeTimeout.
	GuaranteeTimeout time.Duration
	// AccumulateTimeout is how long the queue waits once for the accumulation
	// of a guaranteed package. It must be positive and at most 1000 days. The
	// default is 10 slots.
	AccumulateTimeout time.Duration
	// AccumulateTries is how often AccumulateTimeout passes before the package
	// is given up. It is at least 1. The default is 3.
	AccumulateTries int
	// FailureHold is how long after the last send of a bundle's packages the
	// queue holds the bundle before it hands it back, because one of the
	// packages may still be accumulated. It must be positive and at most 1000
	// days. The default is twice H + U + E slots.
	FailureHold time.Duration
	// Remember is how many packages of failed bundles are remembered for
	// bundlequeue.Resurrected. It must not be negative. The default is 606.
	Remember int
}

// longest limits every duration.
const longest = 1000 * 24 * time.Hour

// DefaultConfig returns the default configuration for a chain.
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

// Validate returns an error that gives the first field out of range, its value,
// and its limits. The error wraps [ErrInvalidConfig].
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
