package statedb

import (
	"fmt"

	"github.com/jamq/jamq"
)

const (
	// DefaultRetention is the retention of a store whose Config.Retention is 0.
	DefaultRetention = 128
	// KeepAll, as Config.Retention, makes the store keep every root until
	// Store.Discard deletes it.
	KeepAll = -1
)

// Config configures a [Store]. The zero value is a store in memory with
// DefaultRetention.
type Config struct {
	// Retention is how many previous canonical roots the store keeps. It is at
	// least 1; 0 means DefaultRetention, and KeepAll means no limit. When the store
	// discards the oldest of these roots, it also discards every unpinned root that
	// does not descend from the oldest remaining root. Each kept root takes memory:
	// about 3 MB for a block of 1,000 random writes in a state of a million values.
	Retention int
	// Disk makes the store survive a restart. Nil means that the store is in memory only.
	Disk Disk
	// Metrics receives the counts that are listed below. The zero value discards them.
	Metrics jamq.Metrics
}

// Validate returns an error that wraps ErrConfig if Retention is out of range.
func (c *Config) Validate() error {
	if c.Retention < KeepAll {
		return fmt.Errorf("%w: Retention is %d, want at least 0, or KeepAll, which is %d", ErrConfig, c.Retention, KeepAll)
	}
	return nil
}

// The following are the counters of Config.Metrics. The store may call the metrics
// while it holds a lock that blocks its writers, so they must return quickly.
const (
	// CountCommitted counts published roots. Committing a root again does not
	// count.
	CountCommitted = "committed"
	// CountCanonical counts moves of the canonical root.
	CountCanonical = "canonical"
	// CountDiscarded is the number of discarded roots, whether by Discard or by retention.
	CountDiscarded = "discarded"
	// CountDiskBytes is the number of bytes in the records that were written to the disk.
	CountDiskBytes = "disk_bytes"
)
