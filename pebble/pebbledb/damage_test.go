package pebbledb

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/wait"
)

const manyKeys = 20_000 // a table of several hundred index entries

func numberedKey(i int) []byte { return fmt.Appendf(nil, "key %08d", i) }

// damaged returns the files of a database with two tables that a compaction merges. A byte of
// the older table is flipped.
func damaged(t *testing.T) (fs *vfs.MemFS, table string) {
	t.Helper()
	fs = vfs.NewMem()
	db, err := Open("db", &pebble.Options{FS: fs, Logger: Silent, DisableAutomaticCompactions: true})
	require.NoError(t, err)
	for part := range 2 {
		batch := db.Pebble().NewBatch()
		for i := part; i < manyKeys; i += 2 {
			value := fmt.Appendf(nil, "%x", sha256.Sum256(numberedKey(i)))
			require.NoError(t, batch.Set(numberedKey(i), value, nil))
		}
		require.NoError(t, db.Commit(batch))
		require.NoError(t, db.Pebble().Flush())
		if part == 0 {
			all := db.Pebble().Compact(numberedKey(0), numberedKey(manyKeys), false)
			require.NoError(t, all) // it is in the last level
		}
	}
	require.NoError(t, db.Close())
	names, err := fs.List("db")
	require.NoError(t, err)
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".sst") })
	slices.Sort(names)
	file, err := fs.Open("db/" + names[0])
	require.NoError(t, err)
	raw, err := io.ReadAll(file)
	require.NoError(t, errors.Join(err, file.Close()))
	raw[len(raw)/3] ^= 0x55
	file, err = fs.Create("db/" + names[0])
	require.NoError(t, err)
	_, err = file.Write(raw)
	require.NoError(t, errors.Join(err, file.Close()))
	return fs, strings.TrimSuffix(names[0], ".sst")
}

// A damaged table that a compaction reads stops the database with an error that names the
// table. No key is lost, although the index of the table is larger than Pebble's default.
func TestCompactionReportsDamage(t *testing.T) {
	fs, table := damaged(t)
	db, err := Open("db", &pebble.Options{FS: fs, Logger: Silent, DisableAutomaticCompactions: true})
	require.NoError(t, err)
	require.NoError(t, db.Err())
	require.ErrorContains(t, db.Pebble().Compact(numberedKey(0), []byte("z"), false), table)
	wait.Until(t, func() bool { return db.Err() != nil }, "the database has the error")
	require.ErrorIs(t, db.Err(), ErrDisk)
	require.ErrorContains(t, db.Err(), "table "+table+" (checksum mismatch at", "it names the table and the offset")
	require.ErrorIs(t, commit(db, 0, 0), ErrDisk)
	for i := range manyKeys {
		_, closer, err := db.Pebble().Get(numberedKey(i))
		if err != nil {
			require.ErrorContains(t, err, table, "key %d", i)
			continue
		}
		require.NoError(t, closer.Close())
	}
	require.ErrorIs(t, db.Close(), ErrDisk)
}

// Pebble repeats a compaction that has failed at once and without end. Open stops that.
func TestDamageStopsCompactions(t *testing.T) {
	fs, table := damaged(t)
	var begun, failed atomic.Int64
	seen := make(chan struct{})
	options := &pebble.Options{FS: fs, Logger: Silent, L0CompactionThreshold: 1, EventListener: &pebble.EventListener{
		CompactionBegin: func(pebble.CompactionInfo) { begun.Add(1) },
		BackgroundError: func(error) {
			if failed.Add(1) == 1 {
				close(seen)
			}
		},
	}}
	db, err := Open("db", options)
	if err == nil {
		wait.Receive(t, seen, "the compaction fails")
		err = db.Err()
		for b := range batches {
			require.ErrorIs(t, commit(db, 0, b), ErrDisk)
		}
		require.NoError(t, db.Pebble().Flush())
		require.ErrorIs(t, db.Close(), ErrDisk)
	}
	require.ErrorIs(t, err, ErrDisk)
	require.ErrorContains(t, err, table)
	require.EqualValues(t, 1, begun.Load(), "compactions that began")
	require.EqualValues(t, 1, failed.Load(), "background errors")
}
