package pebblejournal

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/pebble/pebbledb"
)

// heldTables is a disk on which no table is made until the channel is closed.
type heldTables struct {
	vfs.FS
	until chan struct{}
}

func (h heldTables) Create(name string) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") {
		<-h.until
	}
	return h.FS.Create(name)
}

// A journal of which a file is missing either has all acknowledged records, or is refused as
// often as it is opened and does not change, so that they are there when the file is back. The
// last records are in two logs, because the process died before the older one was in a table.
func TestMissingFileIsNotReplaced(t *testing.T) {
	until := make(chan struct{})
	running, original := t.TempDir(), t.TempDir()
	options := Options{Pebble: &pebble.Options{
		FS: heldTables{vfs.Default, until}, Logger: pebbledb.Silent, MemTableSize: 8 << 10, MemTableStopWritesThreshold: 4,
	}}
	j, err := Open(running, options)
	require.NoError(t, err)
	const records = 8
	for i := range records {
		require.NoError(t, j.Append(bytes.Repeat([]byte{byte(i)}, 1500)))
	}
	require.NoError(t, os.CopyFS(original, os.DirFS(running)))
	close(until)
	require.NoError(t, j.Close())

	read := func(dir string) error {
		j, err := Open(dir, Options{})
		if err != nil {
			return err
		}
		n := 0
		require.NoError(t, j.Replay(func(record []byte) error {
			require.EqualValues(t, n, record[0])
			n++
			return nil
		}))
		require.Equal(t, records, n)
		return j.Close()
	}
	entries, err := os.ReadDir(original)
	require.NoError(t, err)
	refusedLogs := 0
	for _, missing := range entries {
		dir := filepath.Join(t.TempDir(), "journal")
		require.NoError(t, os.CopyFS(dir, os.DirFS(original)))
		require.NoError(t, os.Rename(filepath.Join(dir, missing.Name()), dir+".removed"))
		if read(dir) == nil {
			continue
		}
		require.Error(t, read(dir), missing.Name())
		if strings.HasSuffix(missing.Name(), ".log") {
			refusedLogs++
		}
		require.NoError(t, os.Rename(dir+".removed", filepath.Join(dir, missing.Name())))
		require.NoError(t, read(dir), missing.Name())
	}
	require.GreaterOrEqual(t, refusedLogs, 2)

	// All files but the number of acknowledged records are gone.
	lost := t.TempDir()
	require.NoError(t, os.Link(filepath.Join(original, "acknowledged"), filepath.Join(lost, "acknowledged")))
	require.ErrorIs(t, read(lost), pebbledb.ErrMissing)
}
