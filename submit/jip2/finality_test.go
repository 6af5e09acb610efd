package jip2

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/submit"
)

// forkBase is the last block that the fork of a liar shares with the straight chain.
const forkBase = 12

// A liar tells the truth in its first ten slots. Its final block is then that of slot 14.
const (
	truthful  = 10
	lastFinal = 5 + truthful - 1
)

// forkHash is the hash of a block of the fork, or of the straight chain before it.
func forkHash(slot jamq.Slot) Hash {
	h := lineHash(slot)
	if slot > forkBase {
		h[31] = 1
	}
	return h
}

// sparse is the hash of a block of slot 20 whose parent is the last one before the fork.
var sparse = Hash{0xfe}

func block(hash Hash, slot jamq.Slot) string {
	return fmt.Sprintf(`{"header_hash":%s,"slot":%d}`, quoted(hash), slot)
}

// lie returns the final and the best block that a node names in a slot, counted from its start.
type lie func(slot jamq.Slot) (final, best string)

// truth is the straight chain, whose finality is four slots behind.
func truth(slot jamq.Slot) (final, best string) { return lineBlock(5 + slot), lineBlock(9 + slot) }

// from lies from a slot on, for a number of slots.
func (l lie) from(begin, slots jamq.Slot) lie {
	return func(slot jamq.Slot) (final, best string) {
		if slot < begin || slot >= begin+slots {
			return truth(slot)
		}
		return l(slot)
	}
}

// followLiar starts Follow for a node with a chain of one block per slot and with a fork.
func followLiar(t *testing.T, ctx context.Context, told lie, cfg FeedConfig) (*Feed, *viewSink, <-chan error) {
	t.Helper()
	const slotDuration = 6 * time.Second
	s := &straight{parameters: tinyParameters(t), head: 1 << 20, calls: map[string]int{}}
	began := time.Now()
	s.override = func(method string, params []json.RawMessage) string {
		final, best := told(jamq.Slot(time.Since(began) / slotDuration))
		var h Hash
		switch {
		case method == "finalizedBlock":
			return `"result":` + final
		case method == "bestBlock":
			return `"result":` + best
		case method == "parent" && json.Unmarshal(params[0], &h) == nil && h == (Hash{0xff}):
			return `"error":{"code":1,"message":"unknown block"}`
		case method == "parent" && h[31] == 1:
			slot := jamq.Slot(binary.BigEndian.Uint32(h[:]) - 2)
			return `"result":` + block(forkHash(slot), slot)
		case method == "parent" && h == sparse:
			return `"result":` + lineBlock(forkBase)
		}
		return ""
	}
	n := startForeignNode(t)
	n.answer = s.answer
	cfg.Service, cfg.SlotDuration = marks, slotDuration
	feed, err := OpenFeed(t.Context(), n.client(t), cfg)
	require.NoError(t, err)
	sink, ended := newViewSink(t, feed), make(chan error, 1)
	go func() { ended <- feed.Follow(ctx, sink) }()
	return feed, sink, ended
}

// onFork matches the hash of a block of the fork.
const onFork = "0x[0-9a-f]{62}01"

// lies about finality, and the hash that contradicts the final block of slot 14.
var lies = map[string]struct {
	told  lie
	names string
}{
	"a node restarts from below its final block, and finality follows a fork": {func(slot jamq.Slot) (string, string) {
		return block(forkHash(slot-1), slot-1), block(forkHash(slot+3), slot+3)
	}, onFork},
	"a node restarts from below its final block, and finality stands still": {func(slot jamq.Slot) (string, string) {
		return lineBlock(forkBase - 1), block(forkHash(slot+3), slot+3)
	}, onFork},
	"a node restarts from its genesis block on a fork": {func(slot jamq.Slot) (string, string) {
		return lineBlock(0), block(forkHash(slot+3), slot+3)
	}, onFork},
	"finality is on another chain than the best block": {func(slot jamq.Slot) (string, string) {
		return block(forkHash(slot+5), slot+5), lineBlock(9 + slot)
	}, onFork},
	"another final block of the same slot": {func(slot jamq.Slot) (string, string) {
		return block(forkHash(lastFinal), lastFinal), lineBlock(9 + slot)
	}, onFork},
	"an older final block on a fork": {func(slot jamq.Slot) (string, string) {
		return block(forkHash(lastFinal-1), lastFinal-1), lineBlock(9 + slot)
	}, onFork},
	"a final block on a fork without blocks in the slots up to ours": {func(slot jamq.Slot) (string, string) {
		return block(sparse, 20), lineBlock(9 + slot)
	}, "0xfe00"},
	"finality is on another chain, and the best block is the block of zeros": {func(slot jamq.Slot) (string, string) {
		return block(forkHash(slot+5), slot+5), wrongBest[0]
	}, onFork},
	"finality is on another chain, and the best block is far in the future": {func(slot jamq.Slot) (string, string) {
		return block(forkHash(slot+5), slot+5), wrongBest[1]
	}, onFork},
	"finality is on another chain, and the best block is old": {func(slot jamq.Slot) (string, string) {
		return block(forkHash(slot+5), slot+5), wrongBest[2]
	}, onFork},
	"a final block that the node does not have": {func(slot jamq.Slot) (string, string) {
		return block(Hash{0xff}, 12+slot), lineBlock(9 + slot)
	}, "0xff00"},
}

