package jamnps

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/submit/codec"
)

// hookSink calls a function before each block.
type hookSink struct {
	*viewSink
	before func(b *jamq.Block)
}

func (s *hookSink) Import(ctx context.Context, b jamq.Block, best jamq.HeaderHash) error {
	s.before(&b)
	return s.viewSink.Import(ctx, b, best)
}

// awaitLeaf waits until the first peer has announced a block.
func awaitLeaf(t *testing.T, f *Feed, b *worldBlock) {
	t.Helper()
	bubble.Await(t, time.Millisecond, func() bool {
		f.connectAll(t.Context())
		_, leaves, _ := f.client.peers[0].announced()
		return slices.Contains(leaves, leaf{b.hash, b.header.Slot})
	}, "the peer has announced the head")
}

// A peer that serves many forks of 64 blocks, each just in time, does not hold up the
// others.
func TestManyForksServedJustInTime(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const timeout = 200 * time.Millisecond
		w, invented := twoWorlds(t)
		liar := startGuarantor(t, invented, 1)
		c := openClient(t, w, func(cfg *Config) { cfg.RequestTimeout = timeout }, liar, startGuarantor(t, w, 2), startGuarantor(t, w, 3))
		f, sink := openFeed(t, c, FeedConfig{})
		head := w.grow(w.grow(w.best, 1), 1)
		until(t, f, sink, head, w.genesis)
		bubble.Await(t, time.Millisecond, func() bool { _, _, up := c.peers[0].announced(); return up }, "the peer has announced its heads")
		const forks = 40
		for i := range jamq.Slot(forks) {
			fork := invented.genesis
			for j := range jamq.Slot(blocksPerRequest) {
				fork = invented.invent(fork, 1+i+j, codec.Extrinsics{})
			}
		}
		bubble.Await(t, time.Millisecond, func() bool { _, leaves, _ := c.peers[0].announced(); return len(leaves) >= forks }, "the peer has announced all forks")
		defer liar.pace(128, timeout*9/10)()
		// A longer chain than the forks, so that the invented ones are not the best chain.
		for range 80 {
			head = w.grow(head, 1)
		}
		begun := time.Now()
		until(t, f, sink, head, w.genesis)
		require.Less(t, time.Since(begun), 10*timeout, "the other peers' blocks wait for all forks")
	})
}

// unfinishedBranch returns a feed with a branch of its first peer from block 30 back to about
// block 2, blocks 1 to 25 of which another peer has delivered, and of which block 22 is
// final, so that the tree has forgotten the oldest blocks of the branch.
func unfinishedBranch(t *testing.T, cfg FeedConfig) (*Feed, *viewSink, []*worldBlock) {
	const timeout = 200 * time.Millisecond
	w, elsewhere := twoWorlds(t)
	slow, quick := startPeer(t, w, 1, manners{single: true}), startGuarantor(t, elsewhere, 2)
	c := openClient(t, w, func(cfg *Config) { cfg.RequestTimeout, cfg.RetryAfter = timeout, timeout }, slow, quick)
	f, sink := openFeed(t, c, cfg)
	bubble.Await(t, time.Millisecond, func() bool { f.connectAll(t.Context()); return f.Health().Nodes == 2 }, "both are connected")
	stop := slow.pace(128, timeout/4)
	head := w.genesis
	for range 30 {
		head = w.grow(head, 1)
	}
	bubble.Await(t, time.Millisecond, func() bool {
		_ = f.catchUp(t.Context(), sink)
		return f.walked(0) > 22
	}, "a part of the branch")
	require.Equal(t, w.genesis.hash, sink.view.Best().Hash)
	chain := blocksUpTo(head, 30)
	for _, b := range chain[:25] {
		require.NoError(t, f.importOne(t.Context(), sink, w.effect(b)))
	}
	for i, p := range c.peers {
		p.mu.Lock()
		clear(p.heads.leaves)
		p.heads.final = leaf{chain[21].hash, chain[21].header.Slot}
		if i == 0 {
			p.heads.leaves[head.hash] = head.header.Slot
		}
		p.mu.Unlock()
	}
	require.NoError(t, f.chooseBest(t.Context(), sink))
	require.NoError(t, f.finalize(t.Context(), sink))
	require.Equal(t, chain[21].hash, sink.view.Finalized().Hash)
	stop()
	slow.set(func() { delete(slow.hold, 128) })
	time.Sleep(time.Minute) // the back-off
	return f, sink, chain
}

