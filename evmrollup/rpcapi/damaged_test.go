package rpcapi

import (
	"errors"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
)

// On a damaged disk each method that reads it returns the reason, over HTTP and WebSocket, and
// the node goes on.
func TestDamagedTable(t *testing.T) {
	n, dir := manyLogsIn(t, 600, 0)
	block := n.BlockByNumber(0).Block // and no later one, so that they are not in a cache
	for range 300 {
		block = logBlock(block, n.ChainConfig()).Block
	}
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	damaged := 0
	for _, name := range tables { // the end has the index
		file, err := os.OpenFile(name, os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was replaced before the node was opened, and is removed now
		}
		require.NoError(t, err)
		raw, err := io.ReadAll(file)
		require.NoError(t, err)
		damaged++
		for i := range len(raw) * 8 / 10 {
			raw[i] ^= 0xff
		}
		_, err = file.WriteAt(raw, 0)
		require.NoError(t, errors.Join(err, file.Close()))
	}
	require.Positive(t, damaged)
	cfg := DefaultConfig()
	door, err := newDoor(n, &cfg)
	require.NoError(t, err)
	defer door.stop()
	server := httptest.NewServer(door)
	defer server.Close()
	for _, url := range []string{server.URL, "ws" + server.URL[len("http"):]} {
		client, err := rpc.DialContext(t.Context(), url)
		require.NoError(t, err)
		defer client.Close()
		old, call := hexutil.EncodeBig(block.Number()), m{"to": common.Address{1}}
		hash, tx := block.Hash(), block.Transactions()[0].Hash()
		for method, calls := range map[string][][]any{
			"eth_getBlockByNumber": {{old, true}}, "eth_getBlockByHash": {{hash, true}}, "eth_getHeaderByNumber": {{old}}, "eth_getHeaderByHash": {{hash}},
			"eth_getBlockTransactionCountByNumber": {{old}}, "eth_getBlockTransactionCountByHash": {{hash}}, "eth_getBlockReceipts": {{old}, {hash}},
			"eth_getUncleCountByBlockNumber": {{old}}, "eth_getUncleCountByBlockHash": {{hash}},
			"eth_getTransactionByHash": {{tx}}, "eth_getTransactionReceipt": {{tx}}, "eth_getRawTransactionByHash": {{tx}},
			"eth_getTransactionByBlockNumberAndIndex": {{old, "0x0"}}, "eth_getTransactionByBlockHashAndIndex": {{hash, "0x0"}},
			"eth_getRawTransactionByBlockNumberAndIndex": {{old, "0x0"}}, "eth_getRawTransactionByBlockHashAndIndex": {{hash, "0x0"}},
			"eth_getBalance": {{common.Address{1}, old}, {common.Address{1}, m{"blockHash": hash}}}, "eth_getCode": {{common.Address{1}, old}},
			"eth_getTransactionCount": {{common.Address{1}, old}}, "eth_getStorageAt": {{common.Address{1}, "0x0", old}}, "eth_getProof": {{common.Address{1}, []string{}, old}},
			"eth_call": {{call, old}}, "eth_estimateGas": {{call, old}}, "eth_createAccessList": {{call, old}}, "eth_simulateV1": {{m{"blockStateCalls": []any{m{}}}, old}},
			"eth_getLogs": {{m{"fromBlock": "0x1", "toBlock": hexutil.Uint64(600)}}, {m{"blockHash": hash}}}, "eth_feeHistory": {{"0x5", old, []float64{50}}},
			"debug_getRawHeader": {{old}}, "debug_getRawBlock": {{old}}, "debug_getRawReceipts": {{old}}, "debug_getRawTransaction": {{tx}},
			"debug_traceTransaction": {{tx}}, "debug_traceBlockByNumber": {{old}}, "debug_traceBlockByHash": {{hash}}, "debug_traceCall": {{call, old}},
			"trace_transaction": {{tx}}, "trace_block": {{old}}, "trace_filter": {{m{"fromBlock": old, "toBlock": old}}},
			"trace_replayTransaction": {{tx, []string{"trace"}}}, "trace_replayBlockTransactions": {{old, []string{"trace"}}},
			"jam_getBundle": {{old}}, "jam_getTransactionStatus": {{tx}}, "jam_getFinalityProof": {{tx}}, "jam_getReceiptProof": {{tx}}, "jam_getAccountProof": {{common.Address{1}, []string{}, old}}, "jam_getStateWitness": {{common.Address{1}, []string{}, old}},
		} {
			for _, args := range calls {
				err := client.CallContext(t.Context(), new(any), method, args...)
				require.ErrorContains(t, err, ledger.ErrDamaged.Error(), method)
				require.ErrorContains(t, err, "checksum mismatch", method)
			}
		}
	}
	require.ErrorIs(t, n.Damage(), ledger.ErrDamaged)
}
