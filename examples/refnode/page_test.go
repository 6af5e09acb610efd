package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/examples/refnode/live"
)

// The laboratory injects faults into the embedded chain only.
func TestLabNeedsTheEmbeddedChain(t *testing.T) {
	var out lockedBuffer
	require.Equal(t, exitUsage, run(t.Context(), []string{"-lab", "-jam", "ws://127.0.0.1:1"}, &out, &out))
	require.Contains(t, out.String(), "-lab configures the embedded chain and cannot be used with -jam")
}

// On a JAM node's chain the page shows what the feed does.
func TestPageOnAJAMNode(t *testing.T) {
	t.Parallel()
	jam := startJAMNode(t, "-slot", "60ms")
	n := launch(t, "-jam", jam.url)
	send(t, dial(t, n.url), accounts(t)[0], transfer(0, accounts(t)[1].Address))
	response, err := http.Get(n.url + "/live")
	require.NoError(t, err)
	defer response.Body.Close()
	var s live.State
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for s.Flow.Finalized == 0 || len(s.Chain.Blocks) < 5 || s.Chain.Final == 0 {
		require.True(t, lines.Scan(), "%v", lines.Err())
		if data, ok := strings.CutPrefix(lines.Text(), "data: {"); ok {
			require.NoError(t, json.Unmarshal([]byte("{"+data), &s))
		}
	}
	require.Nil(t, s.Lab)
	require.Equal(t, jam.url, s.Node.JAM)
	require.Equal(t, uint64(1), s.Heads.Finalized)
	require.Len(t, s.Bundles.Rows, 1)
	require.Equal(t, "finalized", s.Bundles.Rows[0].State)
	require.NotEmpty(t, s.Chain.Cores, "its package was on a core")
}
