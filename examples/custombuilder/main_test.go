package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/wait"
)

// Oracle updates go first although they pay least, and every block becomes final.
func TestOracleFirst(t *testing.T) {
	ctx := wait.Context(t)
	var out strings.Builder
	require.NoError(t, run(ctx, &out))
	require.Contains(t, out.String(), "block 1: oracle, oracle, oracle, oracle\nblock 2: 13 gwei, 12 gwei, 10 gwei, 9 gwei\n")
	require.Equal(t, users/perBlock, strings.Count(out.String(), ": finalized"), out.String())
}
