package jamnps

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/bubble"
)

// A host without a logger sees how many peers its feed listens to, when the chain stands still, and
// when a peer announces blocks that it does not serve.
func TestFeedHealth(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := startGuarantor(t, w, 1), startGuarantor(t, w, 2)
		c := openClient(t, w, func(cfg *Config) { cfg.RetryAfter = time.Second }, a, b)
		f, sink := openFeed(t, c, FeedConfig{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Follow(ctx, sink) }()
		for range 4 {
			w.grow(w.best, 1)
		}
		w.finalize(1)
		w.grow(w.best, 1)
		time.Sleep(time.Minute)
		h := f.Health()
		require.True(t, h.Following)
		require.NoError(t, h.LastError)
		require.EqualValues(t, 5, h.Best)
		require.Zero(t, h.Behind)
		require.Equal(t, "following; the best block is of slot 5", h.String())
		require.EqualValues(t, 3, h.Finalized)
		require.Equal(t, []int{2, 2}, []int{h.Nodes, h.Wanted})
		require.Greater(t, time.Since(h.LastBest), 50*time.Second, "the chain stands still")

		for _, g := range []*guarantor{a, b} {
			g.set(func() { g.refuse[128] = true })
		}
		w.grow(w.best, 1)
		time.Sleep(time.Second)
		h = f.Health()
		require.ErrorIs(t, h.LastError, ErrRefused)
		require.Positive(t, h.Failures)
		require.False(t, h.FailingSince.IsZero())
		require.EqualValues(t, 1, h.Behind)

		b.down()
		time.Sleep(2 * time.Minute)
		require.Equal(t, 1, f.Health().Nodes)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.False(t, f.Health().Following)
		b.up()
	})
}
