package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/examples/refnode/live"
	"github.com/jamq/jamq/internal/wait"
)

// If stdout is not a terminal, -tui prints lines, and the node stops as usual.
func TestTerminalViewAsLines(t *testing.T) {
	t.Parallel()
	n := startNode(t, "-tui")
	wait.Until(t, func() bool {
		return strings.Contains(n.out.String(), "users 0 pool 0 queue 0 cores 0 accumulated 0 finalized 0")
	}, "the view as lines: %s", n.out)
	require.Zero(t, n.end(t))
	require.Contains(t, n.out.String(), "stopping")
}

func TestViewFlags(t *testing.T) {
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"-lab", "-jam", "ws://127.0.0.1:1"}, "-lab configures the embedded chain and cannot be used with -jam"},
		{[]string{"-tui", "-demo", "3"}, "cannot be used with -demo or -load"},
		{[]string{"-tui", "-load", "3"}, "cannot be used with -demo or -load"},
	} {
		var out lockedBuffer
		require.Equal(t, exitUsage, run(t.Context(), x.args, &out, &out))
		require.Contains(t, out.String(), x.want)
	}
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
