package pebblejournal

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/journal/journaltest"
	"github.com/jamq/jamq/pebble/internal/powercut"
	"github.com/jamq/jamq/pebble/pebbledb"
)

func TestConformance(t *testing.T) {
	dir := t.TempDir()
	journaltest.Run(t, func() journal.Journal {
		j, err := Open(dir, Options{})
		require.NoError(t, err)
		require.Zero(t, j.Cut())
		return j
	})
}

// Journals and other data share a database.
func TestSharedDatabase(t *testing.T) {
	db, err := pebble.Open("", &pebble.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, db.Set([]byte("a"), []byte("host's"), pebble.Sync))
	require.NoError(t, db.Set([]byte("z"), []byte("host's"), pebble.Sync))
	other, err := Open("", Options{DB: db, Prefix: []byte("j2")})
	require.NoError(t, err)
	require.NoError(t, other.Append([]byte("other")))
	journaltest.Run(t, func() journal.Journal {
		j, err := Open("", Options{DB: db, Prefix: []byte("j1")})
		require.NoError(t, err)
		return j
	})
	require.Equal(t, []string{"other"}, contents(t, other))
	for _, key := range []string{"a", "z"} {
		value, closer, err := db.Get([]byte(key))
		require.NoError(t, err)
		require.Equal(t, "host's", string(value))
		require.NoError(t, closer.Close())
	}
}

func contents(t *testing.T, j journal.Journal) (records []string) {
	t.Helper()
	require.NoError(t, j.Replay(func(r []byte) error {
		records = append(records, string(r))
		return nil
	}))
	return records
}

// The process dies at any operation on its files, which is to say at any sync.
// Records acknowledged before are present; the records of the call in progress
// are all present or all absent.
func TestDiesAtAnyOperation(t *testing.T) {
	at, failed := 1, true
	for ; failed; at++ {
		power := powercut.New(at)
		j, err := Open("db", Options{Pebble: power.Options()})
		require.NoError(t, err)
		for i := range 12 {
			if i == 8 {
				require.NoError(t, j.Replace([]byte("8")))
			} else {
				require.NoError(t, j.Append(fmt.Appendf(nil, "%d a", i), make([]byte, 500), fmt.Appendf(nil, "%d b", i)))
			}
			power.Acknowledge()
			if i%5 == 4 {
				require.NoError(t, j.db.Pebble().Flush())
			}
		}
		require.NoError(t, j.Close())
		var safe int
		safe, failed = power.Restart()
		j, err = Open("db", Options{Pebble: power.Options()})
		require.NoError(t, err, "the power failed at sync %d", at)
		require.Zero(t, j.Cut())
		got := contents(t, j)
		steps := len(got) / 3
		if len(got) > 0 && got[0] == "8" {
			steps = 9 + (len(got)-1)/3
			got = got[1:]
		}
		require.Zero(t, len(got)%3, "whole or not at all")
		require.GreaterOrEqual(t, steps, safe, "the power failed at sync %d", at)
		require.LessOrEqual(t, steps, safe+1)
		require.NoError(t, j.Append([]byte("goes on")))
		require.NoError(t, j.Close())
	}
	t.Log(at-2, "syncs")
	require.Greater(t, at, 12, "each step syncs")
}

// A flipped bit in Pebble's log makes Pebble drop all later records without an
// error. The journal detects the loss, wherever the bit is.
func TestDamagedLog(t *testing.T) {
	for _, place := range []int{3, 30, 60, 98} { // per cent
		dir := t.TempDir()
		j, err := Open(dir, Options{})
		require.NoError(t, err)
		for i := range 50 {
			require.NoError(t, j.Append(fmt.Appendf(make([]byte, 2000), "%d", i)))
		}
		require.NoError(t, j.Close())
		logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
		require.NoError(t, err)
		for _, name := range logs {
			raw, err := os.ReadFile(name)
			require.NoError(t, err)
			if len(raw) > 50*2000 {
				raw[len(raw)*place/100] ^= 1
				require.NoError(t, os.WriteFile(name, raw, 0o644))
			}
		}
		for range 2 {
			_, err = Open(dir, Options{})
			require.ErrorIs(t, err, journal.ErrCorrupt, "%d %%", place)
		}
		require.NoError(t, os.Remove(filepath.Join(dir, acknowledgedName)))
		j, err = Open(dir, Options{})
		require.NoError(t, err, "an operator may accept the loss")
		require.NoError(t, j.Append([]byte("goes on")))
		require.NoError(t, j.Close())
		j, err = Open(dir, Options{})
		require.NoError(t, err)
		require.NoError(t, j.Close())
	}
}

