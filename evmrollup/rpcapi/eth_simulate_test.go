package rpcapi

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/evmrollup/node"
)

type m = map[string]any

// late is a time after all blocks of both nodes.
const late = "0x7ffffffff"

// simulate compares a simulation, with and without validation.
func (c *conformance) simulate(blocks ...any) {
	for _, validation := range []bool{false, true} {
		c.same("eth_simulateV1", m{"blockStateCalls": blocks, "validation": validation, "traceTransfers": true, "returnFullTransactions": !validation})
	}
}

// simulations are blocks that are simulated.
func (c *conformance) simulations() {
	rich := m{c.stranger.Hex(): m{"balance": "0xffffffffffffffff"}}
	pay := m{"from": c.stranger, "to": c.me, "value": "0x3", "maxFeePerGas": "0xba43b7400", "maxPriorityFeePerGas": "0x1", "gas": "0x186a0"}
	calls := func(calls ...any) m { return m{"calls": calls, "stateOverrides": rich} }
	with := func(call m, fields ...any) m {
		changed := m{}
		for name, value := range call {
			changed[name] = value
		}
		for i := 0; i < len(fields); i += 2 {
			changed[fields[i].(string)] = fields[i+1]
		}
		return changed
	}
	c.simulate()
	c.simulate(m{})
	c.simulate(m{}, m{})
	c.simulate(calls(pay), calls(pay, pay, c.call, c.failing))
	c.simulate(calls(c.call, c.call), calls(c.call))
	c.simulate(calls(with(pay, "to", nil, "input", "0x600a5f5f3960015ff3")))
	for _, fields := range [][]any{
		{"nonce", "0x7"}, {"nonce", "0x0"}, {"gas", "0x1"}, {"gas", "0x5208"}, {"gas", "0xffffffff"}, {"gas", nil}, {"maxFeePerGas", "0x1"}, {"maxFeePerGas", "0x0"},
		{"value", most}, {"maxFeePerGas", most}, {"maxPriorityFeePerGas", most}, {"maxFeePerGas", most, "maxPriorityFeePerGas", most}, {"maxFeePerGas", nil},
		{"from", c.counter}, {"from", nil, "maxFeePerGas", nil, "maxPriorityFeePerGas", nil, "value", nil}, {"to", c.counter}, {"to", c.counter, "data", "0x1234"}, {"gasPrice", "0x77359400"}, {"chainId", "0x1"},
		{"to", nil, "data", "0xfe"}, {"to", nil, "data", "0x" + strings.Repeat("00", 49_153), "gas", "0x1c9c380"}, {"to", nil, "data", "0x5f5ffd"},
		{"to", nil, "data", "0x5b5f56"}, {"to", c.counter, "authorizationList", c.txs[4].SetCodeAuthorizations()}, {"authorizationList", []any{}},
		{"to", nil, "authorizationList", []any{}}, {"accessList", []any{}, "maxFeePerGas", nil}, {"data", "0x01", "input", "0x02"}, {"maxFeePerBlobGas", "0x1"},
	} {
		c.simulate(calls(with(pay, fields...), c.call))
	}
	legacy := with(pay, "maxFeePerGas", nil, "maxPriorityFeePerGas", nil, "gasPrice", "0x77359400")
	list := with(legacy, "accessList", types.AccessList{{Address: c.me}})
	c.simulate(calls(list))
	c.same("eth_simulateV1", m{"blockStateCalls": []any{calls(legacy)}})
	c.differs("A simulated legacy transaction has no signature, so it names no chain. In geth its `chainId` is 9223372036854775790.",
		"eth_simulateV1", m{"blockStateCalls": []any{calls(legacy)}, "returnFullTransactions": true})
	c.simulate(m{"calls": []any{with(pay, "from", c.me)}, "stateOverrides": m{c.me.Hex(): m{"nonce": "0xffffffffffffffff"}}})
	c.simulatedBlocks()
	c.simulatedTransfers()
}

