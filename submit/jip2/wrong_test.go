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
	"github.com/jamq/jamq/submit"
)

// lineSlot is the slot of a block of the straight chain.
func lineSlot(h Hash) jamq.Slot { return jamq.Slot(binary.BigEndian.Uint32(h[:]) - 1) }

// lineSink accepts only blocks of the straight chain, none of which it misses.
type lineSink struct{ *viewSink }

func (s lineSink) Import(ctx context.Context, b jamq.Block, best jamq.HeaderHash) error {
	if slot := lineSlot(Hash(b.Hash)); b.Slot != slot || b.Parent != jamq.HeaderHash(lineHash(slot-1)) {
		return fmt.Errorf("block %s of slot %d has slot %d and parent %s", b.Hash, slot, b.Slot, b.Parent)
	}
	return s.viewSink.Import(ctx, b, best)
}

// A node that gives one wrong answer about a block, among right ones, delays the feed by a slot or
// two. No wrong block is delivered.
func TestOneWrongAnswer(t *testing.T) {
	const slotDuration, begin, finality = 6 * time.Second, 9, 4
	for name, x := range map[string]struct {
		method string
		wrong  func(slot jamq.Slot) string // instead of the block of a slot
	}{
		"a best block of a later slot":     {"bestBlock", func(s jamq.Slot) string { return block(lineHash(s), s+50) }},
		"a best block of an earlier slot":  {"bestBlock", func(s jamq.Slot) string { return block(lineHash(s), s-1) }},
		"a best block that does not exist": {"bestBlock", func(s jamq.Slot) string { return block(Hash{0xff}, s) }},
		"a final block of a later slot":    {"finalizedBlock", func(s jamq.Slot) string { return block(lineHash(s), s+50) }},
		"a final block of the best one":    {"finalizedBlock", func(s jamq.Slot) string { return lineBlock(s + finality) }},
		"a final block of another chain":   {"finalizedBlock", func(s jamq.Slot) string { return block(Hash{0xff}, s) }},
		"a parent's parent":                {"parent", func(s jamq.Slot) string { return lineBlock(max(s, 1) - 1) }},
		"a parent of an earlier slot":      {"parent", func(s jamq.Slot) string { return block(lineHash(s), max(s, 1)-1) }},
		"a parent that does not exist":     {"parent", func(s jamq.Slot) string { return block(Hash{0xff}, s) }},
	} {
		for nth := 1; nth <= 12; nth++ {
			t.Run(fmt.Sprint(name, " in answer ", nth), func(t *testing.T) {
				bubble.Run(t, func(t *testing.T) {
					s, c := startStraight(t, begin, begin-finality)
					root := jamq.Block{Hash: jamq.HeaderHash(lineHash(2)), Slot: 2}
					began, calls, following := time.Now(), 0, false
					s.override = func(method string, params []json.RawMessage) string {
						s.head = begin + jamq.Slot(time.Since(began)/slotDuration)
						s.final = s.head - finality
						if method != x.method {
							return ""
						}
						var h Hash
						slot := map[string]jamq.Slot{"bestBlock": s.head, "finalizedBlock": s.final}[method]
						if method == "parent" && json.Unmarshal(params[0], &h) == nil {
							slot = lineSlot(h) - 1
						}
						if calls++; following && calls == nth {
							return `"result":` + x.wrong(slot)
						}
						return ""
					}
					feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks, SlotDuration: slotDuration, Root: root})
					require.NoError(t, err)
					calls, following = 0, true
					ctx, cancel := context.WithCancel(t.Context())
					ended, sink := make(chan error, 1), newViewSink(t, feed)
					go func() { ended <- feed.Follow(ctx, lineSink{sink}) }()
					time.Sleep(30*slotDuration + slotDuration/2)
					h := feed.Health()
					require.True(t, h.Following, "%v", h.LastError)
					require.Greater(t, calls, nth)
					require.LessOrEqual(t, s.head-h.Best, jamq.Slot(1))
					require.LessOrEqual(t, s.final-h.Finalized, jamq.Slot(1))
					cancel()
					require.ErrorIs(t, <-ended, context.Canceled)
				})
			})
		}
	}
}

// A feed does not open at a root, or with blocks before it, about which the node contradicts
// itself.
func TestWrongAnswerBeforeTheFeed(t *testing.T) {
	for method, root := range map[string]jamq.Block{"finalizedBlock": {}, "parent": {Hash: jamq.HeaderHash(lineHash(5)), Slot: 5}} {
		bubble.Run(t, func(t *testing.T) {
			s, c := startStraight(t, 9, 5)
			calls := 0
			s.override = func(called string, _ []json.RawMessage) string {
				if called == method {
					if calls++; calls == 1 {
						return `"result":` + block(lineHash(4), 3)
					}
				}
				return ""
			}
			_, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks, Root: root})
			require.ErrorIs(t, err, submit.ErrContradiction)
			_, err = OpenFeed(t.Context(), c, FeedConfig{Service: marks, Root: root})
			require.NoError(t, err)
		})
	}
}
