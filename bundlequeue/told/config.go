package told

import (
	"errors"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/fields"
)

var (
	// ErrInvalidConfig is wrapped by every error of [Config.Validate].
	ErrInvalidConfig = errors.New("told: invalid config")
	// ErrNotNow is returned by [Simple.MarkSubmitted] if the queue has accepted
	// a package but the host must not send it yet. Simple.Dequeue will later
	// return a job that requests the send.
	ErrNotNow = errors.New("told: package must not be sent yet")
)

// Config is the configuration of a [Feed]. Start from [DefaultConfig].
type Config struct {
	// BlockTime is the time between two blocks of the feed. A package that is not
	// guaranteed dies after at most H blocks, the length of recent history. With a longer
	// BlockTime, the queue therefore replaces lost packages more slowly, but it also
	// replaces fewer packages that are still alive.
	//
	// BlockTime is at least 1 ms and at most 1000 days. The default is three slots, the
	// pace of a chain that skips two of three slots.
	BlockTime time.Duration
	// Finality is the number of blocks after which a block of the feed becomes final. If
	// a package is dead in that block, its death is then final too, and a bundle that has
	// failed is handed back to the host. Finality is at least 1 and at most half of
	// ChainSpec.MaxLookupAnchorAge. The default is twice the longest life of a package, H
	// + U + E blocks, within this limit.
	Finality int
	// Remember is how long the feed remembers a dead package, in blocks. If the host
	// reports the accumulation of such a package, the queue returns
	// bundlequeue.Resurrected. Remember is at most 2^30. The default is 600.
	Remember int
}

// DefaultConfig returns the default configuration for a chain.
func DefaultConfig(spec jamq.ChainSpec) Config {
	lives := spec.RecentHistory + int(spec.AvailabilityTimeout+spec.EpochLength)
	return Config{BlockTime: 3 * spec.SlotDuration, Finality: max(1, min(2*lives, mostFinality(&spec))), Remember: 600}
}

// mostFinality returns the maximum of Config.Finality. Packages name a final
// block that must not be older than MaxLookupAnchorAge (rule D3), so the newest
// final block must be younger than that.
func mostFinality(spec *jamq.ChainSpec) int { return int(spec.MaxLookupAnchorAge / 2) }

// Validate returns an error that lists each field out of range, with its value
// and its limits. The error wraps [ErrInvalidConfig].
func (c *Config) Validate(spec *jamq.ChainSpec) error {
	const longest, most = 1000 * 24 * time.Hour, 1 << 30
	var wrong fields.Errors
	fields.Range(&wrong, "BlockTime", c.BlockTime, time.Millisecond, longest)
	fields.Range(&wrong, "Finality", c.Finality, 1, mostFinality(spec))
	fields.Range(&wrong, "Remember", c.Remember, 0, most)
	return wrong.Wrap(ErrInvalidConfig)
}
