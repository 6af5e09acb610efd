package jamnps

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/wait"
)

// TestUDP: over real sockets, a package reaches its guarantor and blocks reach the feed.
// The other tests of this package run over a network in memory.
func TestUDP(t *testing.T) {
	w := newWorld(t)
	w.lan = nil
	g := startGuarantor(t, w, 1)
	cfg := DefaultConfig(privateKey(99), w.genesis.hash, w.codec, []Peer{g.peer()})
	cfg.Listen = "127.0.0.1:0"
	cfg.DialTimeout, cfg.RequestTimeout, cfg.IdleTimeout = time.Hour, time.Hour, time.Hour
	c, err := Open(cfg)
	require.NoError(t, err)
	defer c.Close()

	raw, _ := encodePackage(t, w, jamq.RefineContext{}, "x", 0)
	require.NoError(t, c.SubmitPackage(wait.Context(t), Submission{Attempt: 1, Package: raw}))
	require.Len(t, g.submissions(), 1)

	f, sink := openFeed(t, c, FeedConfig{})
	var head *worldBlock
	for range 3 {
		head = w.grow(w.best, 1)
	}
	wait.Until(t, func() bool {
		require.NoError(t, f.catchUp(wait.Context(t), sink))
		return sink.view.Best().Hash == head.hash
	}, "block %s", head.hash)
}
