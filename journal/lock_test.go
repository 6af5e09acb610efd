package journal

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A second process on the same file would overwrite acknowledged records. Open
// refuses it, also after the file was replaced, until the first has closed it.
func TestOnlyOneHasIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	first, err := Open(path)
	require.NoError(t, err)
	if !locks {
		t.Skip("this system has no flock: see Open")
	}
	require.NoError(t, first.Append([]byte("one")))
	_, err = Open(path)
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, first.Replace([]byte("two")))
	_, err = Open(path)
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, first.Append([]byte("three")))
	require.NoError(t, first.Close())
	second, err := Open(path)
	require.NoError(t, err)
	require.Equal(t, []string{"two", "three"}, contents(t, second))
	require.NoError(t, second.Close())
}
