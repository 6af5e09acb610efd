package statedb

import "fmt"

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
	// Retention is the number of previous canonical roots that are kept, at
	// least 1; 0 means DefaultRetention, and KeepAll means no limit. When the
	// oldest one is discarded, so is every unpinned root that does not descend
	// from the oldest one left. A retained block of 1,000 random writes takes
	// about 3 MB of memory in a state of a million values.
	Retention int
	// Disk makes the store durable; nil means memory only.
	Disk Disk
	// Metrics receives counts; the zero value discards them.
	Metrics Metrics
}

// Validate returns an error that wraps ErrConfig if Retention is out of range.
func (c *Config) Validate() error {
	if c.Retention < KeepAll {
		return fmt.Errorf("%w: Retention is %d, want at least 0, or KeepAll, which is %d", ErrConfig, c.Retention, KeepAll)
	}
	return nil
}

// Metrics receives counts of a store's operations. Levels, such as the number
// of roots, are methods of the store.
type Metrics struct {
	// Count, if not nil, adds n to a counter; n may be 0. It is called from
	// several goroutines concurrently, sometimes with a lock held that blocks
	// writers of the store, so it must be fast and must not call the store.
	Count func(counter Counter, n int)
}

// Counter is the name of a count.
type Counter string

const (
	// CountCommitted counts published roots, each once.
	CountCommitted Counter = "committed"
	// CountCanonical counts moves of the canonical root.
	CountCanonical Counter = "canonical"
	// CountDiscarded counts discarded roots, including those discarded by
	// retention.
	CountDiscarded Counter = "discarded"
	// CountDiskBytes counts the bytes of the records written to the disk.
	CountDiskBytes Counter = "disk_bytes"
)

func (m *Metrics) count(counter Counter, n int) {
	if m.Count != nil {
		m.Count(counter, n)
	}
}
