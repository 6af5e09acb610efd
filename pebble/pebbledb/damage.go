package pebbledb

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble"
)

// indexBlock is the size of a table's index in bytes above which Pebble splits the index
// into two levels. No table becomes so large that its index reaches 16 MiB.
//
// A split index hides damage: a compaction by Pebble 1.1.5 that cannot read a block under
// such an index drops the rest of the table and returns no error, so that its keys are lost.
const indexBlock = 16 << 20

// reportDamage changes options so that an error of a flush or compaction, such as a wrong
// checksum, is kept by guard, and later commits return it.
//
// Pebble begins a failed compaction again at once and without end. After an error, it is
// therefore told that it may run no compaction at a time.
func reportDamage(options *pebble.Options, g *guard) {
	for i := range options.Levels { // the last one is also that of all lower levels
		options.Levels[i].IndexBlockSize = indexBlock
	}
	listener := *options.EventListener
	report := listener.BackgroundError
	listener.BackgroundError = func(err error) {
		// After ErrDisk, Pebble makes the table again, in memory.
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
