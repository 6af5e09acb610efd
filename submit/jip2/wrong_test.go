package jip2

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
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
		told := 0
		for nth := 1; nth <= 12; nth++ {
			t.Run(fmt.Sprint(name, " in answer ", nth), func(t *testing.T) {
				bubble.Run(t, func(t *testing.T) {
					s, c := startStraight(t, begin, begin-finality)
					root := jamq.Block{Hash: jamq.HeaderHash(lineHash(2)), Slot: 2}
					began := time.Now()
					now := func() jamq.Slot { return begin + jamq.Slot(time.Since(began)/slotDuration) }
					var calls atomic.Int32
					calls.Store(-1000) // until Follow
					s.override = func(method string, params []json.RawMessage) string {
						s.head, s.final = now(), now()-finality
						if method != x.method {
							return ""
						}
						var h Hash
						slot := map[string]jamq.Slot{"bestBlock": s.head, "finalizedBlock": s.final}[method]
						if method == "parent" && json.Unmarshal(params[0], &h) == nil {
							slot = lineSlot(h) - 1
						}
						if int(calls.Add(1)) == nth {
							return `"result":` + x.wrong(slot)
						}
						return ""
					}
					feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks, SlotDuration: slotDuration, Root: root})
					require.NoError(t, err)
					calls.Store(0)
					ctx, cancel := context.WithCancel(t.Context())
					ended, sink := make(chan error, 1), newViewSink(t, feed)
					go func() { ended <- feed.Follow(ctx, lineSink{sink}) }()
					time.Sleep(30*slotDuration + slotDuration/2)
					h := feed.Health()
					require.True(t, h.Following, "%v", h.LastError)
					require.NoError(t, h.LastError)
					if errors.Is(h.LastContradiction, submit.ErrContradiction) {
						told++
					}
					require.Greater(t, int(calls.Load()), nth)
					require.LessOrEqual(t, now()-h.Best, jamq.Slot(1))
					require.LessOrEqual(t, now()-finality-h.Finalized, jamq.Slot(1))
					cancel()
					require.ErrorIs(t, <-ended, context.Canceled)
				})
			})
		}
		if name == "a final block of the best one" { // finality may have moved between two answers
			continue
		}
		require.GreaterOrEqual(t, told, 8, "%s: some best blocks are only fetched in advance", name)
	}
}

// A feed opens at the right root, and with the right blocks before it, although the node gives one
// wrong answer. It does not open if no two answers agree.
func TestWrongAnswerBeforeTheFeed(t *testing.T) {
	for method, root := range map[string]jamq.Block{"finalizedBlock": {}, "parent": {Hash: jamq.HeaderHash(lineHash(5)), Slot: 5}} {
		for wrong, agree := range map[int]bool{1: true, 2: true, 1000: false} {
			bubble.Run(t, func(t *testing.T) {
				s, c := startStraight(t, 9, 5)
				calls := 0
				s.override = func(called string, _ []json.RawMessage) string {
					if called == method {
						if calls++; calls <= wrong {
							return `"result":` + block(Hash{0xff, byte(calls)}, 3)
						}
					}
					return ""
				}
				feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks, Root: root})
				if !agree {
					require.ErrorIs(t, err, submit.ErrContradiction)
					return
				}
				require.NoError(t, err)
				require.Equal(t, jamq.HeaderHash(lineHash(5)), feed.Root().Hash)
			})
		}
	}
}