// simulatedBlocks are overrides of blocks and of the state.
func (c *conformance) simulatedBlocks() {
	block := func(fields m) m { return m{"blockOverrides": fields} }
	for _, blocks := range [][]any{
		{block(m{"number": "0x9"}), block(m{"time": late})}, {block(m{"number": "0x5"})}, {block(m{"number": "0x1"})}, {block(m{"number": "0x106"})},
		{block(m{"number": "0x105"}), m{}}, {block(m{"number": "0x107"})}, {block(m{"number": most})},
		{block(m{"number": "0xa"}), block(m{"number": "0xa"})}, {block(m{"time": late}), block(m{"time": late})}, {block(m{"time": "0xffffffffffffffff"}), m{}},
		{block(m{"time": late}), m{}, block(m{"time": "0x80000000b"}), block(m{"number": "0x20", "time": "0x7ffffffff"})},
		{block(m{"gasLimit": "0x5208"}), m{}}, {block(m{"gasLimit": "0x0"}), m{}}, {block(m{"baseFeePerGas": "0x0"}), m{}}, {block(m{"baseFeePerGas": most}), m{}},
		{block(m{"difficulty": "0x0"})}, {block(m{"beaconRoot": common.Hash{1}, "prevRandao": common.Hash{2}, "feeRecipient": c.stranger}), m{}},
		{block(m{"withdrawals": []any{}})}, {block(m{"unknown": 1})}, {block(m{"time": late, "Time": late})}, {block(m{"number": 1})}, {block(nil)},
		{m{"stateOverrides": m{c.me.Hex(): m{"unknown": 1}}}}, {m{"stateOverrides": m{c.me.Hex(): nil}}}, {m{"stateOverrides": m{c.me.Hex(): 1}}},
		{m{"stateOverrides": m{c.me.Hex(): m{"state": m{}, "stateDiff": m{}}}}}, {m{"stateOverrides": m{c.me.Hex(): m{"movePrecompileToAddress": c.stranger}}}},
		{m{"stateOverrides": m{c.me.Hex(): m{"movePrecompileToAddress": c.stranger}, c.stranger.Hex(): m{}}}}, {m{"blockOverrides": 1}}, {1}, {nil}, {m{"calls": 1}},
	} {
		c.simulate(blocks...)
	}
	for _, at := range []any{"0x3", "earliest", "0xffff", nil, common.Hash{1}} {
		c.same("eth_simulateV1", m{"blockStateCalls": []any{m{"calls": []any{c.call}}}}, at)
	}
	c.same("eth_simulateV1", m{"blockStateCalls": make([]m, 256)})
	c.same("eth_simulateV1", m{"blockStateCalls": make([]m, 257)})
	c.same("eth_simulateV1", m{"blockStateCalls": []any{m{"calls": make([]m, 5001)}}})
	c.same("eth_simulateV1", m{"blockStateCalls": []any{m{"calls": make([]m, 5000)}, m{"calls": make([]m, 5000)}, m{"calls": make([]m, 1)}}})
	// The calls have the gas limit of a block each, and a cap together.
	burning := m{"calls": []any{m{"to": c.stranger}}, "stateOverrides": m{c.stranger.Hex(): m{"code": "0xfe"}}}
	c.simulate(burning, burning)
	c.simulate(burning, burning, burning)
	c.same("eth_simulateV1", m{"blockStateCalls": []any{m{"calls": []any{m{"to": c.me}, m{"to": c.me, "gas": "0x1c9c380"}}}}})
	// The state that a block leaves, and the fields of the block, in a program of the next one.
	identity := common.Address{19: 4}
	for _, program := range []string{"41", "42", "43", "44", "45", "46", "47", "48", "4a", "5f54"} {
		data := m{"input": "0x" + program + "5f5260205ff3"}
		c.simulate(m{
			"calls":          []any{data, sendTo(data, c.counter), c.call},
			"stateOverrides": m{c.counter.Hex(): m{"stateDiff": m{common.Hash{}.Hex(): common.Hash{31: 0x30}.Hex()}}, identity.Hex(): m{"movePrecompileToAddress": c.stranger}},
			"blockOverrides": m{"time": late, "feeRecipient": c.me, "blobBaseFee": "0x9", "prevRandao": common.Hash{7}},
		}, m{"calls": []any{data, m{"to": c.stranger, "input": "0x0102"}, m{"to": identity, "input": "0x0102"}, c.call}, "blockOverrides": m{"time": "0x800000000"}})
	}
	paid := m{"withdrawals": []any{m{"index": "0x1", "validatorIndex": "0x2", "address": c.stranger, "amount": "0x3"}}}
	c.simulate(m{"blockOverrides": paid}, m{"calls": []any{m{"to": c.stranger}}, "stateOverrides": m{c.stranger.Hex(): m{"code": "0x475f5260205ff3"}}})
}

func sendTo(call m, to common.Address) m { return m{"to": to, "input": call["input"]} }

