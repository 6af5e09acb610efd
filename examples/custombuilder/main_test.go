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
	for _, line := range []string{"1: oracle, oracle, oracle, oracle", "2: 13 gwei, 12 gwei, 10 gwei, 9 gwei", "3: 7 gwei, 6 gwei, 4 gwei, 3 gwei"} {
		require.Contains(t, out.String(), "block "+line+"\n")
	}
	require.Equal(t, users/perBlock, strings.Count(out.String(), ": finalized"), out.String())
}
