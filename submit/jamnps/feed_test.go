package jamnps

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/feed"
)

// viewSink takes blocks as a queue does.
type viewSink struct {
	view   *chainview.View
	refuse error
	seen   func(b *jamq.Block) // called with each block, if not nil
}

func (s *viewSink) Import(_ context.Context, b jamq.Block, best jamq.HeaderHash) error {
	if s.refuse != nil {
		return s.refuse
	}
	if s.seen != nil {
		s.seen(&b)
	}
	return s.view.ImportBest(&b, best)
}

func (s *viewSink) Finalize(_ context.Context, hash jamq.HeaderHash) error {
	return s.view.Finalize(hash)
}

func openFeed(t *testing.T, c *Client, cfg FeedConfig) (*Feed, *viewSink) {
	t.Helper()
	f, err := OpenFeed(t.Context(), c, cfg)
	require.NoError(t, err)
	spec := c.cfg.Codec.Spec()
	view, err := chainview.New(&spec, f.Root())
	require.NoError(t, err)
	return f, &viewSink{view: view}
}

// until runs the feed until the sink has the given heads.
func until(t *testing.T, f *Feed, s *viewSink, best, final *worldBlock) {
	t.Helper()
	deadline := time.Now().Add(time.Hour)
	for s.view.Best().Hash != best.hash || s.view.Finalized().Hash != final.hash {
		require.True(t, time.Now().Before(deadline), "best %v, want %s; final %v, want %s", s.view.Best(), best.hash, s.view.Finalized(), final.hash)
		f.connectAll(t.Context())
		if err := f.catchUp(t.Context(), s); err != nil {
			require.False(t, errors.Is(err, feed.ErrSink) || errors.Is(err, ErrHistoryLost), "%v", err)
		}
		if s.view.Best().Hash != best.hash || s.view.Finalized().Hash != final.hash {
			select {
			case <-f.client.announced:
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
}

// A chain with forks and gaps over a connection that is cut and a node that goes away: the view
// comes to the same chain.
func TestFeedFollowsForks(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(7, 7))
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		g.set(func() { g.manners.opensUp = true }) // both sides open an UP stream
		c := openClient(t, w, nil, g)
		f, sink := openFeed(t, c, FeedConfig{})
		require.Equal(t, w.genesis.hash, f.Root().Hash)
		head := w.genesis
		for i := range 120 {
			for range 1 + random.IntN(3)*random.IntN(3) {
				from := head
				if random.IntN(5) == 0 { // a fork
					for depth := random.IntN(3); depth > 0 && from.parent != nil && from != w.finalized; depth-- {
						from = from.parent
					}
				}
				head = w.grow(from, 1+jamq.Slot(random.IntN(2)))
			}
			for head.height <= w.best.height && head != w.best { // the longest chain is unique
				head = w.grow(head, 1)
			}
			final := w.finalize(2 + random.IntN(3))
			head = w.grow(head, 1)
			switch i % 10 {
			case 3:
				g.cut()
			case 7:
				g.down()
				head = w.grow(head, 1)
				g.up()
			}
			until(t, f, sink, head, final)
		}
		require.Equal(t, uint64(w.best.height), sink.view.Best().Height, "no block is missing")
		require.LessOrEqual(t, f.tree.Len(), 40, "old blocks are forgotten")
		best, finalized := f.heads()
		require.Equal(t, w.best.hash, best.Hash)
		require.Equal(t, w.finalized.hash, finalized.Hash)
		require.Equal(t, w.finalized.root(), finalized.StateRoot)
	})
}

func TestBlocksBothWays(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		c := openClient(t, w, nil, g)
		var chain []*worldBlock
		for range 10 {
			chain = append(chain, w.grow(w.best, 1))
		}
		down, err := c.fetchBlocks(t.Context(), 0, chain[5].hash, descending, 3)
		require.NoError(t, err)
		require.Len(t, down, 3)
		up, err := c.fetchBlocks(t.Context(), 0, chain[5].hash, ascending, 3)
		require.NoError(t, err)
		require.Len(t, up, 3)
		for i := range 3 {
			require.Equal(t, chain[5-i].header, down[i].Header)
			require.Equal(t, chain[6+i].header, up[i].Header)
		}
		_, err = c.fetchBlocks(t.Context(), 0, jamq.HeaderHash{1}, descending, 3)
		require.ErrorIs(t, err, ErrRefused)
		for _, unknown := range []int{-1, 1} {
			_, err = c.fetchBlocks(t.Context(), unknown, chain[5].hash, descending, 3)
			require.ErrorIs(t, err, ErrInvalidConfig)
			_, err = c.fetchState(t.Context(), unknown, chain[5].hash, statetrie.Key{}, statetrie.Key{}, 100)
			require.ErrorIs(t, err, ErrInvalidConfig)
		}
		g.set(func() { g.garbage[128] = framed(append(append([]byte{}, chain[1].raw...), chain[0].raw...)) })
		one, err := c.fetchBlocks(t.Context(), 0, chain[1].hash, descending, 1)
		require.NoError(t, err)
		require.Len(t, one, 1, "more than requested is ignored")
		require.Equal(t, chain[1].header, one[0].Header)
	})
}

