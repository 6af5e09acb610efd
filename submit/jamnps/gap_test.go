package jamnps

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/submit/codec"
)

// An honest peer whose blocks are so large that an answer has room for one and not for two
// gets a gap closed.
func TestAnswersWithRoomForOneBlock(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		head := w.genesis
		for range 20 {
			head = w.grow(head, 1)
		}
		c := openClient(t, w, func(cfg *Config) { cfg.MaxBlocks = uint32(3 * len(head.raw) / 2) }, g)
		f, sink := openFeed(t, c, FeedConfig{})
		f.connectAll(t.Context())
		awaitLeaf(t, f, head)
		var err error
		for range 100 {
			err = f.catchUp(t.Context(), sink)
			time.Sleep(time.Minute)
		}
		require.Equal(t, head.hash, sink.view.Best().Hash, "%v", err)
	})
}

// awaitHead waits until the first peer has announced a block, without a new connection.
func awaitHead(t *testing.T, f *Feed, b *worldBlock) {
	t.Helper()
	bubble.Await(t, time.Millisecond, func() bool {
		_, l, _ := f.client.peers[0].announced()
		return slices.Contains(l, leaf{b.hash, b.header.Slot})
	}, "the head")
}

// walked returns the number of blocks on the longest unfinished branch of a peer.
func (f *Feed) walked(peer int) (n int) {
	for _, w := range f.unfinished[peer] {
		n = max(n, len(w.path))
	}
	return n
}

// slowHalf returns a feed whose only peer serves one block in each answer and has served
// more than 30 of 50 blocks of the branch from its head.
func slowHalf(t *testing.T) (*world, *guarantor, *Feed, *viewSink, *worldBlock) {
	const timeout = 200 * time.Millisecond
	w := newWorld(t)
	g := startPeer(t, w, 1, manners{single: true})
	f, sink := openFeed(t, openClient(t, w, func(cfg *Config) { cfg.RequestTimeout, cfg.RetryAfter = timeout, timeout }, g), FeedConfig{})
	head := w.genesis
	for range 50 {
		head = w.grow(head, 1)
	}
	stop := g.pace(128, timeout/4)
	bubble.Await(t, time.Millisecond, func() bool {
		_ = f.catchUp(t.Context(), sink)
		return f.walked(0) > 30
	}, "a part of the branch")
	stop()
	g.set(func() { delete(g.hold, 128) })
	time.Sleep(time.Minute) // the back-off
	return w, g, f, sink, head
}

// A branch survives a failure after the head has grown by two blocks, the first of which is
// still fetched.
func TestBranchAfterTwoNewBlocksAndAFailure(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w, g, f, sink, head := slowHalf(t)
		have := f.walked(0)
		head = w.grow(w.grow(head, 1), 1)
		awaitHead(t, f, head)
		served := make(chan struct{}, 1)
		served <- struct{}{}
		g.set(func() { g.hold[128] = served }) // the second request has no answer in time
		require.Error(t, f.catchUp(t.Context(), sink))
		g.set(func() { delete(g.hold, 128) })
		close(served)
		time.Sleep(time.Minute)
		before := g.count(128)
		until(t, f, sink, head, w.genesis)
		require.LessOrEqual(t, g.count(128)-before, 52-have+3, "%d blocks are requested again", have)
	})
}

// A short fork that the peer announces meanwhile does not cost the branch to its head.
func TestBranchAfterAShortFork(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w, g, f, sink, head := slowHalf(t)
		// The best chain is longer than the fork.
		have := f.walked(0)
		f.highest = 0
		a := blocksUpTo(head, 2)
		for _, b := range a {
			require.NoError(t, f.importOne(t.Context(), sink, w.effect(b)))
		}
		require.NoError(t, f.chooseBest(t.Context(), sink))
		fork := w.grow(a[0], 2) // as high as the best chain of the feed
		awaitHead(t, f, fork)
		before := g.count(128)
		until(t, f, sink, head, w.genesis)
		require.LessOrEqual(t, g.count(128)-before, 50-have+3, "%d blocks are requested again", have)
	})
}

// A peer with one long invented fork, served just in time, delays the others by at most a few
// time-outs.
func TestLongForkServedJustInTime(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const timeout = 200 * time.Millisecond
		w, invented := twoWorlds(t)
		liar := startGuarantor(t, invented, 1)
		c := openClient(t, w, func(cfg *Config) { cfg.RequestTimeout = timeout }, liar, startGuarantor(t, w, 2), startGuarantor(t, w, 3))
		f, sink := openFeed(t, c, FeedConfig{})
		head := w.grow(w.grow(w.best, 1), 1)
		until(t, f, sink, head, w.genesis)
		bubble.Await(t, time.Millisecond, func() bool { _, _, up := c.peers[0].announced(); return up }, "the peer has announced its heads")
		fork := invented.genesis
		for i := range jamq.Slot(1300) {
			fork = invented.invent(fork, 1+i, codec.Extrinsics{})
			if i%500 == 499 {
				time.Sleep(time.Second)
			}
		}
		awaitHead(t, f, fork)
		defer liar.pace(128, timeout*9/10)()
		head = w.grow(head, 1)
		_, leaves, _ := c.peers[1].announced()
		for !slices.Contains(leaves, leaf{head.hash, head.header.Slot}) {
			time.Sleep(time.Millisecond)
			_, leaves, _ = c.peers[1].announced()
		}
		begun := time.Now()
		for f.tree.Get(head.hash) == nil {
			_ = f.catchUp(t.Context(), sink)
		}
		require.Less(t, time.Since(begun), 10*timeout)
	})
}

// If enough peers report final blocks beyond MaxGap, history is lost.
func TestGapBeyondTheMaximum(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		all := []*guarantor{startGuarantor(t, w, 1), startGuarantor(t, w, 2), startGuarantor(t, w, 3)}
		f, sink := openFeed(t, openClient(t, w, nil, all...), FeedConfig{MaxGap: 640})
		f.connectAll(t.Context())
		time.Sleep(time.Second)
		for i := range 700 {
			w.grow(w.best, 1)
			if i%100 == 0 {
				w.finalize(3)
			}
		}
		time.Sleep(time.Second)
		w.finalize(3)
		w.grow(w.best, 1)
		time.Sleep(time.Second)
		require.ErrorIs(t, f.catchUp(t.Context(), sink), ErrHistoryLost)
	})
}
