package store_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/examples/refnode/store"
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
