package store_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/evmrollup/store"
	"github.com/jamq/jamq/pebble/pebbledb"
	"github.com/jamq/jamq/pebble/pebblestate"
	"github.com/jamq/jamq/statedb"
)

// A directory of another version is refused and not changed; one that is in use, too.
func TestOpen(t *testing.T) {
	dir, log := filepath.Join(t.TempDir(), "data"), slog.New(slog.DiscardHandler)
	s, err := store.Open(dir, log)
	require.NoError(t, err)
	require.NoError(t, s.Log.Append([]byte("one")))
	_, err = store.Open(dir, log)
	require.ErrorIs(t, err, pebbledb.ErrInUse)
	require.ErrorContains(t, err, "only one process")
	require.NoError(t, s.Close())

	s, err = store.Open(dir, log)
	require.NoError(t, err)
	require.NoError(t, s.Log.Replay(func(record []byte) error {
		require.Equal(t, "one", string(record))
		return nil
	}))
	require.NoError(t, s.Close())

	for _, records := range [][]statedb.Record{
		{{Key: []byte("version"), Value: []byte("99")}}, // a later one
		{{Key: []byte("version"), Value: nil}},          // the first one had none
	} {
		db, err := pebblestate.Open(filepath.Join(dir, "db"), pebblestate.Options{})
		require.NoError(t, err)
		require.NoError(t, db.Write(records))
		require.NoError(t, db.Close())
		_, err = store.Open(dir, log)
		require.ErrorIs(t, err, store.ErrVersion)
	}
}

// A directory of which any file or folder is missing either has everything, or is refused as
// often as it is opened, and opens again when the file is back.
func TestMissingFile(t *testing.T) {
	log, original := slog.New(slog.DiscardHandler), filepath.Join(t.TempDir(), "data")
	s, err := store.Open(original, log)
	require.NoError(t, err)
	require.NoError(t, s.Ledger.Write([]statedb.Record{{Key: []byte("block"), Value: []byte("one")}}))
	require.NoError(t, s.Log.Append([]byte("one")))
	require.NoError(t, s.Close())
	open := func(dir string) error {
		s, err := store.Open(dir, log)
		if err != nil {
			return err
		}
		value, err := s.Ledger.Get([]byte("block"))
		require.NoError(t, err)
		require.Equal(t, "one", string(value))
		require.NoError(t, s.Log.Replay(func(record []byte) error {
			require.Equal(t, "one", string(record))
			return nil
		}))
		return s.Close()
	}
	var names []string
	require.NoError(t, filepath.WalkDir(original, func(path string, _ os.DirEntry, err error) error {
		name, _ := filepath.Rel(original, path)
		names = append(names, name)
		return err
	}))
	var refused []string
	for _, name := range names[1:] {
		dir := filepath.Join(t.TempDir(), "data")
		require.NoError(t, os.CopyFS(dir, os.DirFS(original)))
		require.NoError(t, os.Rename(filepath.Join(dir, name), dir+".removed"))
		if open(dir) == nil {
			continue
		}
		require.Error(t, open(dir), name)
		refused = append(refused, name)
		require.NoError(t, os.Rename(dir+".removed", filepath.Join(dir, name)), name)
		require.NoError(t, open(dir), name)
	}
	require.Contains(t, refused, "db")
	require.Contains(t, refused, "db/CURRENT")
	require.Greater(t, len(refused), 3, "the manifest and the log too: %v", refused)
}

// The error of a damaged file of the database names the file, and does not say that another
// process has the directory.
func TestOpenNamesDamagedFile(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, kind := range []string{"MANIFEST", "OPTIONS", "CURRENT"} {
		dir := filepath.Join(t.TempDir(), "data")
		s, err := store.Open(dir, log)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		names, err := filepath.Glob(filepath.Join(dir, "db", kind+"*"))
		require.NoError(t, err)
		require.NotEmpty(t, names)
		for _, name := range names {
			require.NoError(t, os.WriteFile(name, []byte("damaged"), 0o600))
		}
		_, err = store.Open(dir, log)
		t.Log(kind, err)
		require.Error(t, err, kind)
		require.NotErrorIs(t, err, pebbledb.ErrInUse)
		require.NotContains(t, err.Error(), "process")
		require.ErrorContains(t, err, dir)
	}
}
