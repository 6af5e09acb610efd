package jamnps

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/feed"
)

// If the final blocks of FinalPeers peers exclude the finalized block for longer than
// FeedConfig.LostAfter, history is lost, and the error names both blocks; never before, not
// if the contradiction passes, and not because of fewer peers.
func TestContradictoryFinality(t *testing.T) {
	for name, x := range map[string]struct {
		liars, slots int
		height       int // of the block on the fork that they call final
		lost         bool
	}{
		"two of three peers": {2, 17, 8, true}, "an older block": {2, 17, 1, true},
		"until it is certain": {2, 15, 8, false}, "one of three peers": {1, 40, 8, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				w := newWorld(t)
				c := openClient(t, w, nil, startGuarantor(t, w, 1), startGuarantor(t, w, 2), startGuarantor(t, w, 3))
				f, sink := openFeed(t, c, FeedConfig{})
				head := w.genesis
				for range 20 {
					head = w.grow(head, 1)
				}
				final := w.finalize(5)
				head = w.grow(head, 1)
				until(t, f, sink, head, final)
				fork := w.grow(blocksUpTo(head, 20)[8], 2)
				for range x.height {
					fork = w.grow(fork, 1)
				}
				say := func(b *worldBlock) {
					for _, p := range c.peers[:x.liars] {
						p.mu.Lock()
						p.heads.final = leaf{b.hash, b.header.Slot}
						p.mu.Unlock()
					}
				}
				var err error
				for i := range x.slots + 1 {
					say(fork)
					if i <= 16 || !x.lost {
						require.NotErrorIs(t, err, ErrHistoryLost, "too early")
					}
					err = f.catchUp(t.Context(), sink)
					time.Sleep(w.spec.SlotDuration)
				}
				if x.lost {
					require.ErrorIs(t, err, ErrHistoryLost)
					require.ErrorContains(t, err, final.hash.String())
					require.ErrorContains(t, err, fork.hash.String())
					return
				}
				if x.liars > 1 {
					require.ErrorIs(t, err, feed.ErrExcludes)
				}
				say(final)
				require.NoError(t, f.catchUp(t.Context(), sink))
				say(fork)
				require.NotErrorIs(t, f.catchUp(t.Context(), sink), ErrHistoryLost, "the count begins again")
			})
		})
	}
}
