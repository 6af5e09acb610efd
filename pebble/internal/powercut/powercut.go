// Package powercut is a disk in memory for tests of stores. Its power fails at a
// sync that the test chooses, and all data that was not synced is then lost. On
// such a disk, two crashes between the same two syncs leave the same files. A test
// that runs its program once for each sync has therefore tried all crashes.
//
// The number of syncs must be the same in each run. Pebble also syncs in the
// background, when it compacts and when it flushes a full memory table. Therefore
// [Disk.Options] turns compactions off and leaves the memory table large, and the
// test calls Flush between two calls of its program.
package powercut

import (
	"math"
	"sync"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"

	"github.com/jamq/jamq/pebble/internal/fulldisk"
	"github.com/jamq/jamq/pebble/pebbledb"
)

// Disk is a file system in memory for crash tests: its power fails at a sync that
// the test chooses. The test reports each write that has returned, and Disk counts
// how many of them returned before the failure, because the effects of these must
// survive it. The methods of Disk are safe for concurrent use.
type Disk struct {
	memory *vfs.MemFS

	mu           sync.Mutex
	at           int // number of the sync at which the power fails
	syncs        int
	acknowledged int
	safe         int // number of calls acknowledged before the power failed
}

// New returns an empty disk whose power fails at the sync with the number at,
// counted from 1. From that sync on, nothing becomes durable, but no operation
// returns an error.
func New(at int) *Disk { return &Disk{memory: vfs.NewStrictMem(), at: at} }

// Options returns the options of a Pebble database on this disk. They turn
// automatic compactions off, so that Pebble syncs only while the test calls it,
// and each run has the same syncs. Without compactions, tables pile up. The
// options therefore also lift the limit at which these tables would stop writes.
func (d *Disk) Options() *pebble.Options {
	fs := fulldisk.Wrap(d.memory, func(op, _ string) error {
		if op == "sync" {
			d.sync()
		}
		return nil
	})
	return &pebble.Options{
		FS: fs, DisableAutomaticCompactions: true, L0StopWritesThreshold: math.MaxInt32, Logger: pebbledb.Silent,
	}
}

// sync is called before each sync of a file or directory.
func (d *Disk) sync() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.syncs++; d.syncs == d.at {
		d.memory.SetIgnoreSyncs(true)
		d.safe = d.acknowledged
	}
}

// Acknowledge tells the disk that a call of the tested program has returned. The
// effects of that call must survive a later power failure.
func (d *Disk) Acknowledge() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.acknowledged++
}

// Failed reports whether the power has failed.
func (d *Disk) Failed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.syncs >= d.at
}

// Restart turns the power on again. The database must be closed. The disk then
// contains the data that was synced before the power failed, or before Restart if
// the power did not fail. The power does not fail again.
//
// safe is the number of calls that were acknowledged before the power failed, or of
// all acknowledged calls if the power did not fail.
func (d *Disk) Restart() (safe int, failed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if failed = d.syncs >= d.at; !failed {
		d.safe = d.acknowledged
	}
	d.memory.ResetToSyncedState()
	d.memory.SetIgnoreSyncs(false)
	d.at = math.MaxInt
	return d.safe, failed
}
