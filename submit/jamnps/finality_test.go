package jamnps

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/feed"
	"github.com/jamq/jamq/submit"
)

// If the final blocks of FinalPeers peers exclude the finalized block for longer than
// FeedConfig.LostAfter, history is lost, and the error names both blocks; never before, not
// if the contradiction passes, and not because of fewer peers.
func TestContradictoryFinality(t *testing.T) {
	for name, x := range map[string]struct {
		liars, slots int
		height       int // of the block on the fork that they call final
		lost         bool
		away         bool // the last peer
	}{
		"two of three peers": {2, 17, 8, true, false}, "an older block": {2, 17, 1, true, false},
		"until it is certain": {2, 15, 8, false, false}, "one of three peers": {1, 40, 8, false, false},
		"one of two peers": {1, 40, 8, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				w := newWorld(t)
				third := startGuarantor(t, w, 3)
				c := openClient(t, w, nil, startGuarantor(t, w, 1), startGuarantor(t, w, 2), third)
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
				if x.away {
					third.down()
				}
				time.Sleep(time.Minute)
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
				require.Equal(t, x.away, f.Health().Nodes == 2)
				say(fork)
				require.NotErrorIs(t, f.catchUp(t.Context(), sink), ErrHistoryLost, "the count begins again")
			})
		})
	}
}

// With FinalPeers 1 and proofs of finality, a peer that lies about its final block holds up neither
// the other peers nor, once it corrects itself, a feed that has no other peer. An error names the
// peer and, if no other peer is left, ends Follow.
func TestOnePeerLiesAboutFinality(t *testing.T) {
	const slots = 20
	for name, x := range map[string]struct {
		told func(w *world, fork, far *worldBlock) leaf
		err  string // that names the peer, or is in Health.LastContradiction
		lost bool   // a feed without other peers ends
	}{
		"a block that is not final": {func(w *world, _, _ *worldBlock) leaf { return leaf{w.best.hash, w.best.header.Slot} },
			`called final by \[127.0.0.1:1( 127.0.0.1:2 127.0.0.1:3)?\], and that is not proved`, false},
		"a block of another chain":      {func(_ *world, fork, _ *worldBlock) leaf { return leaf{fork.hash, fork.header.Slot} }, "peer 127.0.0.1:1: ", true},
		"a block that is too far away":  {func(_ *world, _, far *worldBlock) leaf { return leaf{far.hash, far.header.Slot} }, "peer 127.0.0.1:1: ", true},
		"a block that does not exist":   {func(w *world, _, _ *worldBlock) leaf { return leaf{jamq.HeaderHash{0xff}, w.best.header.Slot} }, "127.0.0.1:1", false},
		"a block of the last slot ever": {func(_ *world, _, _ *worldBlock) leaf { return leaf{jamq.HeaderHash{0xff}, 1<<32 - 1} }, "127.0.0.1:1", false},
	} {
		for _, peers := range []int{1, 3} {
			t.Run(fmt.Sprint(name, ", of ", peers), func(t *testing.T) {
				bubble.Run(t, func(t *testing.T) {
					w := newWorld(t)
					all := []*guarantor{startGuarantor(t, w, 1), startGuarantor(t, w, 2), startGuarantor(t, w, 3)}
					c := openClient(t, w, func(cfg *Config) { cfg.RetryAfter = time.Second }, all[:peers]...)
					proved := map[jamq.HeaderHash]bool{}
					f, sink := openFeed(t, c, FeedConfig{FinalPeers: 1, MaxGap: 40, CheckFinal: func(_ context.Context, block jamq.HeaderHash) error {
						if !proved[block] {
							return errors.New("no votes")
						}
						return nil
					}})
					grow := func() {
						w.grow(w.best, 1)
						proved[w.finalize(3).hash] = true
						w.grow(w.best, 1)
						time.Sleep(2 * w.spec.SlotDuration)
					}
					for range 4 {
						grow()
					}
					until(t, f, sink, w.best, w.finalized)
					fork := w.best
					for range 5 {
						fork = fork.parent
					}
					before := w.best
					fork = w.grow(fork, 2)
					for range 8 {
						fork = w.grow(fork, 1)
					}
					far := before
					for range 2 * blocksPerRequest {
						far = w.grow(far, 3)
					}
					w.best = before
					var err error
					told := false
					for range slots {
						grow()
						p := c.peers[0]
						p.mu.Lock()
						p.heads.final = x.told(w, fork, far)
						p.mu.Unlock()
						if err = f.catchUp(t.Context(), sink); errors.Is(err, ErrHistoryLost) {
							break
						}
						told = told || err != nil && regexp.MustCompile(x.err).MatchString(err.Error())
					}
					require.Equal(t, peers == 1 && x.lost, errors.Is(err, ErrHistoryLost), "%v", err)
					if peers == 1 && x.lost {
						require.Regexp(t, x.err, err.Error())
						return
					}
					if h := f.Health(); x.lost { // as long as other peers agree
						require.GreaterOrEqual(t, h.Contradictions, slots)
						told = regexp.MustCompile(x.err).MatchString(h.LastContradiction.Error())
					}
					require.True(t, told, "%v", err)
					if peers > 1 {
						require.Equal(t, w.finalized.hash, sink.view.Finalized().Hash)
					}
					time.Sleep(time.Minute)
					grow()
					until(t, f, sink, w.best, w.finalized)
				})
			})
		}
	}
}

