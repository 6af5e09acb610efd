package journal

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func contents(t *testing.T, j Journal) (records []string) {
	t.Helper()
	require.NoError(t, j.Replay(func(r []byte) error {
		records = append(records, string(r))
		return nil
	}))
	return records
}

// A Replace that did not end leaves the old records, and nothing else.
func TestUnfinishedReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, j.Append([]byte("old")))
	require.NoError(t, j.Close())
	require.NoError(t, os.WriteFile(path+".new", []byte("half of it"), 0o644))
	j, err = Open(path)
	require.NoError(t, err)
	require.Equal(t, []string{"old"}, contents(t, j))
	require.NoError(t, j.Replace([]byte("new")))
	require.Equal(t, []string{"new"}, contents(t, j))
	require.NoError(t, j.Close())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// Cut anywhere, the file opens with all whole records, says what it cut, and goes on.
func TestTornTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, j.Append([]byte("first")))
	require.NoError(t, j.Append([]byte("second"), []byte("third")))
	require.NoError(t, j.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	ends := map[int]int{13: 1, 40: 3} // the second and the third were appended together
	require.Len(t, whole, 40)
	for cut := range len(whole) + 1 {
		require.NoError(t, os.WriteFile(path, whole[:cut], 0o644))
		j, err := Open(path)
		require.NoError(t, err)
		want, at := 0, 0
		for end, n := range ends {
			if end <= cut && n > want {
				want, at = n, end
			}
		}
		require.Equal(t, int64(cut-at), j.Cut())
		require.NoError(t, j.Append([]byte("new")))
		got := contents(t, j)
		require.Equal(t, append([]string{"first", "second", "third"}[:want:want], "new"), got)
		require.NoError(t, j.Close())
	}
}

func TestFlippedBits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	whole := frame(frame(nil, []byte("first"), false), []byte("second"), false)
	for bit := range len(whole) * 8 {
		flipped := bytes.Clone(whole)
		flipped[bit/8] ^= 1 << (bit % 8)
		require.NoError(t, os.WriteFile(path, flipped, 0o644))
		j, err := Open(path)
		require.NoError(t, err)
		got := contents(t, j)
		require.Less(t, len(got), 2)
		if bit/8 >= 13 {
			require.Equal(t, []string{"first"}, got)
		}
		require.NoError(t, j.Close())
	}
}

func FuzzScan(f *testing.F) {
	f.Add(frame(frame(nil, []byte("first"), false), nil, false))
	f.Add(frame(frame(nil, []byte("first"), true), nil, false))
	f.Add([]byte{255, 255, 255, 255, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		records := 0
		whole, err := scan(bytes.NewReader(data), func([]byte) error {
			records++
			return nil
		})
		if err != nil || whole > int64(len(data)) || whole < int64(headerSize*records) {
			t.Fatalf("%v: %d records in %d of %d bytes", err, records, whole, len(data))
		}
		again, err := scan(bytes.NewReader(data[:whole]), func([]byte) error {
			records--
			return nil
		})
		if err != nil || again != whole || records != 0 {
			t.Fatalf("%v: what is whole is not whole by itself", err)
		}
	})
}

// Some file systems leave zeros where a write was under way.
func TestZerosAreNoRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	require.NoError(t, os.WriteFile(path, append(frame(nil, []byte("first"), false), make([]byte, 4096)...), 0o644))
	j, err := Open(path)
	require.NoError(t, err)
	require.Equal(t, int64(4096), j.Cut())
	require.Equal(t, []string{"first"}, contents(t, j))
	require.NoError(t, j.Close())
}
