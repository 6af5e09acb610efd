package jip2

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/submit"
)

// If each answer names another best block, the newest one counts that is an ancestor of another
// named block. Blocks of no chain, of which none is an ancestor of another, do not count.
func TestDifferentHeads(t *testing.T) {
	fork := Hash{0xff, 9} // its parent is the block of slot 12
	for name, x := range map[string]struct {
		named []string // in this order, and then errors
		want  jamq.Slot
	}{
		"one chain":                  {[]string{lineBlock(9), lineBlock(12), lineBlock(10), lineBlock(11), lineBlock(14), lineBlock(13)}, 13},
		"one chain and one invented": {[]string{lineBlock(9), lineBlock(12), block(Hash{0xff, 1}, 16), lineBlock(11), lineBlock(14), lineBlock(13)}, 13},
		"an invented one between":    {[]string{lineBlock(14), block(Hash{0xff, 1}, 13), lineBlock(12)}, 12},
		"only one is not invented":   {[]string{block(Hash{0xff, 1}, 16), block(Hash{0xff, 2}, 15), block(Hash{0xff, 3}, 14), block(Hash{0xff, 4}, 13), block(Hash{0xff, 5}, 12), lineBlock(11)}, 0},
		"two forks":                  {[]string{block(fork, 16), lineBlock(15)}, 0},
		"far ahead":                  {[]string{lineBlock(900), lineBlock(800), lineBlock(700), lineBlock(600), lineBlock(500), lineBlock(400)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				s, c := startStraight(t, 9, 5)
				feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks, Root: jamq.Block{Hash: jamq.HeaderHash(lineHash(3)), Slot: 3}})
				require.NoError(t, err)
				calls := 0
				s.head = 20
				s.override = func(method string, params []json.RawMessage) string {
					var of Hash
					switch {
					case method == "parent" && json.Unmarshal(params[0], &of) == nil && of == fork:
						return `"result":` + lineBlock(12)
					case method != "bestBlock":
						return ""
					}
					if calls++; calls > len(x.named) {
						return `"error":{"code":2,"message":"busy"}`
					}
					return `"result":` + x.named[calls-1]
				}
				err = feed.catchUp(t.Context(), newViewSink(t, feed))
				if x.want == 0 {
					require.ErrorIs(t, err, submit.ErrContradiction)
					return
				}
				require.NoError(t, err)
				require.Equal(t, x.want, feed.tree.Best().Slot)
			})
		})
	}
}
