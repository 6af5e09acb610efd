package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAllFiveBecomeFinal(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out))
	require.Equal(t, 5, strings.Count(out.String(), "accumulated → finalized"), out.String())
}
