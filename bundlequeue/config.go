package bundlequeue

import (
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/backoff"
	"github.com/jamq/jamq/internal/fields"
)

// ErrInvalidConfig is wrapped by every error of [Config.Validate].
var ErrInvalidConfig = errors.New("bundlequeue: invalid config")

// Config holds the limits and the cores of a queue. Start from [DefaultConfig].
type Config struct {
	// Spec holds the constants of the JAM chain.
	Spec jamq.ChainSpec
	// FirstNumber is the rollup block number of the first bundle. It must be
	// below 2^60. The default is 1, because block 0 is the genesis.
	FirstNumber uint64
	// Cores lists the JAM cores that packages are sent to. There must be at least one, without
	// duplicates. No two bundles share a core, so the number of cores limits how many bundles are
	// in Building, Sending and Submitted together. The default is the first cores of the chain, at
	// most 3.
	//
	// A [Cores] event changes the set of a running queue. A restored queue uses the set of the last
	// such event, or this one if there was none.
	Cores []jamq.CoreIndex
	// MaxQueueDepth is how many bundles may wait in Queued or Reserved before Enqueue returns
	// ErrQueueFull, from 1 to 2^30. The default is 12.
	MaxQueueDepth int
	// ReservationTimeout is how long a number may stay reserved before the queue releases it,
	// because a reserved number that is never filled would block all bundles after it. It must be
	// positive. The default is one minute.
	ReservationTimeout time.Duration
	// SubmitRetryInterval is the time between two sends of the same package. It must be positive.
	// The default is one slot.
	SubmitRetryInterval time.Duration
	// MaxSubmitRetries is how many times the same package is sent again after the first time. It
	// must not be negative. The default is 8.
	MaxSubmitRetries int
	// MaxVersionRetries is how many lost packages of a bundle the queue tolerates; with the
	// next loss the bundle fails. It must not be negative. The default is 5.
	//
	// A package counts as lost only if a guarantor accepted or refused it, and it then died
	// unreported (D2), unavailable (D5) or in the ready queue (D6). Packages that died for
	// reasons outside the bundle do not count: see [Queue.Step].
	MaxVersionRetries int
	// BackoffBase and BackoffMax limit the wait after a failed build or send. The wait is
	// BackoffBase after the first failure and doubles with each further one, up to BackoffMax.
	// Both must be positive, and BackoffMax must be at least BackoffBase. The defaults are a
	// quarter of a slot and 8 slots.
	BackoffBase, BackoffMax time.Duration
	// RetentionWindow is how many finalized bundles the queue remembers so that Info can still
	// describe them. The queue keeps the hashes of their packages, but not the bytes that the
	// host has enqueued. RetentionWindow must not be negative. The default is 100.
	RetentionWindow int
}

const (
	// most limits block numbers and counters, far below overflow.
	most = 1 << 60
	// longest limits every duration.
	longest = 1000 * 24 * time.Hour
	// maxDepth limits the depth of a queue.
	maxDepth = 1 << 30
)

// defaultMaxCores is the default number of cores. A rollup that makes one bundle
// per slot cannot use more than three, because a core accepts a report at most
// every other slot.
const defaultMaxCores = 3

// DefaultConfig returns the default configuration for a chain.
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

// Validate returns an error that lists each field out of range, with its value
// and its limits. The error wraps [ErrInvalidConfig].
func (c *Config) Validate() error {
	var wrong fields.Errors
	wrong.AddPart("Spec", c.Spec.Validate())
	wrong.Add(validateCores(&c.Spec, c.Cores))
	fields.Range(&wrong, "FirstNumber", c.FirstNumber, 0, most-1)
	fields.Range(&wrong, "MaxQueueDepth", c.MaxQueueDepth, 1, maxDepth)
	fields.Range(&wrong, "ReservationTimeout", c.ReservationTimeout, 1, longest)
	fields.Range(&wrong, "SubmitRetryInterval", c.SubmitRetryInterval, 1, longest)
	fields.Range(&wrong, "MaxSubmitRetries", int64(c.MaxSubmitRetries), 0, int64(longest))
	fields.Range(&wrong, "MaxVersionRetries", c.MaxVersionRetries, 0, maxDepth)
	fields.Range(&wrong, "BackoffBase", c.BackoffBase, 1, longest)
	fields.Range(&wrong, "BackoffMax", c.BackoffMax, c.BackoffBase, longest)
	fields.Range(&wrong, "RetentionWindow", int64(c.RetentionWindow), 0, int64(longest))
	return wrong.Wrap(ErrInvalidConfig)
}

// validateCores returns an error if the list is empty, has duplicates or unknown cores.
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

// unsettledVersions is how many packages of a bundle the queue remembers in addition to
// the lost ones. They are dead on the best chain but not yet on the finalized chain, so
// a reorg may revive them. The limit bounds the memory while finality is stalled.
const unsettledVersions = 8

// maxVersions returns how many packages of one bundle the queue remembers at most.
func (c *Config) maxVersions() int { return c.MaxVersionRetries + 1 + unsettledVersions }

// backoff returns how long to wait after a number of consecutive failures.
func (c *Config) backoff(failures int, number uint64) instant {
	wait := backoff.Wait(c.BackoffBase, c.BackoffMax, failures)
	const spread = 8 // up to an eighth longer
	// The wait is up to an eighth longer, so that bundles that failed together do not
	// all retry together. It depends on the bundle's number and not on chance, because
	// the queue must be deterministic.
	return instant(wait + wait/spread*time.Duration(number%spread)/spread)
}