// A gateway passes each request to one of two honest nodes, in turn or at random, and one of them
// is behind or stands still. The feed delivers all blocks and finality, some slots later.
func TestGateway(t *testing.T) {
	const slotDuration, begin, finality, slots = 6 * time.Second, 40, 4, 100
	for _, random := range []bool{false, true} {
		for lag, late := range map[jamq.Slot]jamq.Slot{0: 2, 1: 6, 5: 12, 1000: 50} {
			t.Run(fmt.Sprintf("random: %t, behind by %d", random, lag), func(t *testing.T) {
				bubble.Run(t, func(t *testing.T) {
					s := &straight{parameters: tinyParameters(t), head: 1 << 20, calls: map[string]int{}}
					n := startForeignNode(t)
					began, calls, rnd := time.Now(), 0, rand.New(rand.NewPCG(1, 2))
					following := false
					now := func() jamq.Slot { return begin + jamq.Slot(time.Since(began)/slotDuration) }
					n.answer = func(method string, params []json.RawMessage) string {
						calls++
						second := calls%2 == 0
						if random {
							second = rnd.IntN(2) == 0
						}
						head := now()
						if second && following {
							head = max(begin, head-min(head, lag))
						}
						var h Hash
						switch {
						case strings.HasPrefix(method, "subscribe"):
							return usual(method)
						case method == "bestBlock":
							return `"result":` + lineBlock(head)
						case method == "finalizedBlock":
							return `"result":` + lineBlock(head-finality)
						case len(params) > 0 && json.Unmarshal(params[0], &h) == nil && h != (Hash{}) && lineSlot(h) > head:
							return `"error":{"code":1,"message":"unknown block"}`
						}
						return s.answer(method, params)
					}
					feed, err := OpenFeed(t.Context(), n.client(t), FeedConfig{Service: marks, SlotDuration: slotDuration})
					require.NoError(t, err)
					following = true
					ctx, cancel := context.WithCancel(t.Context())
					ended := make(chan error, 1)
					go func() { ended <- feed.Follow(ctx, lineSink{newViewSink(t, feed)}) }()
					for range slots {
						time.Sleep(slotDuration)
						h := feed.Health()
						require.True(t, h.Following, "%v", h.LastError)
						require.LessOrEqual(t, now()-h.Best, late)
						require.LessOrEqual(t, now()-finality-h.Finalized, late)
					}
					cancel()
					require.ErrorIs(t, <-ended, context.Canceled)
				})
			})
		}
	}
}

// If a node gives an answer once and otherwise an error, the answer is not believed, and the error
// does not say that the block has no parent.
func TestOneAnswerAmongErrors(t *testing.T) {
	var calls atomic.Int32
	_, err := agreed(t.Context(), func(error) {}, false, func(context.Context) (BlockDescriptor, error) {
		if calls.Add(1) == 1 {
			return BlockDescriptor{Slot: 7}, nil
		}
		return BlockDescriptor{}, &Error{Code: CodeBlockUnavailable}
	})
	require.ErrorIs(t, err, submit.ErrContradiction)
	require.ErrorContains(t, err, "only one of 6 answers")
	require.False(t, errors.As(err, new(*Error)))
}

// The health of a feed has the contradictions that the feed ignores.
func TestIgnoredContradictions(t *testing.T) {
	pkg := func(b byte) jamq.PackageHash { return jamq.PackageHash{b} }
	reported := func(at jamq.Slot) string {
		return `"result":{"Reported":{"reported_in":` + lineBlock(at) + `,"core":1,"report_hash":` + quoted(Hash{7}) + `}}`
	}
	for text, lie := range map[string]func(s *straight){
		"its final block is":     func(s *straight) { s.final = 4 },
		"of slot 2, and":         func(s *straight) { s.final = 2 },
		"its best block":         func(s *straight) { s.head = 6 },
		"are on core 1 at block": func(s *straight) { s.head++ },
		"was reported before":    func(s *straight) { s.head += 2 },
	} {
		bubble.Run(t, func(t *testing.T) {
			s, c := startStraight(t, 9, 5)
			feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks, Root: jamq.Block{Hash: jamq.HeaderHash(lineHash(3)), Slot: 3}})
			require.NoError(t, err)
			sink := newViewSink(t, feed)
			for b := range byte(2) {
				feed.Watch(pkg(b), jamq.RefineContext{Anchor: jamq.HeaderHash(lineHash(9)), LookupAnchorSlot: 3})
			}
			s.override = func(method string, params []json.RawMessage) string {
				if method == "workPackageStatus" && string(params[0]) == quoted(lineHash(10)) {
					return reported(10)
				}
				return ""
			}
			s.final = 7
			require.NoError(t, feed.catchUp(t.Context(), sink))
			require.NoError(t, feed.Health().LastContradiction)
			lie(s)
			require.NoError(t, feed.catchUp(t.Context(), sink))
			h := feed.Health()
			require.ErrorIs(t, h.LastContradiction, submit.ErrContradiction, text)
			require.ErrorContains(t, h.LastContradiction, text)
			require.Positive(t, h.Contradictions)
			h.Following = true
			require.Contains(t, h.String(), fmt.Sprintf("; %d contradictions were ignored, the last one: submit: a node contradicts itself", h.Contradictions))
			require.EqualValues(t, 7, sink.view.Finalized().Slot)
		})
	}
}
