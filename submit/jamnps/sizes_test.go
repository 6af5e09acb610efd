package jamnps

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/submit/codec"
)

// checkSizes returns a function that checks what a feed says about availability and cleared cores,
// and counts it.
func checkSizes(t *testing.T, w *world, counts map[string]int) func(b *jamq.Block) {
	seen := map[jamq.HeaderHash]bool{}
	return func(b *jamq.Block) {
		if seen[b.Hash] { // only a new best block
			return
		}
		seen[b.Hash] = true
		w.mu.Lock()
		n := w.blocks[b.Hash]
		w.mu.Unlock()
		before := n.parent.active
		var available []jamq.CoreIndex
		for core, votes := range n.votes {
			if int(votes)*3 > before*2 {
				available = append(available, jamq.CoreIndex(core))
			}
		}
		require.Equal(t, available, b.Available, "slot %d: %d validators", b.Slot, before)
		require.Equal(t, before != n.active, b.CoresCleared, "slot %d", b.Slot)
		if b.CoresCleared {
			counts["cleared"]++
		}
		if len(available) > 0 {
			counts["available"]++
		} else {
			counts["too few"]++
		}
	}
}

// worldOfSets returns a world of Gray Paper 0.8.0 whose epochs have sets of 6, 9 and 12 validators.
// Its genesis header announces another number than that of the first epoch.
func worldOfSets(t *testing.T) *world {
	spec := jamq.Tiny()
	spec.Cores, spec.Validators = 4, 6
	return newChangingWorld(t, codec.V080, spec, func(epoch jamq.Slot) int { return []int{6, 12, 9, 9, 12}[epoch%5] })
}

// TestSizesOfSets follows a chain of Gray Paper 0.8.0 whose number of validators changes from epoch
// to epoch. The feed finds the numbers by itself, wherever it begins: after the genesis block, or
// in the middle of an epoch, from the state or, if no peer serves it, from headers.
func TestSizesOfSets(t *testing.T) {
	for name, c := range map[string]struct {
		root    int  // height of the first block
		noState bool // peers serve no state
		single  bool // peers serve one block at a time
	}{
		"genesis": {}, "state": {root: 17}, "first block of an epoch": {root: 12}, "last block of an epoch": {root: 11},
		"genesis, no state": {noState: true}, "headers": {root: 40, noState: true, single: true}, "headers with one mark": {root: 17, noState: true},
		"headers without a mark": {root: 11, noState: true}, "headers from a mark on": {root: 36, noState: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				w := worldOfSets(t)
				m := manners{single: c.single}
				peers := []*guarantor{startPeer(t, w, 1, m), startPeer(t, w, 2, m)}
				root := w.genesis
				for range c.root {
					root = w.grow(w.best, 1)
				}
				w.finalize(0)
				cfg := FeedConfig{Root: jamq.Block{Hash: root.hash, Slot: root.header.Slot}}
				for _, g := range peers {
					g.set(func() { g.refuse[129] = c.noState })
				}
				client := openClient(t, w, nil, peers...)
				f, sink := openFeed(t, client, cfg)
				counts := map[string]int{}
				sink.seen = checkSizes(t, w, counts)
				for i := range 100 {
					slots := jamq.Slot(1)
					if i%20 == 7 {
						slots = 5
					}
					if i%4 == 0 {
						w.finalize(2) // announced with the next block
					}
					for range 1 + i%3 {
						w.grow(w.best, slots)
					}
					until(t, f, sink, w.best, w.finalized)
				}
				t.Logf("%v", counts)
				require.Greater(t, counts["cleared"], 9)
				require.Greater(t, counts["available"], 50)
				require.Greater(t, counts["too few"], 50)
			})
		})
	}
}

// Peers that serve neither state nor old blocks hold up a feed that needs the sizes, and nothing is
// delivered with guessed sizes. Follow goes on when a peer serves one of the two.
func TestSizesAreNotGuessed(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := worldOfSets(t)
		g := startPeer(t, w, 1, manners{since: 5})
		root := w.genesis
		for range 8 {
			root = w.grow(w.best, 1)
		}
		w.finalize(0)
		g.set(func() { g.refuse[129] = true })
		f, sink := openFeed(t, openClient(t, w, nil, g), FeedConfig{Root: jamq.Block{Hash: root.hash, Slot: root.header.Slot}})
		head := w.grow(w.grow(w.best, 1), 1)
		f.connectAll(t.Context())
		awaitAnnounced(t, f, head)
		require.ErrorContains(t, f.catchUp(t.Context(), sink), "the sizes of the validator sets")
		require.Equal(t, root.hash, sink.view.Best().Hash)
		g.set(func() { g.refuse[129] = false })
		time.Sleep(time.Minute)
		until(t, f, sink, head, root)
	})
}

// A peer that invents a child of the root, and a state with other sizes for it, misleads the feed
// about its own fork only.
func TestSizesOfAnInventedChild(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := worldOfSets(t)
		root := w.grow(w.best, 13)
		w.finalize(0)
		liar, honest := startGuarantor(t, w, 1), startGuarantor(t, w, 2)
		f, sink := openFeed(t, openClient(t, w, nil, liar, honest), FeedConfig{Root: jamq.Block{Hash: root.hash, Slot: root.header.Slot}})
		// The child of the root commits to a state after the root that has six validators.
		state, active := root.state, root.active
		root.state, root.active = root.state.Set(statetrie.ChapterKey(statetrie.ChapterValidators), w.set(6)), 6
		until(t, f, sink, w.grow(root, 1), root)
		root.state, root.active = state, active
		counts := map[string]int{}
		sink.seen = checkSizes(t, w, counts)
		head := root
		for range 20 {
			head = w.grow(head, 2)
		}
		until(t, f, sink, head, root)
		require.Positive(t, counts["cleared"])
	})
}

// readSizes refuses state that is too short or has no number of validators.
func TestReadSizes(t *testing.T) {
	pending := append(codec.AppendNatural(nil, 9), append(someValidators(9), make([]byte, 144)...)...)
	active := append([]byte{6}, someValidators(6)...)
	sizes, err := readSizes(active, pending)
	require.NoError(t, err)
	require.Equal(t, codec.SetSizes{Active: 6, Next: 9}, sizes)
	for _, bad := range [][2][]byte{
		{nil, pending}, {{0}, pending}, {make([]byte, 100), pending}, {someValidators(6), pending}, {append(active, 1), pending},
		{active, nil}, {active, {0}}, {active, {1, 2}}, {active, pending[:400]},
	} {
		_, err := readSizes(bad[0], bad[1])
		require.ErrorIs(t, err, ErrMalformed)
	}
}
