package statedb

import (
	"fmt"

	"github.com/jamq/jamq"
)

const (
	// DefaultRetention is the value of Config.Retention that 0 stands for.
	DefaultRetention = 128
	// KeepAll is the value of Config.Retention that keeps every root until
	// Store.Discard.
	KeepAll = -1
)

// Config configures a [Store]. The zero value is a store in memory with
// DefaultRetention.
type Config struct {
	// Retention is how many previous canonical roots are kept. It is at least 1; 0 means
	// DefaultRetention, and KeepAll means no limit. When the oldest of these roots is discarded, so
	// is every unpinned root that does not descend from the oldest one left. A retained block of
	// 1,000 random writes takes about 3 MB of memory in a state of a million values.
	Retention int
	// Disk makes the store durable; nil means memory only.
	Disk Disk
	// Metrics receives counts; the zero value discards them.
	Metrics jamq.Metrics
}

// Validate returns an error that wraps ErrConfig if Retention is out of range.
func (c *Config) Validate() error {
	if c.Retention < KeepAll {
		return fmt.Errorf("%w: Retention is %d, want at least 0, or KeepAll, which is %d", ErrConfig, c.Retention, KeepAll)
	}
	return nil
}

// The counters of Config.Metrics. The store may call the metrics with a lock that blocks its
// writers, so they must return quickly.
const (
	// CountCommitted counts published roots, each once.
	CountCommitted = "committed"
	// CountCanonical counts moves of the canonical root.
	CountCanonical = "canonical"
	// CountDiscarded counts discarded roots, including those discarded by
	// retention.
	CountDiscarded = "discarded"
	// CountDiskBytes counts the bytes of the records written to the disk.
	CountDiskBytes = "disk_bytes"
)
