package jip2

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
)

// A node that invents a new head for each question, whose chain ends before the delivered
// blocks, takes no more memory than one such chain.
func TestInventedHeadsAreForgotten(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		s, c := startStraight(t, 9, 5)
		feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks, MaxGap: 20})
		require.NoError(t, err)
		sink := newViewSink(t, feed)
		require.NoError(t, feed.catchUp(t.Context(), sink))
		heads := uint32(0)
		s.override = func(method string, params []json.RawMessage) string {
			var h Hash
			switch {
			case method == "bestBlock":
				heads++
				return fmt.Sprintf(`"result":{"header_hash":%s,"slot":40}`, quoted(invented(heads, 10)))
			case method == "parent" && json.Unmarshal(params[0], &h) == nil && h[31] > 1:
				h[31]--
				return fmt.Sprintf(`"result":{"header_hash":%s,"slot":%d}`, quoted(h), 30+h[31])
			case method == "parent":
				return `"error":{"code":1,"message":"unknown block"}`
			}
			return ""
		}
		for range 100 {
			require.Error(t, feed.catchUp(t.Context(), sink))
		}
		require.LessOrEqual(t, len(feed.learned), 2*20)
		s.override, s.head = nil, 11
		require.NoError(t, feed.catchUp(t.Context(), sink))
		require.EqualValues(t, 11, sink.view.Best().Slot)
	})
}

// invented is the hash of a block of an invented chain; the last byte is its height.
func invented(chain uint32, height byte) (h Hash) {
	h[0], h[1], h[31] = 0xff, byte(chain), height
	return h
}

// The reason for which a node calls a package failed is not kept for each block of a gap.
func TestReasonsAreNotKept(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		s, c := startStraight(t, 9, 5)
		feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks})
		require.NoError(t, err)
		sink := newViewSink(t, feed)
		require.NoError(t, feed.catchUp(t.Context(), sink))
		feed.Watch(jamq.PackageHash{1}, jamq.RefineContext{Anchor: jamq.HeaderHash(lineHash(9))})
		s.override = func(method string, params []json.RawMessage) string {
			switch {
			case method == "workPackageStatus" && string(params[0]) == quoted(lineHash(19)):
				return noAnswer
			case method == "workPackageStatus":
				return `"result":{"Failed":"` + strings.Repeat("x", maxShape-20) + `"}`
			}
			return ""
		}
		s.head = 19
		require.Error(t, feed.catchUp(t.Context(), sink))
		kept, answers := 0, 0
		for _, l := range feed.learned {
			for _, a := range l.answers {
				answers++
				kept += len(*a.status.Failed)
			}
		}
		require.Equal(t, 9, answers)
		require.Zero(t, kept)
	})
}

// A node without finality that calls the block of zeros final does not stop the feed.
func TestFinalBlockOfZeros(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		s, c := startStraight(t, 9, 5)
		feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks})
		require.NoError(t, err)
		sink := newViewSink(t, feed)
		s.override = func(method string, _ []json.RawMessage) string {
			if method == "finalizedBlock" {
				return fmt.Sprintf(`"result":{"header_hash":%s,"slot":0}`, quoted(Hash{}))
			}
			return ""
		}
		require.NoError(t, feed.catchUp(t.Context(), sink))
		require.EqualValues(t, 9, sink.view.Best().Slot)
		require.EqualValues(t, 5, sink.view.Finalized().Slot)
	})
}