// A feed continues after the last block of a queue, and fetches all blocks
// since, in several requests.
func TestFeedFromAnOlderRoot(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		c := openClient(t, w, nil, g)
		var root *worldBlock
		for i := range 150 {
			if b := w.grow(w.best, 1); i == 4 {
				root = b
			}
		}
		final := w.finalize(3)
		head := w.grow(w.best, 1)
		f, sink := openFeed(t, c, FeedConfig{Root: jamq.Block{Hash: root.hash, Slot: root.header.Slot}})
		until(t, f, sink, head, final)
		require.Equal(t, uint64(146), sink.view.Best().Height)
		require.Equal(t, 4, g.count(128), "three for the gap, one for what was before the root")
		short, sink := openFeed(t, c, FeedConfig{Root: f.cfg.Root, MaxGap: 100})
		bubble.Await(t, time.Millisecond, func() bool { _, _, up := c.peers[0].announced(); return up }, "the peer has announced its heads")
		require.ErrorIs(t, short.catchUp(t.Context(), sink), ErrHistoryLost)
	})
}

// bestSink records the best blocks that it receives.
type bestSink struct {
	*viewSink
	bests []jamq.HeaderHash
}

func (s *bestSink) Import(ctx context.Context, b jamq.Block, best jamq.HeaderHash) error {
	s.bests = append(s.bests, best)
	return s.viewSink.Import(ctx, b, best)
}

// Until a feed that restarts has delivered a chain, the best block stays the one that the sink had;
// and it knows the anchors before its root.
func TestRestart(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		c := openClient(t, w, nil, g)
		f, sink := openFeed(t, c, FeedConfig{})
		for range 12 {
			w.grow(w.best, 1)
		}
		final := w.finalize(3)
		best := w.grow(w.best, 1)
		until(t, f, sink, best, final)
		again, err := OpenFeed(t.Context(), c, FeedConfig{Root: jamq.Block{Hash: final.hash, Slot: final.header.Slot}, Best: best.hash})
		require.NoError(t, err)
		head := w.grow(w.best, 1)
		told := &bestSink{viewSink: sink}
		bubble.Await(t, time.Millisecond, func() bool {
			require.NoError(t, again.catchUp(t.Context(), told))
			return sink.view.Best().Hash == head.hash
		}, "the head is the best block")
		require.NotContains(t, told.bests, final.hash, "no step back to the root")
		before := final.parent.parent
		refine, err := again.Context(t.Context(), before.hash, nil)
		require.NoError(t, err)
		require.Equal(t, before.root(), refine.StateRoot)
		require.EqualValues(t, beefyRootOf(before.hash), refine.BeefyRoot)
		_, err = again.Context(t.Context(), final.parent.hash, nil)
		require.NoError(t, err, "the root's header says what was before it")
	})
}

func TestFollowEnds(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		c := openClient(t, w, nil, g)
		f, sink := openFeed(t, c, FeedConfig{})
		w.grow(w.best, 1)
		refused := errors.New("full")
		sink.refuse = refused
		require.ErrorIs(t, f.Follow(t.Context(), sink), refused)
		sink.refuse = nil
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.Follow(ctx, sink) }()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		go func() { ended <- f.Follow(context.Background(), sink) }()
		c.Close()
		require.ErrorIs(t, <-ended, ErrClosed)

		late := openClient(t, w, func(cfg *Config) { cfg.DialTimeout = 50 * time.Millisecond }, g)
		g.down()
		short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := OpenFeed(short, late, FeedConfig{})
		require.ErrorIs(t, err, ErrDisconnected)
		g.up()
		for _, cfg := range []FeedConfig{{FollowPeers: 2}, {FinalPeers: 2}, {RecentHistory: 2}, {MaxGap: -1}, {LostAfter: -1}} {
			_, err := OpenFeed(t.Context(), late, cfg)
			require.ErrorIs(t, err, ErrInvalidConfig)
		}
		away := jamq.Block{Hash: jamq.HeaderHash{1}, Slot: 0}
		lost, sink := openFeed(t, late, FeedConfig{Root: away})
		require.ErrorIs(t, func() error {
			for {
				lost.connectAll(t.Context())
				w.finalize(0)
				w.grow(w.best, 1)
				if err := lost.catchUp(t.Context(), sink); errors.Is(err, ErrHistoryLost) {
					return err
				}
				time.Sleep(w.spec.SlotDuration)
			}
		}(), ErrHistoryLost)
	})
}
