package pebbledb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble"
	"github.com/stretchr/testify/require"
)

// filesOf returns the content of the files in a directory by name.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	files := make(map[string]string)
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(raw)
	}
	return files
}

// A database of which a file is missing either has all its keys, or is refused as often as it
// is opened and does not change, so that all keys are there when the file is back.
func TestMissingFile(t *testing.T) {
	for _, format := range []pebble.FormatMajorVersion{pebble.FormatMostCompatible, pebble.FormatNewest} {
		options := func() *pebble.Options { return &pebble.Options{Logger: Silent, FormatMajorVersion: format} }
		has := func(db *DB) {
			for w := range writers {
				_, closer, err := db.Pebble().Get(key(w, 0))
				require.NoError(t, err)
				require.NoError(t, closer.Close())
			}
		}
		original := t.TempDir()
		for w := range writers { // in a table, in a table after a restart, in the log
			db, err := Open(original, options())
			require.NoError(t, err)
			require.NoError(t, commit(db, w, 0))
			if w < writers-1 {
				require.NoError(t, db.Pebble().Flush())
			}
			require.NoError(t, db.Close())
		}
		refused := 0
		for name := range filesOf(t, original) {
			t.Run(fmt.Sprintf("%v without %s", format, name), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "db")
				require.NoError(t, os.CopyFS(dir, os.DirFS(original)))
				require.NoError(t, os.Rename(filepath.Join(dir, name), dir+".removed"))
				before := filesOf(t, dir)
				for range 2 {
					db, err := Open(dir, options())
					if err != nil {
						if table, is := strings.CutSuffix(name, ".sst"); is { // Pebble finds it
							require.ErrorContains(t, err, table)
						} else {
							require.ErrorIs(t, err, ErrMissing)
						}
						require.Equal(t, before, filesOf(t, dir))
						continue
					}
					has(db)
					require.NoError(t, db.Close())
					return
				}
				refused++
				require.NoError(t, os.Rename(dir+".removed", filepath.Join(dir, name)))
				db, err := Open(dir, options())
				require.NoError(t, err)
				has(db)
				require.NoError(t, db.Close())
			})
		}
		require.GreaterOrEqual(t, refused, 4, "manifest, its name, tables and the log")
	}
}

// A check that fails leaves all files as they were, and sees the keys that are only in the log.
func TestChecksChangeNothing(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, nil, func(*pebble.DB) error { panic("there is no database to check") })
	require.NoError(t, err)
	require.NoError(t, commit(db, 0, 0))
	require.NoError(t, db.Close())
	before := filesOf(t, dir)
	_, err = Open(dir, nil, func(db *pebble.DB) error {
		_, closer, err := db.Get(key(0, 0))
		require.NoError(t, err)
		require.NoError(t, closer.Close())
		return os.ErrInvalid
	})
	require.ErrorIs(t, err, os.ErrInvalid)
	require.Equal(t, before, filesOf(t, dir))
	db, err = Open(dir, nil, func(*pebble.DB) error { return nil })
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

// A database that must exist is not made, and neither is its directory.
func TestMissingDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	_, err := Open(dir, &pebble.Options{Logger: Silent, ErrorIfNotExists: true})
	require.ErrorIs(t, err, ErrMissing)
	require.NoDirExists(t, dir)
}
