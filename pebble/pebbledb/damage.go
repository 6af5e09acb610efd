package pebbledb

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble"
)

// indexBlock is the size of a table's index, in bytes, above which Pebble splits
// the index into two levels. It is so large that no table gets a split index,
// because a split index would hide damage: if a compaction by Pebble 1.1.5 cannot
// read a block under it, the compaction drops the rest of the table without an
// error.
const indexBlock = 16 << 20

// reportDamage makes an error of a flush or compaction fail all later commits.
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
			// From now on Pebble makes no compactions. It would repeat the failed
			// one immediately and endlessly.
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