// A peer that takes its finality back stops the finality of a feed that depends on it, and
// Health.Contradictions counts that.
func TestPeersTakeFinalityBack(t *testing.T) {
	const slots = 20
	for name, x := range map[string]struct {
		told func(w *world, old *worldBlock) leaf
		lie  bool
	}{
		"the truth":                          {func(w *world, _ *worldBlock) leaf { return leaf{w.finalized.hash, w.finalized.header.Slot} }, false},
		"the genesis block":                  {func(w *world, _ *worldBlock) leaf { return leaf{hash: w.genesis.hash} }, true},
		"an unknown block of the first slot": {func(*world, *worldBlock) leaf { return leaf{hash: jamq.HeaderHash{0xfd}} }, true},
		"an unknown older block":             {func(*world, *worldBlock) leaf { return leaf{jamq.HeaderHash{0xfd}, 1} }, true},
		"an older final block":               {func(_ *world, old *worldBlock) leaf { return leaf{old.hash, old.header.Slot} }, true},
	} {
		for _, peers := range []int{1, 3} {
			t.Run(fmt.Sprint(name, ", of ", peers), func(t *testing.T) {
				bubble.Run(t, func(t *testing.T) {
					w := newWorld(t)
					all := []*guarantor{startGuarantor(t, w, 1), startGuarantor(t, w, 2), startGuarantor(t, w, 3)}
					c := openClient(t, w, func(cfg *Config) { cfg.RetryAfter = time.Second }, all[:peers]...)
					f, sink := openFeed(t, c, FeedConfig{})
					grow := func() {
						w.grow(w.best, 1)
						w.finalize(3)
						time.Sleep(w.spec.SlotDuration)
					}
					for range 30 {
						grow()
					}
					w.grow(w.best, 1) // announces the finalized block
					until(t, f, sink, w.best, w.finalized)
					old, before := w.finalized.parent.parent, f.Health().Contradictions
					for range slots {
						grow()
						for _, p := range c.peers[:(peers+1)/2] {
							p.mu.Lock()
							p.heads.final = x.told(w, old)
							p.mu.Unlock()
						}
						require.NoError(t, f.catchUp(t.Context(), sink))
					}
					h := f.Health()
					if !x.lie {
						require.Equal(t, before, h.Contradictions)
						require.Equal(t, w.finalized.header.Slot, h.Finalized)
						return
					}
					require.GreaterOrEqual(t, h.Contradictions, before+slots)
					require.ErrorIs(t, h.LastContradiction, submit.ErrContradiction)
				})
			})
		}
	}
}
