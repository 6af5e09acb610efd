package jamnps

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/submit/codec"
)

// Contexts carry the anchor's roots, of which the peak is read from the state.
func TestFeedContext(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		c := openClient(t, w, nil, g)
		f, sink := openFeed(t, c, FeedConfig{})
		var chain []*worldBlock
		for range 12 {
			chain = append(chain, w.grow(w.best, 1))
		}
		final := w.finalize(4)
		chain = append(chain, w.grow(w.best, 1))
		until(t, f, sink, chain[12], final)
		refine, err := f.Context(t.Context(), chain[9].hash, []jamq.PackageHash{{2}, {1}, {2}})
		require.NoError(t, err)
		require.Equal(t, jamq.RefineContext{
			Anchor: chain[9].hash, AnchorSlot: chain[9].header.Slot, StateRoot: chain[9].root(), BeefyRoot: beefyRootOf(chain[9].hash),
			LookupAnchor: final.hash, LookupAnchorSlot: final.header.Slot, LookupStateRoot: final.root(), Prerequisites: []jamq.PackageHash{{1}, {2}},
		}, refine)
		_, err = f.Context(t.Context(), chain[12].hash, nil)
		require.ErrorIs(t, err, ErrNoState, "the newest has no root yet")
		_, err = f.Context(t.Context(), chain[3].hash, nil)
		require.ErrorIs(t, err, ErrNoState, "out of recent history")
		_, err = f.Context(t.Context(), jamq.HeaderHash{1}, nil)
		require.ErrorIs(t, err, ErrHistoryLost)
		g.set(func() { g.refuse[129] = true })
		_, err = f.Context(t.Context(), chain[9].hash, nil)
		require.ErrorIs(t, err, ErrRefused)
		for name, garbage := range map[string][]byte{
			"nothing": {}, "half": framed(make([]byte, 128)), "boundary": append(framed(make([]byte, 63)), framed(nil)...), "huge": {0, 0, 0, 0xff},
			"short key": append(framed(nil), framed(make([]byte, 30))...), "other key": append(framed(nil), framed(make([]byte, 32))...),
		} {
			g.set(func() { g.refuse[129], g.garbage[129] = false, garbage })
			_, err = f.Context(t.Context(), chain[9].hash, nil)
			require.True(t, errors.Is(err, ErrMalformed) || errors.Is(err, ErrTooLarge), "%s: %v", name, err)
		}
	})
}

// The anchor's state is proved by a child on the best chain. A child on a fork does not count, nor
// does an answer of a peer without a proof.
func TestFeedContextIsProved(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		liar, honest := startGuarantor(t, w, 1), startGuarantor(t, w, 2)
		c := openClient(t, w, nil, liar, honest)
		f, sink := openFeed(t, c, FeedConfig{})
		var chain []*worldBlock
		for range 4 {
			chain = append(chain, w.grow(w.best, 1))
		}
		anchor := chain[3]
		w.mu.Lock()
		forged := w.seal(codec.Block{Header: codec.Header{Parent: anchor.hash, ParentStateRoot: common.Hash{1}, Slot: anchor.header.Slot + 1}}, &worldBlock{parent: anchor, height: 5})
		w.mu.Unlock()
		until(t, f, sink, forged, w.genesis)
		head := w.grow(w.grow(anchor, 2), 1)
		until(t, f, sink, head, w.genesis)
		liar.set(func() {
			liar.lie = func(value []byte) []byte {
				value = append([]byte(nil), value...)
				value[40] ^= 1
				return value
			}
		})
		refine, err := f.Context(t.Context(), anchor.hash, nil)
		require.NoError(t, err)
		require.Equal(t, anchor.root(), refine.StateRoot)
		require.EqualValues(t, beefyRootOf(anchor.hash), refine.BeefyRoot)
		require.Positive(t, liar.count(129), "it was asked first")
		honest.set(func() { honest.refuse[129] = true })
		_, err = f.Context(t.Context(), anchor.hash, nil)
		require.ErrorIs(t, err, ErrMalformed)
		require.ErrorIs(t, err, proof.ErrState)
		_, err = f.Context(t.Context(), forged.hash, nil)
		require.ErrorIs(t, err, ErrNoState, "it is on a fork")
	})
}

// Where everything is final at once, the lookup anchor is the newest block whose state root is
// known: Gray Paper 0.8.0 wants it.
func TestFeedContextOfAFinalHead(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		f, sink := openFeed(t, openClient(t, w, nil, g), FeedConfig{})
		a := w.grow(w.best, 1)
		head := w.grow(a, 1)
		w.finalize(0)
		g.cut() // the next handshake has finality
		until(t, f, sink, head, head)
		refine, err := f.Context(t.Context(), a.hash, nil)
		require.NoError(t, err)
		require.Equal(t, a.hash, refine.LookupAnchor)
		require.Equal(t, a.root(), refine.LookupStateRoot)
	})
}

// A part of the state either matches the root or is refused.
func TestStateRange(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		c := openClient(t, w, nil, g)
		b := w.grow(w.best, 1)
		from, to := statetrie.ChapterKey(3), statetrie.ChapterKey(3)
		state, err := c.fetchState(t.Context(), 0, b.hash, from, to, 1<<20)
		require.NoError(t, err)
		require.NoError(t, state.Verify(b.root(), from, to))
		require.ErrorIs(t, state.Verify(w.genesis.root(), from, to), ErrMalformed)
		state.Entries = nil
		require.ErrorIs(t, state.Verify(b.root(), from, to), ErrMalformed, "left out")
	})
}

// An answer that ends early because of its size is verified up to its last entry, and is no proof
// that the rest of the range is empty.
func TestStateRangeThatEndsEarly(t *testing.T) {
	var state *statetrie.Trie
	var s stateRange
	first, last, to := statetrie.ChapterKey(2), statetrie.ChapterKey(5), statetrie.ChapterKey(9)
	for chapter := range uint8(16) {
		e := statetrie.Entry{Key: statetrie.ChapterKey(chapter), Value: make([]byte, 100)}
		state = state.Set(e.Key, e.Value)
		if chapter >= 2 && chapter <= 5 {
			s.Entries = append(s.Entries, e)
		}
	}
	s.Boundary = append(state.Prove(first), state.Prove(last)...)
	require.NoError(t, s.Verify(state.Root(), first, last))
	require.ErrorIs(t, s.Verify(state.Root(), first, to), ErrMalformed)
	require.ErrorIs(t, (&stateRange{Boundary: s.Boundary}).Verify(state.Root(), first, last), ErrMalformed, "boundary nodes only")
	require.ErrorIs(t, (&stateRange{Entries: s.Entries}).Verify(state.Root(), first, last), ErrMalformed, "entries only")
}
