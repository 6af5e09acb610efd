package jamnps

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/feed"
	"github.com/jamq/jamq/submit/codec"
)

// liarOfThree returns a feed that follows a liar, whose blocks are those of
// invented, and two honest peers. The best block is head.
func liarOfThree(t *testing.T) (w, invented *world, f *Feed, sink *viewSink, head *worldBlock) {
	t.Helper()
	w, invented = twoWorlds(t)
	liar := startGuarantor(t, invented, 1)
	c := openClient(t, w, nil, liar, startGuarantor(t, w, 2), startGuarantor(t, w, 3))
	f, sink = openFeed(t, c, FeedConfig{})
	require.Equal(t, 2, f.cfg.FinalPeers)
	head = w.grow(w.best, 1)
	until(t, f, sink, head, w.genesis)
	bubble.Await(t, time.Millisecond, func() bool { _, _, up := c.peers[0].announced(); return up }, "the liar has announced")
	return w, invented, f, sink, head
}

// awaitAnnounced waits until the first peer has announced a block.
func awaitAnnounced(t *testing.T, f *Feed, b *worldBlock) {
	t.Helper()
	bubble.Await(t, time.Millisecond, func() bool {
		_, leaves, _ := f.client.peers[0].announced()
		return slices.Contains(leaves, leaf{b.hash, b.header.Slot})
	}, "the first peer has announced the block")
}

// passes runs the feed several times and returns all errors, none of which may
// end Follow.
func passes(t *testing.T, f *Feed, sink *viewSink) (failed error) {
	t.Helper()
	for range 3 {
		err := f.catchUp(t.Context(), sink)
		require.False(t, errors.Is(err, feed.ErrSink) || errors.Is(err, ErrHistoryLost), "%v", err)
		failed = errors.Join(failed, err)
		time.Sleep(time.Minute) // longer than a back-off
	}
	return failed
}

// Of any number of siblings on the best block, one gets to the queue.
func TestInventedSiblings(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const rounds, siblings = 5, 100
		_, invented, f, sink, head := liarOfThree(t)
		invented.mu.Lock()
		invented.blocks[head.hash] = head
		invented.mu.Unlock()
		for range rounds {
			invented.mu.Lock()
			best := invented.blocks[f.tree.Best().Hash]
			var last *worldBlock
			for i := range uint16(siblings) {
				header := codec.Header{Parent: best.hash, ParentStateRoot: best.root(), Slot: best.header.Slot + 1, Author: i}
				last = invented.seal(codec.Block{Header: header}, &worldBlock{parent: best, height: best.height + 1})
			}
			invented.mu.Unlock()
			awaitAnnounced(t, f, last)
			require.NoError(t, passes(t, f, sink))
		}
		require.LessOrEqual(t, f.tree.Len(), 2+rounds)
	})
}

// A peer that invents one longer chain after the other uses up its share of the
// queue only, and the honest chain goes on.
func TestInventedLongerChains(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w, invented, f, sink, head := liarOfThree(t)
		share := maxUnbacked / f.cfg.FollowPeers
		var refused error
		for length := 30; length < 80; length++ {
			fork := invented.genesis
			for range length {
				own := codec.Extrinsics{Preimages: []codec.Preimage{{Data: []byte{byte(length)}}}}
				fork = invented.invent(fork, fork.header.Slot+1, own)
			}
			awaitAnnounced(t, f, fork)
			refused = errors.Join(refused, passes(t, f, sink))
			require.LessOrEqual(t, f.tree.Len(), 2+share)
			require.Equal(t, f.tree.Len()-2, f.backing.caused(0))
		}
		require.ErrorIs(t, refused, errUnbacked)
		for head.height < 81 {
			head = w.grow(head, 1)
		}
		until(t, f, sink, head, w.genesis)
		final := w.finalize(3)
		head = w.grow(head, 1) // announces finality
		until(t, f, sink, head, final)
		require.Zero(t, f.backing.caused(0), "finality makes room")
	})
}

// fullSink has no room for blocks beyond a number until finality moves.
type fullSink struct {
	*viewSink
	room, taken int
}

