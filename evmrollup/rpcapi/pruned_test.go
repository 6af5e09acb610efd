package rpcapi

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"
)

// A node that keeps the last blocks answers for older ones as geth does: headers are there,
// transactions are unknown, and everything else is an error with the code 4444.
func TestPrunedBlocks(t *testing.T) {
	const blocks, keep = 400, 256
	n := manyLogs(t, blocks, keep)
	require.EqualValues(t, blocks+1-keep, n.OldestBlock())
	cfg := DefaultConfig()
	door, err := newDoor(n, &cfg)
	require.NoError(t, err)
	defer door.stop()
	server := httptest.NewServer(door)
	defer server.Close()
	client, err := rpc.DialContext(t.Context(), server.URL)
	require.NoError(t, err)
	defer client.Close()

	number := func(n uint64) string { return hexutil.EncodeUint64(n) }
	logs := func(from, to uint64) map[string]any {
		return map[string]any{"fromBlock": number(from), "toBlock": number(to), "address": logging(100)}
	}
	oldest := n.OldestBlock()
	for _, at := range []uint64{1, oldest - 1, oldest, blocks} {
		b := n.BlockByNumber(at)
		pruned := at < oldest
		require.Equal(t, pruned, b.Pruned)
		for _, c := range []struct {
			method string
			args   []any
		}{
			{"eth_getBlockByNumber", []any{number(at), false}},
			{"eth_getBlockByHash", []any{b.Hash(), false}},
			{"eth_getBlockTransactionCountByNumber", []any{number(at)}},
			{"eth_getBlockTransactionCountByHash", []any{b.Hash()}},
			{"eth_getBlockReceipts", []any{number(at)}},
			{"eth_getBlockReceipts", []any{b.Hash()}},
			{"eth_getTransactionByBlockNumberAndIndex", []any{number(at), "0x0"}},
			{"eth_getTransactionByBlockHashAndIndex", []any{b.Hash(), "0x0"}},
			{"eth_getRawTransactionByBlockNumberAndIndex", []any{number(at), "0x0"}},
			{"eth_getRawTransactionByBlockHashAndIndex", []any{b.Hash(), "0x0"}},
			{"eth_getLogs", []any{logs(at, blocks)}},
			{"eth_getLogs", []any{map[string]any{"blockHash": b.Hash()}}},
			{"eth_feeHistory", []any{"0x1", number(at), []float64{50}}},
			{"debug_getRawBlock", []any{number(at)}},
			{"debug_getRawReceipts", []any{number(at)}},
			{"jam_getBundle", []any{number(at)}},
		} {
			what := fmt.Sprintf("%s of block %d", c.method, at)
			var answer any
			err := client.CallContext(t.Context(), &answer, c.method, c.args...)
			if !pruned && c.method == "jam_getBundle" {
				continue // it would ask the queue, and the node does not run
			}
			if !pruned {
				require.NoError(t, err, what)
				require.NotNil(t, answer, what)
				continue
			}
			var coded rpc.Error
			require.ErrorAs(t, err, &coded, what)
			require.Equal(t, 4444, coded.ErrorCode(), what)
			require.EqualError(t, err, "pruned history unavailable", what)
		}
		var header struct{ Hash common.Hash }
		require.NoError(t, client.CallContext(t.Context(), &header, "eth_getHeaderByNumber", number(at)))
		require.Equal(t, b.Hash(), header.Hash)
		require.NoError(t, client.CallContext(t.Context(), &header, "eth_getHeaderByHash", b.Hash()))
		require.Equal(t, b.Hash(), header.Hash)
	}
	gone := logBlock(n.BlockByNumber(0).Block, n.ChainConfig()).Transactions()[0].Hash()
	for _, method := range []string{"eth_getTransactionByHash", "eth_getTransactionReceipt"} {
		var answer any
		require.NoError(t, client.CallContext(t.Context(), &answer, method, gone))
		require.Nil(t, answer, method)
	}
}
