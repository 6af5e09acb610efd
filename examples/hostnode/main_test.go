package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/buildertest"
	"github.com/jamq/jamq/examples/hostnode/host"
	"github.com/jamq/jamq/internal/wait"
)

func TestNodesBundlesBecomeFinal(t *testing.T) {
	ctx := wait.Context(t)
	var out strings.Builder
	require.NoError(t, run(ctx, &out))
	require.Equal(t, 6, strings.Count(out.String(), "accumulated → finalized"), out.String())
}

// The chain does not wait for the builder: blocks are imported and final before it is opened. The
// blocks that the adapter makes have all fields, and a builder with an empty log is refused later.
func TestNodeRunsBeforeTheBuilder(t *testing.T) {
	ctx := wait.Context(t)
	node, err := host.New(50 * time.Millisecond)
	require.NoError(t, err)
	running, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- node.Run(running) }()
	first := node.FinalizedHead().Header.Slot
	wait.Until(t, func() bool { return node.FinalizedHead().Header.Slot > first+3 }, "final blocks")
	var out strings.Builder
	require.NoError(t, build(ctx, node, &out))
	require.Equal(t, 6, strings.Count(out.String(), "accumulated → finalized"), out.String())
	require.ErrorIs(t, build(ctx, node, &out), builder.ErrServiceInUse, "the log is empty again")
	events, err := node.Events(ctx, 0)
	require.NoError(t, err)
	var blocks []jamq.Block
	for _, e := range events {
		if e.Imported != nil {
			blocks = append(blocks, block(*e.Imported))
		}
	}
	require.Empty(t, buildertest.MissingFields(blocks...))
	stop()
	require.ErrorIs(t, <-ran, context.Canceled)
}
