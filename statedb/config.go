package statedb

import "fmt"

// Config says how a store works. The zero value is in memory, under the profile EIP7864, and keeps every root.
type Config struct {
	// Profile fixes hashes and keys; the zero value means EIP7864. A disk that was written under a profile of another name is refused.
	Profile Profile
	// Retention is how many canonical roots before the canonical one stay. When one falls off the end, it is discarded, and with it
	// every root that does not descend from the oldest that stays, unless it is pinned. At least 0, which means that all roots stay until
	// Store.Discard.
	Retention int
	// Disk makes the store durable; nil means that it is in memory alone.
	Disk Disk
	// Metrics is told what to count; the zero value counts nothing.
	Metrics Metrics
}

// Validate returns an error that wraps ErrConfig and names the first field that is out of range, or nil.
func (c *Config) Validate() error {
	if _, err := c.Profile.orDefault(); err != nil {
		return err
	}
	if c.Retention < 0 {
		return fmt.Errorf("%w: Retention is %d, want at least 0", ErrConfig, c.Retention)
	}
	return nil
}

// Metrics is told what to count, by several goroutines at once and with a lock held that only writers of the store wait for. A nil func
// counts nothing. What is a level, such as the number of roots, is asked of the store.
type Metrics struct {
	// Count adds n, which may be 0, to a counter.
	Count func(counter Counter, n int)
}

// Counter names what is counted.
type Counter string

const (
	// CountCommitted counts roots that were published, each once.
	CountCommitted Counter = "committed"
	// CountCanonical counts moves of the canonical root.
	CountCanonical Counter = "canonical"
	// CountDiscarded counts roots that were discarded, by retention too.
	CountDiscarded Counter = "discarded"
	// CountDiskBytes counts bytes of records that were written to the disk.
	CountDiskBytes Counter = "disk_bytes"
)

func (m *Metrics) count(counter Counter, n int) {
	if m.Count != nil {
		m.Count(counter, n)
	}
}
