package rpcapi

import (
	"math"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
)

// most is 2^256 − 1.
const most = "0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"

// extremes are arguments at the ends of their ranges and beyond.
func (c *conformance) extremes() {
	for _, count := range []any{"0x0", "0x1", "0x400", "0x401", "latest", "1", "0xffffffffffffffff", -1, 0, 1, 1025, 1.5} {
		for _, last := range []any{"latest", "earliest", "0x0", "0x3", "0x70"} {
			for _, percentiles := range []any{nil, []float64{}, []float64{0, 100}, []float64{101}, []float64{-1}, []float64{50, 50}} {
				c.same("eth_feeHistory", count, last, percentiles)
			}
		}
	}
	for _, gas := range []string{"0x0", "0x5208", "0xfffffe", "0xffffff", "0x1000000", "0x1000001", "0x1c9c380", "0x1c9c381", "0xffffffffffffffff"} {
		for _, method := range []string{"eth_call", "eth_estimateGas", "eth_createAccessList"} {
			c.same(method, map[string]any{"from": c.me, "to": c.counter, "gas": gas})
			c.same(method, map[string]any{"from": c.me, "data": "0x5f5ff3", "gas": gas})
			c.same(method, map[string]any{"from": c.me, "to": c.counter, "gas": gas, "maxFeePerGas": most})
			c.same(method, map[string]any{"from": c.me, "to": c.counter, "gas": gas, "gasPrice": "0x3b9aca00"})
		}
	}
	for _, at := range []any{
		nil, "", "0x", "0x05", "0x5", 5, "-1", "0xffffffffffffffffff", "LATEST", "finalised", common.Hash{1},
		map[string]any{}, map[string]any{"blockNumber": "latest"}, map[string]any{"blockHash": common.Hash{}},
	} {
		for _, method := range []string{"eth_getBalance", "eth_getCode", "eth_getTransactionCount"} {
			c.same(method, c.stranger, at)
		}
		c.same("eth_getStorageAt", c.counter, "0x0", at)
		c.same("eth_getBlockReceipts", at)
		c.same("eth_call", c.call, at)
	}
	raw, err := c.txs[1].MarshalBinary()
	require.NoError(c.t, err)
	for _, encoding := range []string{"", "0x", "0x00", "0x04", "0x" + common.Bytes2Hex(raw) + "00", "0x" + common.Bytes2Hex(raw[:40])} {
		c.same("eth_sendRawTransaction", encoding)
		for _, milliseconds := range []any{nil, 0, 1, 500, int64(1 << 32)} {
			c.same("eth_sendRawTransactionSync", encoding, milliseconds)
		}
	}
}

// extremeOverrides are overrides of the state, on calls by accounts with and
// without money.
func (c *conformance) extremeOverrides() {
	over := func(account map[string]any) map[string]any { return map[string]any{c.counter.Hex(): account} }
	mine := func(account map[string]any) map[string]any { return map[string]any{c.me.Hex(): account} }
	for _, o := range []any{
		nil, map[string]any{}, []any{}, "x", map[string]any{"0x1": map[string]any{}},
		mine(map[string]any{"nonce": "0xffffffffffffffff"}), mine(map[string]any{"balance": most}), mine(map[string]any{"balance": "0x0"}),
		mine(map[string]any{"code": "0x5f5ffd"}), over(map[string]any{"code": nil}), over(map[string]any{"state": nil, "stateDiff": nil}),
		over(map[string]any{"code": "0x475f5260205ff3", "balance": most}), over(map[string]any{"nonce": "0xffffffffffffffff", "code": "0x5f5f5ff0"}),
		over(map[string]any{"stateDiff": map[string]any{"0x0": "0x1"}}), over(map[string]any{"stateDiff": map[string]any{"0x00": common.Hash{1}}}),
		over(map[string]any{"code": "0xef0100" + common.Address{5}.Hex()[2:]}), over(map[string]any{"code": "0x" + strings.Repeat("00", 49_153)}),
	} {
		for _, method := range []string{"eth_call", "eth_estimateGas", "eth_createAccessList"} {
			for _, at := range []any{"latest", "0x3", "earliest"} {
				c.same(method, c.call, at, o)
				c.same(method, map[string]any{"from": c.me, "to": c.stranger, "value": "0x1"}, at, o)
				c.same(method, map[string]any{"from": c.stranger, "to": c.counter, "gasPrice": "0x3b9aca00"}, at, o)
			}
		}
		c.same("debug_traceCall", c.call, "0x3", map[string]any{"tracer": "callTracer", "stateOverrides": o})
	}
}

// extremeLogs are criteria of queries and filters.
func (c *conformance) extremeLogs() {
	topic := common.Hash{31: 7}
	for _, criteria := range []map[string]any{
		{"address": []any{}}, {"address": "0x1"}, {"address": []any{c.stranger, "x"}}, {"topics": "x"}, {"topics": []any{"0x1"}}, {"topics": []any{nil, []any{}}},
		{"topics": []any{[]any{nil}}}, {"fromBlock": "0x0", "topics": []any{[]any{nil, topic}}}, {"blockHash": "0x1"}, {"blockHash": common.Hash{}, "toBlock": "0x1"},
	} {
		c.same("eth_getLogs", criteria)
		c.same("eth_newFilter", criteria)
	}
	for _, ends := range [][2]any{
		{"0x70", "0x80"}, {"0x0", "0x6"}, {"0x6", "0x6"}, {"0x5", "0x6"}, {"0x5", "0x5"}, {"safe", "latest"}, {"earliest", "pending"}, {"pending", "pending"},
		{"pending", "latest"}, {"0x1", "safe"}, {"latest", "earliest"}, {"latest", "0x5"}, {"", ""}, {5, 6}, {"0x05", "0x6"},
		{"0xffffffffffffffff", nil}, {int64(math.MaxInt64), nil}, {"0x7fffffffffffffff", nil}, {nil, "0x7fffffffffffffff"},
	} {
		c.same("eth_getLogs", map[string]any{"fromBlock": ends[0], "toBlock": ends[1]})
		c.same("eth_newFilter", map[string]any{"fromBlock": ends[0], "toBlock": ends[1]})
	}
}
