package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/wait"
)

func TestNodesBundlesBecomeFinal(t *testing.T) {
	ctx := wait.Context(t)
	var out strings.Builder
	require.NoError(t, run(ctx, &out))
	require.Equal(t, 6, strings.Count(out.String(), "accumulated → finalized"), out.String())
}
