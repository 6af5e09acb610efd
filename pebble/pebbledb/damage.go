package pebbledb

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble"
)

// indexBlock is the size of a table's index, in bytes, above which Pebble splits
// the index into two levels. The value is so large that no table gets a split
// index.
//
// A split index would hide damage. If a compaction by Pebble 1.1.5 cannot read a
// block under a split index, it drops the rest of the table without an error, so
// that the keys are lost.
const indexBlock = 16 << 20

// reportDamage changes options so that an error of a flush or compaction, such as a
// wrong checksum, is stored in guard, and later commits return this error.
//
// Pebble repeats a failed compaction immediately and endlessly. After an error,
// reportDamage therefore sets the number of concurrent compactions to 0.
func reportDamage(options *pebble.Options, g *guard) {
	for i := range options.Levels { // the last entry also applies to all lower levels
		options.Levels[i].IndexBlockSize = indexBlock
	}
	listener := *options.EventListener
	report := listener.BackgroundError
	listener.BackgroundError = func(err error) {
		// guard already handles a failure of the disk: when Pebble repeats the
		// compaction, guard keeps the new table in memory.
		if !errors.Is(err, ErrDisk) && !errors.Is(err, pebble.ErrCancelledCompaction) {
			g.fail(fmt.Errorf("in the background: %w", err))
			g.damaged.Store(true)
		}
		report(err)
	}
	options.EventListener = &listener
	most := options.MaxConcurrentCompactions
	options.MaxConcurrentCompactions = func() int {
		if g.damaged.Load() {
			return 0
		}
		return most()
	}
}
