package jamnps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/feed"
	"github.com/jamq/jamq/submit/codec"
)

// modelSink checks what the feed delivers: each block once, after its parent, while branches hold
// at most what they may.
type modelSink struct {
	*viewSink
	feed  *Feed
	known map[jamq.HeaderHash]bool
	fault string
}

func (s *modelSink) Import(ctx context.Context, b jamq.Block, best jamq.HeaderHash) error {
	switch {
	case s.known[b.Hash] && best != b.Hash:
		s.fault = fmt.Sprintf("block %s is delivered twice", b.Hash)
	case !s.known[b.Hash] && !s.known[b.Parent]:
		s.fault = fmt.Sprintf("block %s is delivered before its parent", b.Hash)
	}
	s.known[b.Hash] = true
	for _, w := range slices.Concat(s.feed.unfinished...) {
		size := 0
		for i := range w.held {
			size += sizeOf(&w.held[i])
		}
		if size > s.feed.maxHeld && len(w.held) > 1 {
			s.fault = fmt.Sprintf("a branch holds %d bytes, want at most %d", size, s.feed.maxHeld)
		}
		for i := range w.held {
			if at := w.path[len(w.path)-len(w.held)+i]; at.hash != w.held[i].Block.Hash {
				s.fault = "a branch holds other blocks than its last ones"
			}
		}
	}
	return s.viewSink.Import(ctx, b, best)
}

// event is something that happens in the model.
type event struct{ kind, at, n int }

// modelRun runs a model and returns its fault, or "".
func modelRun(t *testing.T, peers []manners, finalPeers, held int, room float64, events []event) (fault string) {
	bubble.Run(t, func(t *testing.T) {
		const timeout = 200 * time.Millisecond
		w := newWorld(t)
		var all []*guarantor
		for i, m := range peers {
			all = append(all, startPeer(t, w, byte(i+1), m))
		}
		size := len(w.grow(w.genesis, 1).raw)
		c := openClient(t, w, func(cfg *Config) {
			cfg.RequestTimeout, cfg.RetryAfter = timeout, timeout
			cfg.MaxBlocks = uint32(room * float64(size))
		}, all...)
		f, err := OpenFeed(t.Context(), c, FeedConfig{Root: jamq.Block{Hash: w.genesis.hash}, FinalPeers: finalPeers})
		require.NoError(t, err)
		f.maxHeld = held * sizeOf(&codec.Effect{})
		_, view := openFeed(t, c, FeedConfig{Root: jamq.Block{Hash: w.genesis.hash}})
		sink := &modelSink{viewSink: view, feed: f, known: map[jamq.HeaderHash]bool{w.genesis.hash: true}}
		c.own = f.handshake
		stops := map[int]func(){}
		free := func(i int) {
			if stop := stops[i]; stop != nil {
				stop()
				delete(stops, i)
			}
			all[i].set(func() { delete(all[i].hold, 128); all[i].refuse[128] = false })
		}
		defer func() {
			for i := range all {
				free(i)
			}
		}()
		catchUp := func() {
			f.connectAll(t.Context())
			time.Sleep(20 * time.Millisecond)
			err = f.catchUp(t.Context(), sink)
			if errors.Is(err, feed.ErrSink) || errors.Is(err, ErrHistoryLost) {
				fault = fmt.Sprintf("Follow ends: %v", err)
			}
		}
		for _, e := range events {
			i := e.at % len(all)
			switch e.kind {
			case 0, 1: // the best chain grows
				for range e.n {
					w.grow(w.best, 1)
				}
			case 2: // a fork
				from := w.best
				for range e.at {
					if from.parent != nil && from.height > w.finalized.height {
						from = from.parent
					}
				}
				for range e.n % 8 {
					from = w.grow(from, 2)
				}
			case 3:
				w.finalize(e.n)
				w.grow(w.best, 1)
			case 4:
				free(i)
				all[i].set(func() { all[i].refuse[128] = true })
			case 5:
				free(i)
				stops[i] = all[i].pace(128, timeout/4)
			case 6:
				free(i)
			case 7:
				all[i].cut()
			case 8:
				time.Sleep(time.Minute)
			case 9: // some of the blocks reach the feed by other means
				for _, b := range blocksUpTo(w.best, w.best.height) {
					if e.n > 0 && f.tree.Get(b.hash) == nil && f.tree.Get(b.parent.hash) != nil {
						e.n--
						require.NoError(t, f.importOne(t.Context(), sink, w.effect(b)))
					}
				}
			}
			catchUp()
			if fault = max(fault, sink.fault); fault != "" {
				return
			}
		}
		for i := range all {
			free(i)
		}
		time.Sleep(time.Minute)
		for !isUnique(w) {
			w.grow(w.best, 1)
		}
		head := w.grow(w.best, 1)
		missing := int(head.height) - int(f.tree.Best().Height) + 10
		before := 0
		for _, g := range all {
			before -= g.count(128)
		}
		for range 400 {
			catchUp()
			if fault = max(fault, sink.fault); fault != "" {
				return
			}
			if sink.view.Best().Hash == head.hash {
				break
			}
			time.Sleep(time.Minute)
		}
		if sink.view.Best().Hash != head.hash {
			fault = fmt.Sprintf("the best chain of height %d is not reached, only %d: %v", head.height, sink.view.Best().Height, err)
			return
		}
		for _, g := range all {
			before += g.count(128)
		}
		// An answer that is too large is requested from each peer.
		if most := (60 + 6*max(missing, 0)) * len(all); before > most {
			fault = fmt.Sprintf("%d requests for %d blocks", before, missing)
		}
	})
	return fault
}

func isUnique(w *world) bool {
	n := 0
	for _, b := range w.blocks {
		if b.height == w.best.height {
			n++
		}
	}
	return n == 1
}

// Whatever happens to the peers, the chain and the feed, each block is delivered once and after its
// parent, and the best chain is reached by few requests.
func TestBranchesInAModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		flag := rapid.Bool()
		peers := make([]manners, rapid.IntRange(1, 3).Draw(r, "peers"))
		for i := range peers {
			peers[i] = manners{single: flag.Draw(r, "single"), surplus: flag.Draw(r, "surplus")}
		}
		final := rapid.IntRange(1, len(peers)).Draw(r, "final peers")
		held := rapid.IntRange(1, 70).Draw(r, "held")
		room := rapid.SampledFrom(modelRooms).Draw(r, "room")
		if slices.ContainsFunc(peers, func(m manners) bool { return m.surplus }) {
			room++
		}
		events := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) event {
			return event{rapid.SampledFrom([]int{0, 0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 9}).Draw(r, "kind"), rapid.IntRange(0, 5).Draw(r, "at"), rapid.IntRange(1, 60).Draw(r, "n")}
		}), 1, 25).Draw(r, "events")
		if flag.Draw(r, "slow") {
			events = append([]event{{5, 0, 1}, {5, 1, 1}, {5, 2, 1}}, events...)
		}
		if fault := modelRun(t, peers, final, held, room, events); fault != "" {
			r.Fatalf("%s", fault)
		}
	})
}

// modelRooms are the sizes of an answer in blocks.
var modelRooms = []float64{1.5, 2.5, 3, 5, 9, 17, 40}
