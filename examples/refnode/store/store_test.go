package store_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/examples/refnode/store"
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

	for name, change := range map[string]func() error{
		"a later version": func() error { return os.WriteFile(filepath.Join(dir, "version"), []byte("3\n"), 0o644) },
		"the first one":   func() error { return os.Remove(filepath.Join(dir, "version")) },
	} {
		require.NoError(t, change(), name)
		_, err = store.Open(dir, log)
		require.ErrorIs(t, err, store.ErrVersion, name)
	}
}