// simulatedTransfers move ether in calls that fail and that do not, between logs.
func (c *conformance) simulatedTransfers() {
	word := func(a common.Address) string { return "73" + common.Bytes2Hex(a[:]) }
	// Calls an address with 1 wei and all gas, ignores the result, logs twice and pays.
	call := func(to common.Address) string { return "5f5f5f5f6001" + word(to) + "5af150" }
	logs := "5f5fa05f5f5fa1"
	failing, destroying := common.Address{0xf1}, common.Address{0xd1}
	code := "0x" + logs + call(failing) + call(c.me) + logs + call(destroying) + "5f5f5f5f6001" + word(failing) + "5af2505f5f5f5f" + word(c.counter) + "5af450" + logs
	state := m{
		c.stranger.Hex(): m{"code": code, "balance": "0x10"}, failing.Hex(): m{"code": "0x" + logs + call(c.me) + "5f5ffd"},
		destroying.Hex(): m{"code": "0x" + word(c.me) + "ff", "balance": "0x5"},
	}
	send := m{"from": c.me, "to": c.stranger, "value": "0x2", "maxFeePerGas": "0xba43b7400"}
	c.simulate(m{"calls": []any{send, m{"from": c.me, "to": failing, "value": "0x1", "maxFeePerGas": "0xba43b7400"}, send}, "stateOverrides": state}, m{"calls": []any{send}})
	c.same("eth_simulateV1", m{"blockStateCalls": []any{m{"calls": []any{send, send}, "stateOverrides": state}}})
}

// BLOCKHASH knows the simulated blocks, the block below them, and older ones.
func TestSimulatedBlockHashes(t *testing.T) {
	s := serve(t, nil)
	s.counter(0)
	s.mined(s.send(0, &common.Address{1}, 1, nil))
	client := s.dial(s.server.URL)
	// The contract returns the hash of the block whose number is the call's data. A program that
	// creates a contract with it would fail for a hash that begins with 0xef (EIP-3541).
	contract := common.Address{0xb}
	var calls []any
	for number := range int64(6) {
		calls = append(calls, m{"to": contract, "input": common.BigToHash(big.NewInt(number))})
	}
	block := m{"calls": calls, "stateOverrides": m{contract.Hex(): m{"code": "0x5f35405f5260205ff3"}}}
	var answer []struct {
		Hash  common.Hash
		Calls []struct{ ReturnData common.Hash }
	}
	require.NoError(t, client.CallContext(t.Context(), &answer, "eth_simulateV1", m{"blockStateCalls": []any{m{}, block, m{}}}, "0x2"))
	want := []common.Hash{s.node.BlockByNumber(0).Hash(), s.node.BlockByNumber(1).Hash(), s.node.BlockByNumber(2).Hash(), answer[0].Hash, {}, {}}
	for i, call := range answer[1].Calls {
		require.Equal(t, want[i], call.ReturnData, "block %d", i)
	}
}

// The bounds on returned data and on logs hold for all calls together.
func TestSimulatedBounds(t *testing.T) {
	s := serve(t, func(_ *node.Config, api *Config) { api.BatchBytes, api.MaxLogs = 100, 3 })
	client := s.dial(s.server.URL)
	for program, want := range map[string]string{
		"0x60205ff3": "the calls return more than 100 bytes", // each returns 32 bytes
		"0x5f5fa0":   "the calls have more than 3 logs",
	} {
		call := m{"input": program}
		blocks := []any{m{"calls": []any{call, call}}, m{"calls": []any{call}}}
		require.NoError(t, client.CallContext(t.Context(), new(any), "eth_simulateV1", m{"blockStateCalls": blocks}))
		err := client.CallContext(t.Context(), new(any), "eth_simulateV1", m{"blockStateCalls": append(blocks, blocks[1])})
		require.EqualError(t, err, want)
		require.Equal(t, codeTooMany, code(err))
	}
}

// All calls together have the time of one, and the node keeps running.
func TestSimulatedTime(t *testing.T) {
	s := serve(t, func(_ *node.Config, api *Config) { api.CallTime = 50 * time.Millisecond; api.GasCap = math.MaxUint64 })
	endless := m{"input": "0x5b5f56"}
	block := m{"calls": []any{endless}, "blockOverrides": m{"gasLimit": "0xffffffffffff"}}
	err := s.dial(s.server.URL).CallContext(t.Context(), new(any), "eth_simulateV1", m{"blockStateCalls": []any{block}})
	require.EqualError(t, err, "execution aborted (timeout = 50ms)")
	require.Equal(t, codeInternal, code(err))
}
