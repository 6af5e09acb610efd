package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

// A second node on a data directory is refused, and told why.
func TestDataDirectoryIsForOne(t *testing.T) {
	cfg := DefaultConfig(jamq.Tiny(), time.Second, 1)
	cfg.DataDir = t.TempDir()
	n, err := New(cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, n.store.close()) }()
	_, err = New(cfg)
	require.ErrorContains(t, err, "one process at a time")
}
