package store

import (
	"archive/tar"
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/statedb"
)

// A copy has the data of the moment, and the directory goes on.
func TestCopy(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	from, to := t.TempDir(), t.TempDir()
	s, err := Open(from, log)
	require.NoError(t, err)
	write := func(value string) {
		require.NoError(t, s.Ledger.Write([]statedb.Record{{Key: []byte("k"), Value: []byte(value)}}))
	}
	write("before")
	var raw bytes.Buffer
	require.NoError(t, s.WriteCopy(&raw))
	write("after")
	require.NoError(t, s.Close())

	there, err := Exists(to)
	require.NoError(t, err)
	require.False(t, there)
	for _, cut := range []int{0, 100, raw.Len() / 2} {
		require.Error(t, ReadCopy(to, bytes.NewReader(raw.Bytes()[:cut])))
		left, err := os.ReadDir(to)
		require.NoError(t, err)
		require.Empty(t, left)
	}
	require.NoError(t, ReadCopy(to, &raw))
	there, err = Exists(to)
	require.NoError(t, err)
	require.True(t, there)
	copied, err := Open(to, log)
	require.NoError(t, err)
	value, err := copied.Ledger.Get([]byte("k"))
	require.NoError(t, err)
	require.Equal(t, "before", string(value))
	require.NoError(t, copied.Close())
}

// A copy cannot write outside of its directory.
func TestHostileCopy(t *testing.T) {
	for _, name := range []string{"../evil", "/evil", "a/b", "..", ""} {
		dir := filepath.Join(t.TempDir(), "data")
		var raw bytes.Buffer
		archive := tar.NewWriter(&raw)
		require.NoError(t, archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: 1}))
		_, err := archive.Write([]byte("x"))
		require.NoError(t, err)
		require.NoError(t, archive.Close())
		require.ErrorIs(t, ReadCopy(dir, &raw), errName)
	}
}
