package pebbledb

import (
	"testing"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"
	"github.com/stretchr/testify/require"
)

// A database in new directories survives a crash, with the data that was synced.
func TestNewDirectoriesAreDurable(t *testing.T) {
	fs := vfs.NewStrictMem()
	open := func() *DB {
		db, err := Open("a/b/c", &pebble.Options{FS: fs, Logger: Silent})
		require.NoError(t, err)
		return db
	}
	db := open()
	require.NoError(t, db.Pebble().Set([]byte("k"), []byte("v"), pebble.Sync))
	fs.SetIgnoreSyncs(true)
	require.NoError(t, db.Close())
	fs.ResetToSyncedState()
	fs.SetIgnoreSyncs(false)

	db = open()
	value, closer, err := db.Pebble().Get([]byte("k"))
	require.NoError(t, err)
	require.Equal(t, "v", string(value))
	require.NoError(t, closer.Close())
	require.NoError(t, db.Close())
}

func TestOpenInRealDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"x/y", "z"} {
		db, err := Open(dir, nil)
		require.NoError(t, err)
		require.NoError(t, db.Close())
	}
}

func TestEnd(t *testing.T) {
	for _, c := range []struct{ prefix, end []byte }{
		{[]byte{1, 2}, []byte{1, 3}},
		{[]byte{1, 0xff}, []byte{2}},
		{[]byte{0xff, 0xff, 0xff}, nil},
		{nil, nil},
	} {
		prefix := append([]byte{}, c.prefix...)
		require.Equal(t, c.end, End(prefix))
		require.True(t, string(prefix) == string(c.prefix))
	}
}
