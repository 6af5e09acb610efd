package bundlequeue

import (
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq"
)

// ErrInvalidConfig is wrapped by every error of [Config.Validate].
var ErrInvalidConfig = errors.New("bundlequeue: invalid config")

// Config holds the limits of a queue. Begin with [DefaultConfig].
type Config struct {
	// Spec holds the constants of the JAM chain.
	Spec jamq.ChainSpec
	// FirstNumber is the rollup block number of the first bundle; 1 by default, since block 0 is the genesis.
	FirstNumber uint64
	// Cores are the cores that packages are sent to, distinct. Their number is the greatest number of bundles in
	// Building, Sending and Submitted together: no two of them share a core.
	// By default the first cores of the chain, at most 3.
	Cores []jamq.CoreIndex
	// MaxQueueDepth is how many bundles may wait in Queued before Enqueue is refused, at least 1; 12 by default.
	MaxQueueDepth int
	// SubmitRetryInterval is the time between two sends of the same bytes; a slot by default, positive.
	SubmitRetryInterval time.Duration
	// MaxSubmitRetries is how often the same bytes are sent again, at least 0; 8 by default.
	MaxSubmitRetries int
	// MaxVersionRetries is how many versions follow the first before the bundle fails, at least 0; 5 by default.
	// Building may fail as often before the bundle fails.
	MaxVersionRetries int
	// BackoffBase and BackoffMax bound the wait after a failed build or send: base, doubled for each failure in a row,
	// at most max. A quarter of a slot and 8 slots by default.
	BackoffBase, BackoffMax time.Duration
	// RetentionWindow is how many finalized bundles are remembered, at least 0; 100 by default.
	RetentionWindow int
}

// defaultMaxCores is how many cores a builder takes unless told otherwise: what one rollup can use at one bundle a slot
// with a report every other slot.
const defaultMaxCores = 3

// DefaultConfig returns the defaults for a chain.
func DefaultConfig(spec jamq.ChainSpec) Config {
	cores := make([]jamq.CoreIndex, min(spec.Cores, defaultMaxCores))
	for i := range cores {
		cores[i] = jamq.CoreIndex(i)
	}
	return Config{
		Spec:                spec,
		FirstNumber:         1,
		Cores:               cores,
		MaxQueueDepth:       12,
		SubmitRetryInterval: spec.SlotDuration,
		MaxSubmitRetries:    8,
		MaxVersionRetries:   5,
		BackoffBase:         spec.SlotDuration / 4,
		BackoffMax:          8 * spec.SlotDuration,
		RetentionWindow:     100,
	}
}

// Validate names the first field that is out of range, its value and what is allowed. The error wraps
// [ErrInvalidConfig].
func (c *Config) Validate() error {
	if err := c.Spec.Validate(); err != nil {
		return fmt.Errorf("%w: Spec: %w", ErrInvalidConfig, err)
	}
	if len(c.Cores) == 0 {
		return fmt.Errorf("%w: Cores is empty, want at least one", ErrInvalidConfig)
	}
	seen := make(map[jamq.CoreIndex]bool, len(c.Cores))
	for _, core := range c.Cores {
		if int(core) >= c.Spec.Cores || seen[core] {
			return fmt.Errorf("%w: Cores is %v, want distinct cores below %d", ErrInvalidConfig, c.Cores, c.Spec.Cores)
		}
		seen[core] = true
	}
	for _, f := range []struct {
		field     string
		have, min int
	}{
		{"MaxQueueDepth", c.MaxQueueDepth, 1},
		{"MaxSubmitRetries", c.MaxSubmitRetries, 0},
		{"MaxVersionRetries", c.MaxVersionRetries, 0},
		{"RetentionWindow", c.RetentionWindow, 0},
	} {
		if f.have < f.min {
			return fmt.Errorf("%w: %s is %d, want at least %d", ErrInvalidConfig, f.field, f.have, f.min)
		}
	}
	if c.SubmitRetryInterval <= 0 || c.BackoffBase <= 0 || c.BackoffMax < c.BackoffBase {
		return fmt.Errorf("%w: SubmitRetryInterval %v, BackoffBase %v, BackoffMax %v: want positive, and BackoffMax at least BackoffBase",
			ErrInvalidConfig, c.SubmitRetryInterval, c.BackoffBase, c.BackoffMax)
	}
	return nil
}

// backoff returns the wait after the given number of failures in a row, from 1. It spreads bundles apart by their
// number instead of by chance, so that the queue stays deterministic.
func (c *Config) backoff(failures int, number uint64) time.Duration {
	wait := c.BackoffBase
	for i := 1; i < failures && wait < c.BackoffMax; i++ {
		wait *= 2
	}
	wait = min(wait, c.BackoffMax)
	const spread = 8 // up to an eighth longer
	return wait + wait/spread*time.Duration(number%spread)/spread
}