// Finality that passes the oldest blocks of an unfinished branch makes its head no fork: an
// honest peer's head is still delivered.
func TestFinalityPassesAnUnfinishedBranch(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		f, sink, chain := unfinishedBranch(t, FeedConfig{FinalPeers: 2})
		require.NoError(t, f.catchUp(t.Context(), sink))
		_, leaves, _ := f.client.peers[0].announced()
		require.Contains(t, leaves, leaf{chain[29].hash, chain[29].header.Slot}, "the honest peer's head is forgotten")
		require.Equal(t, chain[29].hash, sink.view.Best().Hash)
	})
}

// With a FinalPeers of 1, Follow does not end.
func TestFinalityPassesAnUnfinishedBranchToAFinalBlock(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		f, sink, chain := unfinishedBranch(t, FeedConfig{FinalPeers: 1})
		p := f.client.peers[0]
		p.mu.Lock()
		clear(p.heads.leaves)
		p.heads.final = leaf{chain[29].hash, chain[29].header.Slot}
		p.mu.Unlock()
		require.NotErrorIs(t, f.catchUp(t.Context(), sink), ErrHistoryLost)
		require.Equal(t, chain[29].hash, sink.view.Finalized().Hash)
	})
}

// A branch that failed in its second fetch continues although the head has grown by a block: no
// block is fetched a third time. The peer is a usual one, with 64 blocks in each answer.
func TestUnfinishedBranchOfAHeadThatGrows(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		f, sink := openFeed(t, openClient(t, w, nil, g), FeedConfig{})
		f.maxHeld = 100 * sizeOf(&codec.Effect{})
		head := w.genesis
		for range 1000 {
			head = w.grow(head, 1)
		}
		awaitLeaf(t, f, head)
		hook := &hookSink{sink, func(*jamq.Block) { g.set(func() { g.refuse[128] = true }) }}
		bubble.Await(t, time.Millisecond, func() bool { _ = f.catchUp(t.Context(), hook); return f.highest > 10 }, "the oldest blocks")
		require.Positive(t, f.walked(0))
		remaining := f.walked(0)
		hook.before = func(*jamq.Block) {}
		head = w.grow(head, 1)
		bubble.Await(t, time.Millisecond, func() bool {
			_, l, _ := f.client.peers[0].announced()
			return slices.Contains(l, leaf{head.hash, head.header.Slot})
		}, "the head")
		g.set(func() { g.refuse[128] = false })
		before := g.count(128)
		until(t, f, sink, head, w.genesis)
		require.LessOrEqual(t, g.count(128)-before, remaining/blocksPerRequest+6)
	})
}

// A branch is not lost because the first request for a newer head fails.
func TestUnfinishedBranchAndAFailureAtTheNextHead(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w, g, f, sink, head := slowHalf(t)
		g.set(func() { g.refuse[128] = true })
		head = w.grow(head, 1)
		bubble.Await(t, time.Millisecond, func() bool {
			_, l, _ := f.client.peers[0].announced()
			return slices.Contains(l, leaf{head.hash, head.header.Slot})
		}, "the head")
		time.Sleep(time.Minute)
		require.Error(t, f.catchUp(t.Context(), sink))
		g.set(func() { g.refuse[128] = false })
		before := g.count(128)
		until(t, f, sink, head, w.genesis)
		require.LessOrEqual(t, g.count(128)-before, 51-30+3)
	})
}

// The second fetch holds no more blocks than the first.
func TestSecondFetchHoldsFewBlocks(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		f, sink := openFeed(t, openClient(t, w, nil, g), FeedConfig{})
		f.maxHeld = 10 * sizeOf(&codec.Effect{})
		head := w.genesis
		for range 200 {
			head = w.grow(head, 1)
		}
		held := &heldSink{viewSink: sink, feed: f}
		bubble.Await(t, time.Millisecond, func() bool { _ = f.catchUp(t.Context(), held); return sink.view.Best().Hash == head.hash }, "the gap is closed")
		require.LessOrEqual(t, held.most, 10)
	})
}

