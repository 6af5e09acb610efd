package smalldisk

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Mount returns a directory on a new file system of a size such as "32m", which is removed at the
// end of the test. Without the right to mount, the test is skipped with a message; with
// JAMQ_REQUIRE_MOUNT set it fails.
func Mount(t *testing.T, size string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "jamq-disk-") // not t.TempDir, which other users cannot enter
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.Remove(dir)) })
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		require.Empty(t, os.Getenv("JAMQ_REQUIRE_MOUNT"), "JAMQ_REQUIRE_MOUNT is set, and a file system cannot be mounted: %v", err)
		t.Skipf("a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

// Fill leaves the given number of bytes of a file system free, and returns the file that uses the
// rest.
func Fill(t *testing.T, dir string, free uint64) string {
	t.Helper()
	var stat syscall.Statfs_t
	require.NoError(t, syscall.Statfs(dir, &stat))
	available := stat.Bavail * uint64(stat.Bsize)
	require.Greater(t, available, free)
	name := filepath.Join(dir, "ballast")
	require.NoError(t, os.WriteFile(name, make([]byte, available-free), 0o600))
	return name
}
