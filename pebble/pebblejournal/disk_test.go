package pebblejournal

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/pebble/internal/fulldisk"
	"github.com/jamq/jamq/pebble/pebbledb"
)

// The disk is full from any operation on. Append and Replace fail with the
// reason, Close returns, and once there is space Open finds what was
// acknowledged, and the step that failed as a whole or not at all. A power cut
// meanwhile changes nothing.
func TestDiskIsFullFromAnyOperation(t *testing.T) {
	for _, powerCut := range []bool{false, true} {
		at := int64(1)
		for ; fullFrom(t, at, powerCut); at++ {
		}
		require.Greater(t, at, int64(80))
		t.Logf("%d operations to fail at", at-1)
	}
}

// step does the numbered step of the test's work.
func step(j journal.Journal, i int) error {
	if i == 8 {
		return j.Replace([]byte("8"))
	}
	return j.Append(fmt.Appendf(nil, "%d a", i), make([]byte, 500), fmt.Appendf(nil, "%d b", i))
}

// stepsIn returns how many steps led to records, and fails the test if one is there in part.
func stepsIn(t *testing.T, records []string) int {
	t.Helper()
	steps := 0
	if len(records) > 0 && records[0] == "8" {
		steps, records = 9, records[1:]
	}
	require.Zero(t, len(records)%3, "a step in part")
	for i := 0; i < len(records); i += 3 {
		n := steps + i/3
		require.Equal(t, fmt.Sprintf("%d a", n), records[i])
		require.Equal(t, fmt.Sprintf("%d b", n), records[i+2])
	}
	return steps + len(records)/3
}

func fullFrom(t *testing.T, at int64, powerCut bool) (failed bool) {
	t.Helper()
	disk := vfs.NewStrictMem()
	var operations atomic.Int64
	full := fulldisk.Wrap(disk, func(op, _ string) error {
		if operations.Add(1) >= at && op != "preallocate" {
			return syscall.ENOSPC
		}
		return nil
	})
	options := func(fs vfs.FS) Options {
		return Options{Pebble: &pebble.Options{FS: fs, MemTableSize: 4096, MaxManifestFileSize: 128, Logger: pebbledb.Silent}}
	}
	done, tried := 0, 0
	j, err := Open("db", options(full))
	if err == nil {
		require.NoError(t, j.Err())
		for i := 0; i < 12 && err == nil; i++ {
			tried++
			if err = step(j, i); err == nil {
				done++
			}
		}
		if err != nil {
			require.ErrorIs(t, err, ErrDisk, "operation %d", at)
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.Equal(t, err, j.Err())
			again := step(j, done)
			require.ErrorIs(t, again, journal.ErrFailed)
			require.ErrorIs(t, again, syscall.ENOSPC, "the reason stays")
		}
		closed := j.Close()
		if err == nil {
			err = closed
		}
	}
	if failed = operations.Load() >= at; !failed {
		require.NoError(t, err)
	}
	if err != nil {
		require.ErrorIs(t, err, syscall.ENOSPC, "operation %d", at)
	}
	if powerCut {
		disk.ResetToSyncedState()
	}
	j, err = Open("db", options(disk))
	require.NoError(t, err, "operation %d", at)
	require.Zero(t, j.Cut())
	steps := stepsIn(t, contents(t, j))
	require.GreaterOrEqual(t, steps, done, "acknowledged; operation %d", at)
	require.LessOrEqual(t, steps, tried)
	for i := steps; i < 14; i++ {
		require.NoError(t, step(j, i), "it goes on")
	}
	require.NoError(t, j.Close())
	return failed
}

// A journal in a database of the host fails when Options.Check returns an
// error.
func TestCheckOfSharedDatabase(t *testing.T) {
	disk := vfs.NewStrictMem()
	var full atomic.Bool
	options := &pebble.Options{Logger: pebbledb.Silent, FS: fulldisk.Wrap(disk, func(string, string) error {
		if full.Load() {
			return syscall.ENOSPC
		}
		return nil
	})}
	db, err := pebbledb.Open("db", options)
	require.NoError(t, err)
	j, err := Open("", Options{DB: db.Pebble(), Check: db.Err, Prefix: []byte("j")})
	require.NoError(t, err)
	require.NoError(t, j.Append([]byte("one")))
	full.Store(true)
	err = j.Append([]byte("two"))
	require.ErrorIs(t, err, ErrDisk)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, j.Close(), "the database is the host's")
	require.ErrorIs(t, db.Close(), ErrDisk)

	full.Store(false)
	disk.ResetToSyncedState()
	db, err = pebbledb.Open("db", options)
	require.NoError(t, err)
	j, err = Open("", Options{DB: db.Pebble(), Check: db.Err, Prefix: []byte("j")})
	require.NoError(t, err)
	require.Equal(t, []string{"one"}, contents(t, j))
	require.NoError(t, j.Close())
	require.NoError(t, db.Close())
}