// wrongBest are best blocks that no node can have: that of zeros, one of a distant slot, and one
// that is older than the finalized block.
var wrongBest = []string{block(Hash{}, 0), block(Hash{0xfd, 1}, 1<<31), block(Hash{0xfd, 1}, 0)}

// A wrong best block does not hold up finality, and Health has the error.
func TestWrongBestBlock(t *testing.T) {
	for _, best := range wrongBest {
		bubble.Run(t, func(t *testing.T) {
			const slots = 40
			told := lie(func(slot jamq.Slot) (string, string) { return lineBlock(5 + slot), best })
			ctx, cancel := context.WithCancel(t.Context())
			feed, sink, ended := followLiar(t, ctx, told.from(truthful, 1<<20), FeedConfig{})
			time.Sleep((truthful + slots) * feed.spec.SlotDuration)
			h := feed.Health()
			require.True(t, h.Following, "%v", h.LastError)
			require.Error(t, h.LastError)
			require.GreaterOrEqual(t, sink.view.Finalized().Slot+2, jamq.Slot(5+truthful+slots))
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
		})
	}
}

// A node that takes its finality back for longer than FeedConfig.LostAfter ends Follow with
// ErrHistoryLost, which names both blocks, and never before.
func TestContradictoryFinality(t *testing.T) {
	for name, x := range lies {
		for lostAfter, most := range map[int]int{0: 16, 40: 40} {
			t.Run(fmt.Sprint(name, " for ", most, " slots"), func(t *testing.T) {
				bubble.Run(t, func(t *testing.T) {
					feed, sink, ended := followLiar(t, t.Context(), x.told.from(truthful, 1<<20), FeedConfig{LostAfter: lostAfter})
					slots := func(n int) { time.Sleep(time.Duration(n) * feed.spec.SlotDuration) }
					slots(truthful + most)
					require.True(t, feed.Health().Following, "too early: %v", feed.Health().LastError)
					require.Error(t, feed.Health().LastError)
					slots(3)
					require.False(t, feed.Health().Following)
					err := <-ended
					require.ErrorIs(t, err, ErrHistoryLost)
					require.ErrorContains(t, err, jamq.HeaderHash(lineHash(lastFinal)).String())
					require.Regexp(t, x.names, err.Error())
					require.EqualValues(t, lastFinal, sink.view.Finalized().Slot)
				})
			})
		}
	}
}

// A contradiction that passes does not end Follow, however often it returns.
func TestContradictionThatPasses(t *testing.T) {
	for name, x := range lies {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				const pause = 15 // slots
				told := func(slot jamq.Slot) (string, string) {
					if slot >= truthful && slot < truthful+pause || slot > truthful+pause+2 && slot < truthful+2*pause {
						return x.told(slot)
					}
					return truth(slot)
				}
				ctx, cancel := context.WithCancel(t.Context())
				feed, sink, ended := followLiar(t, ctx, told, FeedConfig{})
				time.Sleep((truthful + 2*pause + 3) * feed.spec.SlotDuration)
				require.NoError(t, feed.Health().LastError)
				cancel()
				require.ErrorIs(t, <-ended, context.Canceled)
				require.Greater(t, sink.view.Best().Slot, jamq.Slot(9+truthful+2*pause))
				require.Greater(t, sink.view.Finalized().Slot, jamq.Slot(5+truthful+2*pause))
			})
		})
	}
}

// A node that takes its finality back in every other slot does not end Follow, also if it is right
// about nothing new in the slots between.
func TestFinalityBackAndForth(t *testing.T) {
	for name, x := range lies {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				const slots = 100
				told := lie(func(slot jamq.Slot) (final, best string) {
					if slot%2 == 0 {
						return x.told(slot)
					}
					return lineBlock(lastFinal), lineBlock(9 + slot)
				}).from(truthful, slots)
				ctx, cancel := context.WithCancel(t.Context())
				feed, sink, ended := followLiar(t, ctx, told, FeedConfig{})
				time.Sleep((truthful + slots - 1) * feed.spec.SlotDuration)
				require.True(t, feed.Health().Following, "%v", feed.Health().LastError)
				require.EqualValues(t, lastFinal, sink.view.Finalized().Slot)
				require.Greater(t, sink.view.Best().Slot, jamq.Slot(truthful+slots))
				h := feed.Health()
				require.GreaterOrEqual(t, h.Contradictions, slots/3)
				require.ErrorIs(t, h.LastContradiction, submit.ErrContradiction)
				time.Sleep(3 * feed.spec.SlotDuration)
				require.NoError(t, feed.Health().LastError)
				require.Greater(t, sink.view.Finalized().Slot, jamq.Slot(slots))
				cancel()
				require.ErrorIs(t, <-ended, context.Canceled)
			})
		})
	}
}