// A file that was not written completely counts as 0 and causes no false alarm.
func TestAcknowledgedIsTorn(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, j.Append([]byte("one")))
	require.NoError(t, j.Close())
	for _, raw := range [][]byte{nil, {1, 2, 3}, make([]byte, 12), []byte("much longer than it should be")} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, acknowledgedName), raw, 0o644))
		j, err = Open(dir, Options{})
		require.NoError(t, err)
		require.Equal(t, []string{"one"}, contents(t, j))
		require.NoError(t, j.Close())
	}
}

// The power fails right after the journal was emptied, while the previous
// number is on disk. Open must not report a loss.
func TestPowerFailsAfterEmptying(t *testing.T) {
	disk := vfs.NewStrictMem()
	options := Options{Pebble: &pebble.Options{FS: disk, Logger: pebbledb.Silent}}
	j, err := Open("db", options)
	require.NoError(t, err)
	require.NoError(t, j.Append([]byte("one")))
	for _, name := range []string{"db", "db/" + acknowledgedName, ""} { // as the system does
		file, err := disk.OpenDir(name)
		require.NoError(t, err)
		require.NoError(t, file.Sync())
		require.NoError(t, file.Close())
	}
	require.NoError(t, j.Replace())
	disk.SetIgnoreSyncs(true)
	require.NoError(t, j.Close())
	disk.ResetToSyncedState()
	disk.SetIgnoreSyncs(false)
	j, err = Open("db", options)
	require.NoError(t, err)
	require.Empty(t, contents(t, j))
	require.NoError(t, j.Close())
}

// damages are ways in which a record can be spoiled.
var damages = map[string]func(t *testing.T, db *pebble.DB, key []byte){
	"flipped": func(t *testing.T, db *pebble.DB, key []byte) {
		value, closer, err := db.Get(key)
		require.NoError(t, err)
		flipped := append([]byte(nil), value...)
		flipped[len(flipped)-1] ^= 1
		require.NoError(t, closer.Close())
		require.NoError(t, db.Set(key, flipped, pebble.Sync))
	},
	"missing": func(t *testing.T, db *pebble.DB, key []byte) { require.NoError(t, db.Delete(key, pebble.Sync)) },
	"emptied": func(t *testing.T, db *pebble.DB, key []byte) { require.NoError(t, db.Set(key, nil, pebble.Sync)) },
	"displaced": func(t *testing.T, db *pebble.DB, key []byte) {
		other, closer, err := db.Get(binary.BigEndian.AppendUint64(nil, 1))
		require.NoError(t, err)
		require.NoError(t, db.Set(key, other, pebble.Sync))
		require.NoError(t, closer.Close())
	},
}

// spoiled is a database with a journal of three appends, in which one record is spoiled.
func spoiled(t *testing.T, record uint64, damage func(*testing.T, *pebble.DB, []byte)) *pebble.DB {
	t.Helper()
	db, err := pebble.Open("", &pebble.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	j, err := Open("", Options{DB: db})
	require.NoError(t, err)
	require.NoError(t, j.Append([]byte("1")))
	require.NoError(t, j.Append([]byte("2")))
	require.NoError(t, j.Append([]byte("3"), []byte("4")))
	damage(t, db, j.key(record))
	require.Error(t, j.Replay(func([]byte) error { return nil }))
	return db
}

// A damaged end is cut, with all that was appended together with it.
func TestDamagedEnd(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			db := spoiled(t, 4, damage)
			j, err := Open("", Options{DB: db})
			require.NoError(t, err)
			require.Positive(t, j.Cut())
			require.Equal(t, []string{"1", "2"}, contents(t, j))
			require.NoError(t, j.Append([]byte("new")))
			require.Equal(t, []string{"1", "2", "new"}, contents(t, j))
			j, err = Open("", Options{DB: db})
			require.NoError(t, err)
			require.Zero(t, j.Cut())
			require.Equal(t, []string{"1", "2", "new"}, contents(t, j))
		})
	}
}

// Records after a damaged one were acknowledged, so Open refuses the journal.
func TestDamageInTheMiddle(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			db := spoiled(t, 2, damage)
			before := keys(t, db)
			_, err := Open("", Options{DB: db})
			require.ErrorIs(t, err, journal.ErrCorrupt)
			require.Equal(t, before, keys(t, db), "an operator finds all that there is")
		})
	}
}

// A journal whose prefix others use too does not throw their data away.
func TestForeignKeys(t *testing.T) {
	db, err := pebble.Open("", &pebble.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, db.Set([]byte("jam"), []byte("host's"), pebble.Sync))
	_, err = Open("", Options{DB: db, Prefix: []byte("j")})
	require.ErrorIs(t, err, journal.ErrCorrupt)
	require.Equal(t, []string{"jam"}, keys(t, db))
}

func keys(t *testing.T, db *pebble.DB) (out []string) {
	t.Helper()
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		out = append(out, string(it.Key()))
	}
	require.NoError(t, it.Close())
	return out
}
