package journal

import (
	"bytes"
	"fmt"
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

// If the file is truncated at any byte, it opens with all complete frames, Cut
// returns the bytes removed, and appends continue.
func TestTornTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, j.Append([]byte("first")))
	require.NoError(t, j.Append([]byte("second"), []byte("third")))
	require.NoError(t, j.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	ends := map[int]int{25: 1, 60: 3} // the second and the third were appended together
	require.Len(t, whole, 60)
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

// Read has the same records as Replay, and changes nothing, not even a torn tail.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	whole := made("first", "second")
	for cut := range len(whole) + 1 {
		require.NoError(t, os.WriteFile(path, whole[:cut], 0o444))
		require.NoError(t, os.Chmod(path, 0o444))
		records := []string{}
		err := Read(path, func(r []byte) error {
			records = append(records, string(r))
			return nil
		})
		require.Equal(t, []string{"first", "second"}[:len(records)], records)
		switch cut {
		case 0, 25, len(whole):
			require.NoError(t, err)
		default:
			require.ErrorIs(t, err, ErrCorrupt)
			require.ErrorContains(t, err, fmt.Sprintf("at byte %d of %d", 25*len(records), cut))
		}
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(whole[:cut]), string(raw))
		require.NoError(t, os.Remove(path))
	}
	require.ErrorIs(t, Read(path, nil), os.ErrNotExist)
	require.NoFileExists(t, path)
}

// made returns a file of which each argument was appended by itself.
func made(records ...string) (file []byte) {
	for _, r := range records {
		file = append(file, frame(int64(len(file)), [][]byte{[]byte(r)})...)
	}
	return file
}

// A flipped bit in the last append ends the journal before it. A flipped bit in
// an earlier append is not a torn tail: the appends after it were acknowledged,
// so Open refuses the file.
func TestFlippedBits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	first, whole := made("first"), made("first", "second")
	for bit := range len(whole) * 8 {
		flipped := bytes.Clone(whole)
		flipped[bit/8] ^= 1 << (bit % 8)
		require.NoError(t, os.WriteFile(path, flipped, 0o644))
		j, err := Open(path)
		if bit/8 < len(first) {
			require.ErrorIs(t, err, ErrCorrupt)
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, flipped, after, "an operator finds all that there is")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []string{"first"}, contents(t, j))
		require.NoError(t, j.Close())
	}
}

// Nor is an append that was lost as a whole, or several in a row, before one that is there.
func TestLostInTheMiddle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	whole := made("first", "second", "third", "fourth")
	clear(whole[len(made("first")):len(made("first", "second", "third"))])
	require.NoError(t, os.WriteFile(path, whole, 0o644))
	_, err := Open(path)
	require.ErrorIs(t, err, ErrCorrupt)
}

// A record may hold what looks like a frame: at its place it is none.
func TestFramesInATornRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	whole := made("first", string(made("inner", "frames")))
	whole[len(made("first"))] ^= 1
	require.NoError(t, os.WriteFile(path, whole, 0o644))
	j, err := Open(path)
	require.NoError(t, err)
	require.Equal(t, []string{"first"}, contents(t, j))
	require.NoError(t, j.Close())
}

func FuzzScan(f *testing.F) {
	f.Add(made("first", ""))
	f.Add(frame(0, [][]byte{[]byte("first"), nil}))
	f.Add([]byte{255, 255, 255, 255, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		records := 0
		whole, err := scan(bytes.NewReader(data), int64(len(data)), func([]byte) error {
			records++
			return nil
		})
		if err != nil || whole > int64(len(data)) || whole < int64(lengthSize*records) {
			t.Fatalf("%v: %d records in %d of %d bytes", err, records, whole, len(data))
		}
		again, err := scan(bytes.NewReader(data[:whole]), whole, func([]byte) error {
			records--
			return nil
		})
		if err != nil || again != whole || records != 0 {
			t.Fatalf("%v: what is whole is not whole by itself", err)
		}
	})
}

// Some file systems leave zeros after a write that was interrupted.
func TestZerosAreNoRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	require.NoError(t, os.WriteFile(path, append(made("first"), make([]byte, 4096)...), 0o644))
	j, err := Open(path)
	require.NoError(t, err)
	require.Equal(t, int64(4096), j.Cut())
	require.Equal(t, []string{"first"}, contents(t, j))
	require.NoError(t, j.Close())
}
