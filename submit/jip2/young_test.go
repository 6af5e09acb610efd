package jip2

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
)

// A chain that has just begun has a BEEFY root of zeros at its genesis block, and at the next one
// if that has no outputs. The node is sound. A root of zeros at a later block shows that the node
// does not know it.
func TestYoungChain(t *testing.T) {
	for head, sound := range map[jamq.Slot]bool{0: true, 1: true, 2: false, 9: false} {
		bubble.Run(t, func(t *testing.T) {
			s, c := startStraight(t, head, 0)
			s.override = func(method string, _ []json.RawMessage) string {
				if method == "beefyRoot" {
					return `"result":` + quoted(Hash{})
				}
				return ""
			}
			_, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks})
			if sound {
				require.NoError(t, err, "the head is block %d", head)
				return
			}
			require.ErrorIs(t, err, ErrUnsupported, "the head is block %d", head)
			require.ErrorContains(t, err, "beefyRoot")
		})
	}
}

// The ways in which nodes say that the genesis block has no parent. A feed opens after each of
// them.
func TestParentOfGenesis(t *testing.T) {
	for _, answer := range []string{
		`"error":{"code":1,"message":"unknown block"}`, `"error":{"code":0,"message":"no parent"}`, `"error":"no parent"`,
		`"result":null`,
		`"result":{"header_hash":` + quoted(Hash{}) + `,"slot":0}`,
		`"result":{"header_hash":` + quoted(Hash{}) + `,"slot":4294967295}`,
		`"result":{"header_hash":` + quoted(Hash{}) + `,"slot":18446744073709551615}`,
		`"result":{"header_hash":` + quoted(Hash{}) + `,"slot":-1}`,
	} {
		bubble.Run(t, func(t *testing.T) {
			s, c := startStraight(t, 3, 2)
			s.override = func(method string, params []json.RawMessage) string {
				if method == "parent" && string(params[0]) == quoted(lineHash(0)) {
					return answer
				}
				return ""
			}
			f, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks, Root: jamq.Block{Hash: jamq.HeaderHash(lineHash(2)), Slot: 2}})
			require.NoError(t, err, answer)
			require.NotNil(t, f.tree.Get(jamq.HeaderHash(lineHash(0))), "the blocks before the root are anchors")
		})
	}
}
