package jamnps

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/feed"
	"github.com/jamq/jamq/submit/codec"
)

// heldSink records the most blocks that branches have held.
type heldSink struct {
	*viewSink
	feed *Feed
	most int
}

func (s *heldSink) Import(ctx context.Context, b jamq.Block, best jamq.HeaderHash) error {
	for _, w := range slices.Concat(s.feed.unfinished...) {
		s.most = max(s.most, len(w.held))
	}
	return s.viewSink.Import(ctx, b, best)
}

// A long gap is closed while few of its blocks are in memory, each of which is
// requested twice at most.
func TestLongGapHoldsFewBlocks(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		f, sink := openFeed(t, openClient(t, w, nil, g), FeedConfig{})
		head := w.genesis
		for range 1000 {
			head = w.grow(head, 1)
		}
		f.maxHeld = 100 * sizeOf(&codec.Effect{})
		held := &heldSink{viewSink: sink, feed: f}
		bubble.Await(t, time.Millisecond, func() bool {
			_ = f.catchUp(t.Context(), held)
			return sink.view.Best().Hash == head.hash
		}, "the gap is closed")
		require.Greater(t, held.most, blocksPerRequest/2)
		require.LessOrEqual(t, held.most, 100)
		require.Less(t, g.count(128), 2*1000/blocksPerRequest+5)
		require.Zero(t, f.walked(0))
	})
}

// A peer that is slow, serves one block in each answer and is alone gets a long gap
// closed even if no more than a few of its blocks fit into memory.
func TestSlowPeerClosesALongGap(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const timeout = 200 * time.Millisecond
		w := newWorld(t)
		slow := startPeer(t, w, 1, manners{single: true})
		f, sink := openFeed(t, openClient(t, w, func(cfg *Config) { cfg.RequestTimeout = timeout }, slow), FeedConfig{})
		f.maxHeld = 7 * sizeOf(&codec.Effect{})
		head := w.genesis
		for range 100 {
			head = w.grow(head, 1)
		}
		defer slow.pace(128, timeout/4)()
		until(t, f, sink, head, w.genesis)
		require.Less(t, slow.count(128), 3*100, "the blocks of a branch are not requested in each turn")
	})
}

// Blocks that another peer has delivered are no part of an unfinished branch any more,
// and a branch that two heads share is walked once.
func TestUnfinishedBranch(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const timeout = 200 * time.Millisecond
		w := newWorld(t)
		slow, quick := startPeer(t, w, 1, manners{single: true}), startGuarantor(t, w, 2)
		f, sink := openFeed(t, openClient(t, w, func(cfg *Config) { cfg.RequestTimeout = timeout }, slow, quick), FeedConfig{})
		f.connectAll(t.Context())
		quick.set(func() { quick.refuse[128] = true })
		stop := slow.pace(128, timeout/4)
		a := w.genesis
		for range 20 {
			a = w.grow(a, 1)
		}
		bubble.Await(t, time.Millisecond, func() bool {
			_ = f.catchUp(t.Context(), sink)
			return f.walked(0) > 8
		}, "a part of the branch")
		require.Equal(t, w.genesis.hash, sink.view.Best().Hash)
		for _, b := range blocksUpTo(a, 14) { // reach the feed by other means
			_, err := f.fetchSome(t.Context(), 0, b.hash, 1)
			require.NoError(t, err)
			require.NoError(t, f.importOne(t.Context(), sink, w.effect(b)))
		}
		head := w.grow(a, 1)
		stop()
		until(t, f, sink, head, w.genesis)
		require.Equal(t, uint64(21), sink.view.Best().Height)
	})
}

// blocksUpTo returns the ancestors of a block up to a height, oldest first, without
// genesis.
func blocksUpTo(b *worldBlock, height int) (out []*worldBlock) {
	for ; b.parent != nil; b = b.parent {
		if b.height <= height {
			out = append(out, b)
		}
	}
	slices.Reverse(out)
	return out
}

// The size of a block counts all that an attacker can make long.
func TestSizeOfBlocks(t *testing.T) {
	small := codec.Effect{}
	reports := codec.Effect{Block: jamq.Block{Reported: []jamq.Report{{}, {Prerequisites: make([]jamq.PackageHash, 8)}}}}
	require.Equal(t, sizeOf(&small)+2*256+8*32, sizeOf(&reports))
	lists := codec.Effect{Assured: make([]uint16, 16), Block: jamq.Block{Condemned: make([]common.Hash, 2)}}
	require.Equal(t, sizeOf(&small)+3*32, sizeOf(&lists))
}

// A peer cannot fill the log: neither by forks of blocks that cannot be delivered, nor by
// announcements that end again and again.
func TestPeerCannotFillTheLog(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w, invented := twoWorlds(t)
		var log lockedBuffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		liar, honest, third := startGuarantor(t, invented, 1), startGuarantor(t, w, 2), startGuarantor(t, w, 3)
		c := openClient(t, w, func(cfg *Config) { cfg.Logger, cfg.RetryAfter = logger, time.Millisecond }, liar, honest, third)
		f, sink := openFeed(t, c, FeedConfig{Root: jamq.Block{Hash: w.genesis.hash}, Logger: logger})
		a := w.grow(w.genesis, 1)
		b := w.grow(a, 1)
		head := w.grow(w.grow(b, 1), 1)
		w.finalize(2)
		for _, g := range []*guarantor{honest, third} {
			g.cut() // the next handshake has finality
		}
		until(t, f, sink, head, b)
		begun := time.Now()
		for i := range jamq.Slot(50) {
			old, err := c.connect(t.Context(), c.peers[0])
			require.NoError(t, err)
			liar.cut()
			bubble.Await(t, time.Millisecond, func() bool {
				now, err := c.connect(t.Context(), c.peers[0])
				_, _, up := c.peers[0].announced()
				return err == nil && now != old && up
			}, "another connection")
			fork := invented.invent(invented.genesis, 3+i, codec.Extrinsics{})
			bubble.Await(t, time.Millisecond, func() bool {
				_, leaves, _ := c.peers[0].announced()
				return slices.Contains(leaves, leaf{fork.hash, fork.header.Slot})
			}, "the fork")
			_ = f.catchUp(t.Context(), sink)
			time.Sleep(time.Second)
		}
		minutes := 1 + int(time.Since(begun)/feed.LogEvery)
		for _, text := range []string{"announcements ended", "is ignored"} {
			n := strings.Count(log.String(), text)
			require.Positive(t, n, text)
			require.LessOrEqual(t, n, minutes+3, text)
		}
	})
}

// lockedBuffer is a log that a test reads while the client writes.
type lockedBuffer struct {
	mu  sync.Mutex
	raw bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.raw.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.raw.String()
}