// Announcements of a peer whose blocks cannot be fetched cause few attempts: at most 64 in
// each slot.
func TestAnnouncementsDuringAFailure(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w, invented := twoWorlds(t)
		liar, honest := startGuarantor(t, invented, 1), startGuarantor(t, w, 2)
		liar.set(func() { liar.refuse[128] = true })
		c := openClient(t, w, func(cfg *Config) { cfg.RetryAfter = 2 * time.Second }, liar, honest)
		f, sink := openFeed(t, c, FeedConfig{Root: jamq.Block{Hash: w.genesis.hash}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Follow(ctx, sink) }()
		bubble.Await(t, time.Millisecond, func() bool { return f.Health().Nodes == 2 }, "both are connected")
		const seconds = 60
		begun := time.Now()
		fork := invented.genesis
		for i := range jamq.Slot(50 * seconds) {
			fork = invented.invent(fork, 1+i, codec.Extrinsics{})
			time.Sleep(time.Second / 50)
		}
		attempts, slots := f.Health().Failures, time.Since(begun)/jamq.Tiny().SlotDuration
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.LessOrEqual(t, attempts, 64*int(slots+1))
	})
}

// A second fetch that has failed three times requests more than one block at once again, when
// the peer serves them.
func TestSecondFetchRecovers(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		f, sink := openFeed(t, openClient(t, w, nil, g), FeedConfig{})
		f.maxHeld = 100 * sizeOf(&codec.Effect{})
		head := w.genesis
		for range 1000 {
			head = w.grow(head, 1)
		}
		awaitLeaf(t, f, head)
		hook := &hookSink{sink, func(*jamq.Block) { g.set(func() { g.refuse[128] = true }) }}
		bubble.Await(t, time.Millisecond, func() bool { _ = f.catchUp(t.Context(), hook); return f.highest > 10 }, "the oldest blocks")
		for range 3 {
			time.Sleep(time.Minute)
			require.Error(t, f.catchUp(t.Context(), hook))
		}
		hook.before = func(*jamq.Block) {}
		remaining := f.walked(0)
		g.set(func() { g.refuse[128] = false })
		before := g.count(128)
		until(t, f, sink, head, w.genesis)
		require.LessOrEqual(t, g.count(128)-before, 2*remaining/blocksPerRequest+3)
	})
}

// A peer whose blocks are large does not make the second fetch hold more than the first.
func TestSecondFetchOfLargeBlocks(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		f, sink := openFeed(t, openClient(t, w, nil, startPeer(t, w, 1, manners{single: true})), FeedConfig{})
		report := codec.WorkReport{Package: codec.PackageSpec{Hash: jamq.PackageHash{1}}}
		for i := range byte(w.spec.MaxDependencies) {
			report.Context.Prerequisites = append(report.Context.Prerequisites, jamq.PackageHash{i})
		}
		head := w.genesis
		for i := range jamq.Slot(80) {
			head = w.invent(head, 1+i, codec.Extrinsics{Guarantees: []codec.Guarantee{{Slot: 1, Report: report}}})
		}
		awaitLeaf(t, f, head)
		f.maxHeld = 6000 // bytes
		most := 0
		hook := &hookSink{sink, func(*jamq.Block) {
			size := 0
			for _, w := range slices.Concat(f.unfinished...) {
				for i := range w.held {
					size += sizeOf(&w.held[i])
				}
			}
			most = max(most, size)
		}}
		bubble.Await(t, time.Millisecond, func() bool { _ = f.catchUp(t.Context(), hook); return sink.view.Best().Hash == head.hash }, "the gap is closed")
		require.Greater(t, most, f.maxHeld/2)
		require.LessOrEqual(t, most, f.maxHeld)
	})
}

// Reports with more dependencies than the chain allows (GP 11.3) are in no block, so that a
// peer that invents a chain of them does not fill the sink's memory.
func TestReportsWithTooManyDependencies(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		f, _ := openFeed(t, openClient(t, w, nil, startGuarantor(t, w, 1)), FeedConfig{})
		for more := range 2 {
			report := codec.WorkReport{Package: codec.PackageSpec{Hash: jamq.PackageHash{1}}}
			for i := range byte(w.spec.MaxDependencies + more) {
				report.Context.Prerequisites = append(report.Context.Prerequisites, jamq.PackageHash{i})
			}
			b := w.invent(w.genesis, 1, codec.Extrinsics{Guarantees: []codec.Guarantee{{Slot: 1, Report: report}}})
			_, err := f.fetchSome(t.Context(), 0, b.hash, 1)
			if more == 0 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, ErrMalformed)
				require.ErrorIs(t, err, jamq.ErrInvalidBlock)
			}
		}
	})
}
