package rpcapi

import (
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"
)

// The encodings of each block, of this node and of geth, decode to a header and
// a body whose hash is that of the block.
func TestRawBlocks(t *testing.T) {
	b := startBoth(t)
	for name, client := range map[string]*rpc.Client{"node": b.ours, "geth": b.geths} {
		for number := range len(b.txs) + 1 {
			want := blockHash(t, client, number)
			for _, at := range []any{hexutil.Uint64(number), want, map[string]any{"blockHash": want}} {
				var raw hexutil.Bytes
				var header types.Header
				require.NoError(t, client.CallContext(t.Context(), &raw, "debug_getRawHeader", at))
				require.NoError(t, rlp.DecodeBytes(raw, &header))
				require.Equal(t, want, header.Hash().Hex(), name)
				var block types.Block
				require.NoError(t, client.CallContext(t.Context(), &raw, "debug_getRawBlock", at))
				require.NoError(t, rlp.DecodeBytes(raw, &block))
				require.Equal(t, want, block.Hash().Hex(), name)
				if number > 0 {
					require.Equal(t, b.txs[number-1].Hash(), block.Transactions()[0].Hash())
				}
			}
		}
	}
}