// A node that names a wrong slot for a block until the block is delivered, and the right one from
// then on, ends Follow with ErrHistoryLost, because no sink corrects the slot of a block.
func TestWrongSlotThatIsDelivered(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		told := lie(func(slot jamq.Slot) (final, best string) {
			return lineBlock(5 + slot), block(lineHash(9+slot), 50+slot)
		}).from(truthful, 1)
		feed, sink, ended := followLiar(t, t.Context(), told, FeedConfig{})
		time.Sleep((truthful + 16) * feed.spec.SlotDuration)
		require.True(t, feed.Health().Following, "%v", feed.Health().LastError)
		require.ErrorIs(t, feed.Health().LastError, submit.ErrContradiction)
		require.EqualValues(t, 50+truthful, sink.view.Best().Slot)
		time.Sleep(8 * feed.spec.SlotDuration)
		err := <-ended
		require.ErrorIs(t, err, ErrHistoryLost)
		require.ErrorContains(t, err, "of slot 19 was delivered with slot 60")
		require.ErrorContains(t, err, jamq.HeaderHash(lineHash(9+truthful)).String())
	})
}

// A node whose best block is apart from its own final block contradicts itself only. Follow does
// not end, Health.LastError has the best block, and finality goes on as the node says.
func TestBestBlockWithoutTheFinalOne(t *testing.T) {
	fork := func(slot jamq.Slot) string { return block(forkHash(9+slot), 9+slot) }
	for name, x := range map[string]struct {
		told  lie
		moves bool
		err   string
	}{
		"on a fork": {func(slot jamq.Slot) (final, best string) { return lineBlock(5 + slot), fork(slot) }, true, "excludes the finalized block"},
		"on a fork, and finality stands still": {func(slot jamq.Slot) (final, best string) { return lineBlock(lastFinal), fork(slot) }, false,
			"excludes the finalized block"},
		"without a parent": {func(slot jamq.Slot) (final, best string) { return lineBlock(5 + slot), block(Hash{0xff}, 9+slot) }, true, "not connected"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				feed, sink, ended := followLiar(t, ctx, x.told.from(truthful, 1<<20), FeedConfig{})
				time.Sleep((truthful + 100) * feed.spec.SlotDuration)
				require.ErrorContains(t, feed.Health().LastError, x.err)
				cancel()
				require.ErrorIs(t, <-ended, context.Canceled)
				require.Equal(t, x.moves, sink.view.Finalized().Slot > 100)
			})
		})
	}
}

// A node that restarts from its genesis block and fetches the same chain again is behind. It
// contradicts nothing, however long that takes.
func TestNodeThatIsBehind(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		behind := lie(func(slot jamq.Slot) (final, best string) {
			at := (slot - truthful) / 8
			return lineBlock(at), lineBlock(at + 1)
		}).from(truthful, 100)
		ctx, cancel := context.WithCancel(t.Context())
		feed, sink, ended := followLiar(t, ctx, behind, FeedConfig{})
		time.Sleep((truthful + 99) * feed.spec.SlotDuration)
		require.EqualValues(t, lastFinal, sink.view.Finalized().Slot)
		time.Sleep(3 * feed.spec.SlotDuration)
		require.NoError(t, feed.Health().LastError)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Greater(t, sink.view.Finalized().Slot, jamq.Slot(100))
	})
}

// A node that calls each best block final contradicts itself at the first fork. A feed
// follows it until then, and ends with ErrHistoryLost.
func TestEachBestBlockIsFinal(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		f := follow(t, func(c *jip2server.Config) {
			c.FinalIsBest, c.Chain.ForkProbability, c.Chain.MaxForkDepth, c.Chain.FinalityLag = true, 0.3, 3, 3
		})
		ended := make(chan error, 1)
		go func() { ended <- f.feed.Follow(t.Context(), f.sink) }()
		for range 300 {
			f.step(1)
			time.Sleep(f.feed.spec.SlotDuration)
		}
		h := f.feed.Health()
		require.False(t, h.Following, "%+v", h)
		require.ErrorIs(t, <-ended, ErrHistoryLost)
		require.Positive(t, f.sink.view.Finalized().Slot)
	})
}
