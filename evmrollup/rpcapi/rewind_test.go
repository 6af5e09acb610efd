package rpcapi

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"
)

// TestRevertRewindsEveryMethod: no answer has a transaction, receipt, log or trace that evm_revert
// or hardhat_reset took back. The headers of the blocks between stay.
func TestRevertRewindsEveryMethod(t *testing.T) {
	for _, back := range []string{"evm_revert", "hardhat_reset"} {
		t.Run(back, func(t *testing.T) {
			s := serveDev(t)
			c := s.dial(s.server.URL)
			ask := func(method string, args ...any) string {
				t.Helper()
				var answer json.RawMessage
				require.NoError(t, c.CallContext(t.Context(), &answer, method, args...), method)
				return string(answer)
			}
			contract, args := s.counter(0), []any{}
			if back == "evm_revert" {
				args = []any{json.RawMessage(ask("evm_snapshot"))}
			}
			filter := json.RawMessage(ask("eth_newFilter", m{"fromBlock": "earliest"}))
			polled := json.RawMessage(ask("eth_newFilter", m{"fromBlock": "earliest"}))
			tx := s.send(1, &contract, 0, nil)
			receipt := s.mined(tx)
			number, hash := hexutil.Uint64(receipt.BlockNumber.Uint64()), receipt.BlockHash
			require.NotEqual(t, "[]", ask("eth_getLogs", m{"fromBlock": "earliest"}))
			require.NotEqual(t, "[]", ask("eth_getFilterChanges", polled))
			ask(back, args...)

			empty := map[string][][]any{
				"eth_getLogs":          {{m{"fromBlock": "earliest"}}, {m{"blockHash": hash}}, {m{"fromBlock": number, "toBlock": number}}},
				"eth_getFilterLogs":    {{filter}},
				"eth_getFilterChanges": {{filter}, {polled}},
				"eth_getBlockReceipts": {{number}, {hash}}, "debug_getRawReceipts": {{number}, {hash}},
				"trace_block": {{number}}, "trace_filter": {{m{"fromBlock": "0x1", "toBlock": "latest", "fromAddress": []common.Address{s.node.Accounts()[1].Address}}}},
				"debug_traceBlockByNumber": {{number}}, "debug_traceBlockByHash": {{hash}}, "trace_replayBlockTransactions": {{number, []string{"trace"}}},
			}
			for method, calls := range empty {
				for _, args := range calls {
					require.Equal(t, "[]", ask(method, args...), method)
				}
			}
			for method, args := range map[string][]any{
				"eth_getTransactionByHash": {tx.Hash()}, "eth_getTransactionReceipt": {tx.Hash()},
				"trace_transaction": {tx.Hash()}, "trace_replayTransaction": {tx.Hash(), []string{"trace"}},
				"eth_getTransactionByBlockHashAndIndex": {hash, "0x0"}, "eth_getTransactionByBlockNumberAndIndex": {number, "0x0"},
			} {
				require.Equal(t, "null", ask(method, args...), method)
			}
			require.Equal(t, `"0x"`, ask("eth_getRawTransactionByHash", tx.Hash()))
			for method, at := range map[string]any{"eth_getRawTransactionByBlockHashAndIndex": hash, "eth_getRawTransactionByBlockNumberAndIndex": number} {
				require.Equal(t, `"0x"`, ask(method, at, "0x0"), method)
			}
			for method, at := range map[string]any{"eth_getBlockTransactionCountByHash": hash, "eth_getBlockTransactionCountByNumber": number} {
				require.Equal(t, `"0x0"`, ask(method, at), method)
			}
			for method, at := range map[string]any{"eth_getBlockByHash": hash, "eth_getBlockByNumber": number} {
				for _, full := range []bool{false, true} {
					require.Contains(t, ask(method, at, full), `"transactions":[]`, method)
				}
				require.Contains(t, ask(method, at, false), hash.Hex())
			}
			require.ErrorContains(t, c.CallContext(t.Context(), new(any), "debug_traceTransaction", tx.Hash()), "not found")
			ask("eth_feeHistory", "0x10", "latest", []float64{50})
		})
	}
}

// TestEditsUseUpNoTime: no method that edits the state uses up a time that was set for the next
// block, mines a waiting transaction, or lets time pass.
func TestEditsUseUpNoTime(t *testing.T) {
	s := serveDev(t)
	c, eth := s.dial(s.server.URL), s.eth(s.server.URL)
	call := func(method string, args ...any) {
		t.Helper()
		require.NoError(t, c.CallContext(t.Context(), nil, method, args...), method)
	}
	latest := func() uint64 {
		h, err := eth.HeaderByNumber(t.Context(), nil)
		require.NoError(t, err)
		return h.Time
	}
	account, at := common.Address{0x90}, uint64(time.Now().Unix())
	edits := map[string][]any{
		"setBalance": {account, "0x1"}, "setNonce": {account, "0x5"}, "setCode": {account, "0x00"}, "setStorageAt": {account, "0x1", common.Hash{31: 1}},
	}
	for _, namespace := range []string{"hardhat_", "anvil_"} {
		for name, args := range edits {
			at += 1000
			before := latest()
			call("evm_setNextBlockTimestamp", at)
			call(namespace+name, args...)
			require.Equal(t, before, latest(), name)
			call("evm_mine")
			require.Equal(t, at, latest(), name)
		}
	}
	call("evm_increaseTime", 5000)
	call("hardhat_setBalance", account, "0x2")
	require.Equal(t, at, latest())
	call("evm_mine")
	require.GreaterOrEqual(t, latest(), at+5000)
}
