package bundlequeue

import (
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq"
)

// ErrInvalidConfig is wrapped by every error of [Config.Validate].
var ErrInvalidConfig = errors.New("bundlequeue: invalid config")

// AnchorPolicy chooses how old the anchors of packages are.
type AnchorPolicy uint8

const (
	// TableAnchor takes anchor.Offset: old anchors for the bundles that leave first, fresher ones
	// behind them.
	TableAnchor AnchorPolicy = iota
	// AdaptiveAnchor takes anchor.Best, from the delays between sending and reporting that the
	// queue has observed.
	AdaptiveAnchor
)

// Config holds the limits of a queue. Begin with [DefaultConfig].
type Config struct {
	// Spec holds the constants of the JAM chain.
	Spec jamq.ChainSpec
	// Anchors is the anchor policy; TableAnchor by default. With both policies a slow builder gets
	// fresher anchors: see [Queue.BuildBlocks].
	Anchors AnchorPolicy
	// FirstNumber is the rollup block number of the first bundle, below 2^60; 1 by default, since
	// block 0 is the genesis.
	FirstNumber uint64
	// Cores are the distinct JAM cores that packages are sent to, at least one. Their number is the
	// greatest number of bundles in Building, Sending and Submitted together: no two of them share
	// a core. By default the first cores of the chain, at most 3. [Cores] changes the set while the
	// queue runs; otherwise a restored queue takes it from its new configuration.
	Cores []jamq.CoreIndex
	// MaxQueueDepth is how many bundles may wait in Queued before Enqueue is refused, 1 to 2^30; 12
	// by default. [Resize] changes it while the queue runs; otherwise a restored queue takes it
	// from its new configuration.
	MaxQueueDepth int
	// ReservationTimeout is how long a number may stay reserved without a bundle before it is
	// released, positive; a minute by default. A number that is never filled would block all
	// bundles after it.
	ReservationTimeout time.Duration
	// SubmitRetryInterval is the time between two sends of the same bytes, positive; a slot by
	// default.
	SubmitRetryInterval time.Duration
	// MaxSubmitRetries is how often the same bytes are sent again, at least 0; 8 by default.
	MaxSubmitRetries int
	// MaxVersionRetries is how many packages of a bundle may be lost, at least 0; 5 by default. The
	// bundle fails with the next one that is lost. A package is lost if a guarantor took or refused
	// it and it then died unreported (D2), unavailable (D5) or in the ready queue (D6). Packages
	// that died for a reason outside of the bundle do not count: see [Queue.Step].
	MaxVersionRetries int
	// BackoffBase and BackoffMax bound the wait after a failed build or send: BackoffBase, doubled
	// for each failure in a row, at most BackoffMax. A quarter of a slot and 8 slots by default,
	// positive.
	BackoffBase, BackoffMax time.Duration
	// RetentionWindow is how many finalized bundles are remembered, without what the host put into
	// them, at least 0; 100 by default.
	RetentionWindow int
}

const (
	// most bounds block numbers and counters. It is far from overflow.
	most = 1 << 60
	// longest bounds every duration.
	longest = 1000 * 24 * time.Hour
	// maxDepth bounds the depth of a queue.
	maxDepth = 1 << 30
)

// defaultMaxCores is how many cores a builder takes by default. A rollup that makes one bundle per
// slot uses no more, because a core takes a report every other slot at best.
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
		ReservationTimeout:  time.Minute,
		SubmitRetryInterval: spec.SlotDuration,
		MaxSubmitRetries:    8,
		MaxVersionRetries:   5,
		BackoffBase:         spec.SlotDuration / 4,
		BackoffMax:          8 * spec.SlotDuration,
		RetentionWindow:     100,
	}
}

// Validate names the first field that is out of range, its value and what is allowed. The error
// wraps [ErrInvalidConfig].
func (c *Config) Validate() error {
	if err := c.Spec.Validate(); err != nil {
		return fmt.Errorf("%w: Spec: %w", ErrInvalidConfig, err)
	}
	if c.Anchors > AdaptiveAnchor {
		return fmt.Errorf("%w: Anchors is %d, want one of the constants", ErrInvalidConfig, c.Anchors)
	}
	if err := validateCores(&c.Spec, c.Cores); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidConfig, err)
	}
	if c.FirstNumber >= most {
		return fmt.Errorf("%w: FirstNumber is %d, want below %d", ErrInvalidConfig, c.FirstNumber, uint64(most))
	}
	for _, f := range []struct {
		field           string
		have, min, most int64
	}{
		{"MaxQueueDepth", int64(c.MaxQueueDepth), 1, maxDepth},
		{"ReservationTimeout", int64(c.ReservationTimeout), 1, int64(longest)},
		{"SubmitRetryInterval", int64(c.SubmitRetryInterval), 1, int64(longest)},
		{"MaxSubmitRetries", int64(c.MaxSubmitRetries), 0, int64(longest)},
		{"MaxVersionRetries", int64(c.MaxVersionRetries), 0, maxDepth},
		{"BackoffBase", int64(c.BackoffBase), 1, int64(longest)},
		{"BackoffMax", int64(c.BackoffMax), int64(c.BackoffBase), int64(longest)},
		{"RetentionWindow", int64(c.RetentionWindow), 0, int64(longest)},
	} {
		if f.have < f.min || f.have > f.most {
			return fmt.Errorf("%w: %s is %d, want %d to %d", ErrInvalidConfig, f.field, f.have, f.min, f.most)
		}
	}
	return nil
}

// validateCores reports cores that are missing, twice in the list, or not on the chain.
func validateCores(spec *jamq.ChainSpec, cores []jamq.CoreIndex) error {
	if len(cores) == 0 {
		return errors.New("Cores is empty, want at least one")
	}
	seen := make(map[jamq.CoreIndex]bool, len(cores))
	for _, core := range cores {
		if int(core) >= spec.Cores || seen[core] {
			return fmt.Errorf("Cores is %v, want distinct cores below %d", cores, spec.Cores)
		}
		seen[core] = true
	}
	return nil
}

// unsettledVersions is how many packages of a bundle may be dead, not lost, and not settled by
// finality. It bounds memory while finality stands still and guarantors cannot be reached.
const unsettledVersions = 8

// maxVersions returns how many packages of one bundle the queue holds at most.
func (c *Config) maxVersions() int { return c.MaxVersionRetries + 1 + unsettledVersions }

// backoff returns the wait after the given number of failures in a row, from 1. It spreads bundles
// apart by their number and not by chance, so that the queue stays deterministic.
func (c *Config) backoff(failures int, number uint64) instant {
	wait := c.BackoffBase
	for i := 1; i < failures && wait < c.BackoffMax; i++ {
		wait *= 2
	}
	wait = min(wait, c.BackoffMax)
	const spread = 8 // up to an eighth longer
	return instant(wait + wait/spread*time.Duration(number%spread)/spread)
}

// DepthFor returns the queue depth for a demand: one bundle for each perBundle transactions that
// are pending or in bundles already, and four to spare, at most 2^30. See [Resize].
func DepthFor(pending, inBundles, perBundle int) int {
	const spare = 4
	demand := min(max(pending, 0), maxDepth) + min(max(inBundles, 0), maxDepth)
	perBundle = max(perBundle, 1)
	bundles := demand / perBundle
	if demand%perBundle > 0 {
		bundles++
	}
	return min(bundles+spare, maxDepth)
}