func (s *fullSink) Import(ctx context.Context, b jamq.Block, best jamq.HeaderHash) error {
	if b.Hash != best && s.view.Best().Hash != b.Hash {
		if s.taken++; s.taken > s.room {
			return chainview.ErrFull
		}
	}
	return s.viewSink.Import(ctx, b, best)
}

func (s *fullSink) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	s.taken = 0
	return s.viewSink.Finalize(ctx, hash)
}

// A full queue does not end Follow: the blocks before the one that peers report
// as final are final, and make room.
func TestFullQueue(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		c := openClient(t, w, nil, startGuarantor(t, w, 1), startGuarantor(t, w, 2), startGuarantor(t, w, 3))
		f, sink := openFeed(t, c, FeedConfig{})
		full := &fullSink{viewSink: sink, room: 10}
		head := w.genesis
		for range 35 {
			head = w.grow(head, 1)
		}
		final := w.finalize(3)
		head = w.grow(head, 1)
		for passes := 0; sink.view.Best().Hash != head.hash || sink.view.Finalized().Hash != final.hash; passes++ {
			require.Less(t, passes, 100, "best %v, final %v", sink.view.Best(), sink.view.Finalized())
			f.connectAll(t.Context())
			err := f.catchUp(t.Context(), full)
			require.False(t, errors.Is(err, feed.ErrSink) || errors.Is(err, ErrHistoryLost), "%v", err)
			time.Sleep(time.Second)
		}
	})
}

// If a host checks finality itself, one lying peer of three fills the queue neither with invented
// final blocks nor with invented heads, although one peer is enough to make a block final.
func TestCheckedPeerCannotFillTheQueue(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w, invented := twoWorlds(t)
		c := openClient(t, w, nil, startGuarantor(t, invented, 1), startGuarantor(t, w, 2), startGuarantor(t, w, 3))
		proved := map[jamq.HeaderHash]bool{}
		f, sink := openFeed(t, c, FeedConfig{Root: jamq.Block{Hash: w.genesis.hash}, FinalPeers: 1, CheckFinal: func(_ context.Context, block jamq.HeaderHash) error {
			if !proved[block] {
				return errors.New("no votes")
			}
			return nil
		}})
		grow := func() {
			proved[w.finalize(4).hash] = true
			w.grow(w.best, 1)
		}
		for range 8 {
			grow()
		}
		until(t, f, sink, w.best, w.finalized)
		base := w.best
		invented.mu.Lock()
		for at := base; at != nil; at = at.parent {
			invented.blocks[at.hash] = at
		}
		invented.mu.Unlock()
		for n := range 100 {
			fork := base
			for range 95 {
				fork = invented.invent(fork, fork.header.Slot+1, codec.Extrinsics{Preimages: []codec.Preimage{{Data: []byte{byte(n)}}}})
			}
			time.Sleep(time.Minute) // longer than any back-off, and than the announcements take
			p := c.peers[0]
			p.mu.Lock()
			clear(p.heads.leaves)
			p.heads.final = leaf{fork.hash, fork.header.Slot}
			p.mu.Unlock()
			_ = f.catchUp(t.Context(), sink)
		}
		require.Less(t, f.tree.Len(), maxUnbacked/3+100)
		for range 20 {
			grow()
		}
		until(t, f, sink, w.best, w.finalized)
	})
}

// A gap that is longer than a peer's share is closed with the only peer that is up, because its
// final block is proved.
func TestProvedBlocksNeedNoSecondPeer(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		peers := []*guarantor{startGuarantor(t, w, 1), startGuarantor(t, w, 2), startGuarantor(t, w, 3)}
		for range maxUnbacked / 2 {
			w.grow(w.best, 1)
		}
		final := w.finalize(4)
		c := openClient(t, w, nil, peers...)
		for _, g := range peers[1:] {
			g.down()
		}
		f, sink := openFeed(t, c, FeedConfig{Root: jamq.Block{Hash: w.genesis.hash}, FinalPeers: 1, CheckFinal: func(_ context.Context, block jamq.HeaderHash) error {
			if block != final.hash {
				return errors.New("no votes")
			}
			return nil
		}})
		until(t, f, sink, w.best, final)
	})
}
