package bundlequeue

import (
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// ErrInvalidConfig is wrapped by every error of [Config.Validate].
var ErrInvalidConfig = errors.New("bundlequeue: invalid config")

// Evidence says what a queue believes about the fate of packages.
type Evidence uint8

const (
	// ChainEvidence: the host feeds the JAM blocks that it imports, and the queue judges by the rules of the chain alone.
	// This is what makes the queue safe: see promise B1.
	ChainEvidence Evidence = iota
	// ToldEvidence: the host tells single events by package hash, and what it does not tell is guessed by the clock.
	// No clock can tell whether a package is dead, because slots may be skipped and guarantors may wait: a rebuilt package
	// may duplicate the one before it. Only for hosts that cannot see blocks; their service must ignore what it has seen.
	ToldEvidence
)

// String returns "chain" or "told".
func (e Evidence) String() string {
	switch e {
	case ChainEvidence:
		return "chain"
	case ToldEvidence:
		return "told"
	}
	return fmt.Sprintf("Evidence(%d)", uint8(e))
}

// AnchorPolicy says how old anchors are chosen to be.
type AnchorPolicy uint8

const (
	// TableAnchor takes anchor.Offset: old anchors for the bundles that leave first, fresher ones behind them.
	TableAnchor AnchorPolicy = iota
	// AdaptiveAnchor takes anchor.Best, from the delays between sending and reporting that the queue has seen.
	AdaptiveAnchor
)

// Config holds the limits of a queue. Begin with [DefaultConfig].
type Config struct {
	// Spec holds the constants of the JAM chain.
	Spec jamq.ChainSpec
	// Evidence says what the queue believes; chain evidence by default.
	Evidence Evidence
	// Anchors says how old anchors are; by the table by default.
	Anchors AnchorPolicy
	// FirstNumber is the rollup block number of the first bundle; 1 by default, since block 0 is the genesis.
	FirstNumber uint64
	// Cores are the cores that packages are sent to, distinct. Their number is the greatest number of bundles in
	// Building, Sending and Submitted together: no two of them share a core.
	// By default the first cores of the chain, at most 3.
	Cores []jamq.CoreIndex
	// MaxQueueDepth is how many bundles may wait in Queued before Enqueue is refused, at least 1; 12 by default.
	// [Resize] changes it while the queue runs.
	MaxQueueDepth int
	// ReservationTimeout is how long a number may stay reserved without a bundle before it is released, positive; a minute by
	// default. A number that nobody fills would block all after it.
	ReservationTimeout time.Duration
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
	// RetentionWindow is how many finalized bundles are remembered, without what the host put into them, at least 0; 100 by default.
	RetentionWindow int

	// The rest serves told evidence only; with chain evidence nothing is judged by the clock.

	// GuaranteeTimeout is how long after its last send a package is given up that was not guaranteed; 54 s by default on the tiny spec,
	// never less than the 2R-1 slots in which guarantors may report it.
	GuaranteeTimeout time.Duration
	// AccumulateTimeout and AccumulateTries: a guaranteed package is given up when it was not accumulated after so many times
	// so long; 10 slots and 3 by default, positive.
	AccumulateTimeout time.Duration
	AccumulateTries   int
	// FailureHold is how long after the last send of any of its packages a bundle that has used its tries is held before it is handed
	// back, because one of them may still be accumulated. By default twice the slots of H + U + E.
	FailureHold time.Duration
}

const (
	// most bounds block numbers and counters, far from overflow.
	most = 1 << 60
	// longest bounds every duration, far from overflow as well.
	longest = 1000 * 24 * time.Hour
	// maxDepth bounds the depth of a queue.
	maxDepth = 1 << 30
)

// defaultMaxCores is how many cores a builder takes unless told otherwise: what one rollup can use at one bundle a slot
// with a report every other slot.
const defaultMaxCores = 3

// DefaultConfig returns the defaults for a chain.
func DefaultConfig(spec jamq.ChainSpec) Config {
	cores := make([]jamq.CoreIndex, min(spec.Cores, defaultMaxCores))
	for i := range cores {
		cores[i] = jamq.CoreIndex(i)
	}
	slots := func(n jamq.Slot) time.Duration { return time.Duration(n) * spec.SlotDuration }
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
		GuaranteeTimeout:    anchor.DefaultGuaranteeTimeout(&spec),
		AccumulateTimeout:   slots(10),
		AccumulateTries:     3,
		FailureHold:         slots(2 * (jamq.Slot(spec.RecentHistory) + spec.AvailabilityTimeout + spec.EpochLength)),
	}
}

// Validate names the first field that is out of range, its value and what is allowed. The error wraps
// [ErrInvalidConfig].
func (c *Config) Validate() error {
	if err := c.Spec.Validate(); err != nil {
		return fmt.Errorf("%w: Spec: %w", ErrInvalidConfig, err)
	}
	if c.Evidence > ToldEvidence || c.Anchors > AdaptiveAnchor {
		return fmt.Errorf("%w: Evidence is %v and Anchors %d, want one of the constants", ErrInvalidConfig, c.Evidence, c.Anchors)
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
	if c.FirstNumber >= most {
		return fmt.Errorf("%w: FirstNumber is %d, want below %d", ErrInvalidConfig, c.FirstNumber, uint64(most))
	}
	for _, f := range []struct {
		field     string
		have, min int64
	}{
		{"MaxQueueDepth", int64(c.MaxQueueDepth), 1},
		{"ReservationTimeout", int64(c.ReservationTimeout), 1},
		{"SubmitRetryInterval", int64(c.SubmitRetryInterval), 1},
		{"MaxSubmitRetries", int64(c.MaxSubmitRetries), 0},
		{"MaxVersionRetries", int64(c.MaxVersionRetries), 0},
		{"BackoffBase", int64(c.BackoffBase), 1},
		{"BackoffMax", int64(c.BackoffMax), int64(c.BackoffBase)},
		{"RetentionWindow", int64(c.RetentionWindow), 0},
		{"AccumulateTimeout", int64(c.AccumulateTimeout), 1},
		{"AccumulateTries", int64(c.AccumulateTries), 1},
		{"FailureHold", int64(c.FailureHold), 1},
	} {
		if f.have < f.min || f.have > int64(longest) {
			return fmt.Errorf("%w: %s is %d, want %d to %d", ErrInvalidConfig, f.field, f.have, f.min, int64(longest))
		}
	}
	if c.MaxQueueDepth > maxDepth || c.GuaranteeTimeout > longest {
		return fmt.Errorf("%w: MaxQueueDepth is %d and GuaranteeTimeout %v, want at most %d and %v", ErrInvalidConfig, c.MaxQueueDepth, c.GuaranteeTimeout, maxDepth, longest)
	}
	if err := (anchor.WallClock{GuaranteeTimeout: c.GuaranteeTimeout}).Validate(&c.Spec); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidConfig, err)
	}
	return nil
}

// backoff returns the wait after the given number of failures in a row, from 1. It spreads bundles apart by their
// number instead of by chance, so that the queue stays deterministic.
func (c *Config) backoff(failures int, number uint64) instant {
	wait := c.BackoffBase
	for i := 1; i < failures && wait < c.BackoffMax; i++ {
		wait *= 2
	}
	wait = min(wait, c.BackoffMax)
	const spread = 8 // up to an eighth longer
	return instant(wait + wait/spread*time.Duration(number%spread)/spread)
}

// DepthFor returns the queue depth that the demand justifies: a bundle for each perBundle transactions that wait or are in
// bundles already, and a few to spare. See [Resize].
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
