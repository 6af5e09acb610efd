package jip2

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/jamtest/jip2server"
)

// A host without a logger sees when its feed fails, since when and why, when the node is away, and
// when the chain itself stands still.
func TestFeedHealth(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		f := follow(t, nil)
		require.False(t, f.feed.Health().Following)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.feed.Follow(ctx, f.sink) }()
		f.step(5)
		time.Sleep(time.Minute)
		h := f.feed.Health()
		require.True(t, h.Following)
		require.NoError(t, h.LastError)
		require.EqualValues(t, 5, h.Best)
		require.EqualValues(t, 3, h.Finalized)
		require.Equal(t, []int{1, 1}, []int{h.Nodes, h.Wanted})
		require.Less(t, time.Since(h.LastSuccess), 10*time.Second)
		require.GreaterOrEqual(t, time.Since(h.LastBest), 50*time.Second, "the chain stands still")

		f.breaks("finalizedBlock", jip2server.Fault{Error: &jip2server.Error{Code: -32603, Message: "out of order"}})
		began := time.Now()
		time.Sleep(time.Hour)
		h = f.feed.Health()
		require.ErrorContains(t, h.LastError, "out of order")
		require.Greater(t, h.Failures, 100)
		require.InDelta(t, float64(began.Unix()), float64(h.FailingSince.Unix()), 10)
		require.Greater(t, time.Since(h.LastSuccess), 59*time.Minute)

		f.breaks("finalizedBlock", jip2server.Fault{})
		f.step(1)
		time.Sleep(10 * time.Second)
		h = f.feed.Health()
		require.NoError(t, h.LastError)
		require.Zero(t, h.Failures)
		require.True(t, h.FailingSince.IsZero())
		require.Less(t, time.Since(h.LastBest), 11*time.Second)

		f.down()
		time.Sleep(time.Minute)
		h = f.feed.Health()
		require.Zero(t, h.Nodes)
		require.ErrorIs(t, h.LastError, ErrDisconnected)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.False(t, f.feed.Health().Following)
	})
}
