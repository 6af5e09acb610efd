package rpcapi

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/ratelimit"
)

// creating returns a program that creates a contract with an init program of at most 32
// bytes. It leaves the address on the stack.
func creating(init string) string {
	n := len(init) / 2
	return fmt.Sprintf("%02x%s5f5260%02x60%02x6001f0", 0x5f+n, init, n, 32-n) // PUSHn MSTORE CREATE
}

// calling returns a program that creates a contract with a program of at most 23 bytes,
// and calls it with 1 wei and 16,383 gas, by CALL or CALLCODE.
func calling(program, op string) string {
	n := len(program) / 2
	init := fmt.Sprintf("%02x%s5f5260%02x60%02xf3", 0x5f+n, program, n, 32-n) // PUSHn MSTORE RETURN
	return "5f5f5f5f6001" + creating(init) + "613fff" + op + "50"
}

// called returns a program that calls a precompiled contract by DELEGATECALL or
// STATICCALL.
func called(contract byte, op string) string {
	return fmt.Sprintf("5f5f60205f60%02x613fff%s50", contract, op)
}

// run sends a transaction that runs a program, and returns the receipt when it is mined.
func (s *served) run(account int, gas uint64, program string) *types.Receipt {
	s.t.Helper()
	id := s.node.ChainConfig().ChainID
	tx := types.MustSignNewTx(s.node.Accounts()[account].Key, types.LatestSignerForChainID(id), &types.DynamicFeeTx{
		ChainID: id, Nonce: s.nonces[account], GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(10 * params.GWei), Gas: gas,
		Value: big.NewInt(100), Data: common.FromHex(program),
	})
	s.nonces[account]++
	require.NoError(s.t, s.node.SendTransaction(tx))
	return s.mined(tx)
}

// Traces are those of go-ethereum's flatCallTracer, except for the gas that the transaction
// needs before its first instruction, and the result of a failure, which is null here.
func TestTraces(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(s.server.URL)
	all := ""
	for _, program := range []string{
		"5f5ffd", "60015ffd", "fe", "56", "5f56", "60015f5f3e", "5b5f56", "60ff5ff3", strings.Repeat("5f", 23), "3d353df3", "5b5f5f56",
	} {
		all += calling(program, "f1") + calling(program, "f2")
	}
	all += calling("33ff", "f1") + "5f5f5f5f61ffff335af150" // and a call with too much value
	for _, contract := range []byte{1, 4, 5, 8, 9} {
		all += called(contract, "f4") + called(contract, "fa")
	}
	// The last two take almost all gas.
	for _, init := range []string{"60ff5ffd", "33ff", "60ef5f5360015ff3", "fe"} {
		all += creating(init)
	}
	receipts := []*types.Receipt{s.run(0, 3_000_000, all), s.run(1, 100_000, "5b5f56"), s.run(2, 3_000_000, all+"5f5ffd"), s.run(3, 200_000, "5f5f5f5f60013361fffff133ff")}
	at := s.counter(4)
	receipts = append(receipts, s.mined(s.send(4, &at, 0, nil)), s.mined(s.send(4, &at, 0, []byte{1})), s.mined(s.send(4, &common.Address{19: 4}, 1, []byte{1})))
	errors := map[any]bool{}
	for _, receipt := range receipts {
		var ours, geths []m
		require.NoError(t, c.CallContext(t.Context(), &ours, "trace_transaction", receipt.TxHash))
		config := m{"tracer": "flatCallTracer", "tracerConfig": m{"convertParityErrors": true}}
		require.NoError(t, c.CallContext(t.Context(), &geths, "debug_traceTransaction", receipt.TxHash, config))
		require.Len(t, ours, len(geths))
		for i := range geths {
			if geths[i]["error"] == "bad elliptic curve pairing size" {
				geths[i]["error"] = "Built-in failed" // go-ethereum translates only some of them
			}
			errors[geths[i]["error"]] = true
			if _, ok := geths[i]["result"]; !ok {
				geths[i]["result"] = nil
			}
		}
		s.checkFirst(receipt, ours[0], geths[0])
		require.Equal(t, geths, ours)
		var block []m
		require.NoError(t, c.CallContext(t.Context(), &block, "trace_block", receipt.BlockHash))
		require.NoError(t, c.CallContext(t.Context(), &ours, "trace_transaction", receipt.TxHash))
		require.Equal(t, ours, block)
	}
	for _, text := range []any{
		nil, "Reverted", "Out of gas", "Bad jump destination", "Bad instruction", "Stack underflow", "Out of stack", "Out of bounds", "Built-in failed",
		"insufficient balance for transfer",
	} {
		require.True(t, errors[text], "no trace has the error %v", text)
	}
}

// checkFirst checks the gas of the first trace, and gives it that of go-ethereum.
func (s *served) checkFirst(receipt *types.Receipt, ours, geths m) {
	s.t.Helper()
	tx, err := s.eth(s.server.URL).TransactionInBlock(s.t.Context(), receipt.BlockHash, receipt.TransactionIndex)
	require.NoError(s.t, err)
	value := uint256.MustFromBig(tx.Value())
	before, err := core.IntrinsicGas(tx.Data(), nil, nil, common.Address{}, tx.To(), value, s.node.ChainConfig().Rules(receipt.BlockNumber, true, 0))
	require.NoError(s.t, err)
	require.Equal(s.t, hexutil.EncodeUint64(tx.Gas()-before), ours["action"].(m)["gas"])
	ours["action"].(m)["gas"] = hexutil.EncodeUint64(tx.Gas())
	if result, ok := ours["result"].(m); ok {
		result["gasUsed"] = geths["result"].(m)["gasUsed"]
	}
}

// trace_filter selects by the ends of a trace, in pages.
func TestTraceFilter(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(s.server.URL)
	at := s.counter(0)                                                          // block 1
	s.mined(s.send(1, &at, 0, nil))                                             // block 2
	second := s.run(2, 200_000, creating("33ff")+"5f5ffd")                      // block 3
	third := s.run(3, 200_000, "5f5f5f5f600173"+at.Hex()[2:]+"61fffff1"+"33ff") // block 4
	from := func(account int) common.Address { return s.node.Accounts()[account].Address }
	find := func(criteria m) (found []string) {
		t.Helper()
		if criteria["fromBlock"] == nil {
			criteria["fromBlock"] = "earliest"
		}
		var traces []flatTrace
		require.NoError(t, c.CallContext(t.Context(), &traces, "trace_filter", criteria))
		for _, trace := range traces {
			found = append(found, fmt.Sprint(trace.BlockNumber, trace.Type, trace.TraceAddress))
		}
		return found
	}
	all := []string{"1create[]", "2call[]", "3create[]", "3create[0]", "3suicide[0 0]", "4create[]", "4call[0]", "4suicide[1]"}
	destroyed, made := crypto.CreateAddress(third.ContractAddress, 1), third.ContractAddress
	for _, x := range []struct {
		criteria m
		want     []string
	}{
		{m{}, all}, {m{"fromBlock": "0x3", "toBlock": "0x3"}, all[2:5]}, {m{"fromBlock": "latest"}, all[5:]},
		{m{"after": 2, "count": 3}, all[2:5]}, {m{"after": "0x7"}, all[7:]}, {m{"count": 0}, nil}, {m{"after": 100}, nil},
		{m{"fromAddress": []any{from(1), from(3)}}, []string{"2call[]", "4create[]"}}, {m{"toAddress": []any{at}}, []string{"1create[]", "2call[]", "4call[0]"}},
		{m{"toAddress": []any{at}, "after": 1, "count": 1}, []string{"2call[]"}},
		{m{"fromAddress": []any{from(1)}, "toAddress": []any{at}}, []string{"1create[]", "2call[]", "4call[0]"}},
		{m{"fromAddress": []any{from(1)}, "toAddress": []any{at}, "mode": "union"}, []string{"1create[]", "2call[]", "4call[0]"}},
		{m{"fromAddress": []any{from(1)}, "toAddress": []any{at}, "mode": "intersection"}, []string{"2call[]"}},
		{m{"fromAddress": []any{made}}, []string{"4call[0]", "4suicide[1]"}}, {m{"toAddress": []any{from(3)}}, []string{"4suicide[1]"}},
		{m{"toAddress": []any{second.ContractAddress}}, []string{"3suicide[0 0]"}}, {m{"fromAddress": []any{destroyed}}, nil},
	} {
		require.Equal(t, x.want, find(x.criteria), "%v", x.criteria)
	}
	for _, x := range []struct {
		criteria m
		want     string
	}{
		{m{"fromBlock": "0x4", "toBlock": "0x1"}, "invalid block range params"}, {m{"toBlock": "0x70"}, "header not found"},
		{m{"mode": "all"}, `mode is "all", want union or intersection`},
	} {
		require.EqualError(t, c.CallContext(t.Context(), new(any), "trace_filter", x.criteria), x.want)
	}
	for method, arg := range map[string]any{"trace_transaction": common.Hash{1}, "trace_block": "0x70"} {
		var answer any = "something"
		require.NoError(t, c.CallContext(t.Context(), &answer, method, arg))
		require.Nil(t, answer)
	}
	var none []any
	require.NoError(t, c.CallContext(t.Context(), &none, "trace_block", "earliest"))
	require.Equal(t, []any{}, none)
}

// Traces with too many bytes, blocks or seconds are refused.
func TestTraceBounds(t *testing.T) {
	s := serve(t, func(_ *node.Config, api *Config) { api.BatchBytes, api.TraceRange = 5*emptyTrace, 2 })
	c := s.dial(s.server.URL)
	// Calls the sender forever, with one KB each.
	endless := s.run(0, 100_000, "5b5f5f6104005f5f335af1505f56")
	err := c.CallContext(t.Context(), new(any), "trace_transaction", endless.TxHash)
	require.EqualError(t, err, "the traces have more than 3000 bytes")
	require.Equal(t, codeTooMany, code(err))
	first := hexutil.EncodeBig(s.run(1, 200_000, creating("33ff")).BlockNumber) // three traces
	require.NoError(t, c.CallContext(t.Context(), new(any), "trace_block", first))
	s.run(1, 200_000, creating("33ff"))
	err = c.CallContext(t.Context(), new(any), "trace_filter", m{"fromBlock": first})
	require.EqualError(t, err, "the traces have more than 3000 bytes")
	require.NoError(t, c.CallContext(t.Context(), new(any), "trace_filter", m{"fromBlock": first, "count": 4}))
	err = c.CallContext(t.Context(), new(any), "trace_filter", m{"fromBlock": "0x1"})
	require.EqualError(t, err, "block range of 3 blocks is too large, want at most 2")

	s = serve(t, func(_ *node.Config, api *Config) {
		api.CallTime, api.LimitLoopback, api.Limits.Now = 1, true, func() time.Time { return time.Unix(1000, 0) }
		api.Limits.Methods = map[string]ratelimit.Rate{"debug": {Txs: 1}}
	})
	c = s.dial(s.server.URL)
	hash := s.run(0, 100_000, "5b5f56").TxHash
	require.EqualError(t, c.CallContext(t.Context(), new(any), "trace_transaction", hash), "execution aborted (timeout = 1ns)")
	require.Equal(t, CodeLimited, code(c.CallContext(t.Context(), new(any), "trace_transaction", hash)))
}

// A trace of a block whose state the node has forgotten is refused as a call is. The state of
// block 0 is always there.
func TestTracesOfForgottenStates(t *testing.T) {
	s := serve(t, func(cfg *node.Config, _ *Config) { cfg.RetainStates = 1 })
	c := s.dial(s.server.URL)
	for range 5 {
		s.mined(s.send(0, &common.Address{1}, 1, nil))
	}
	require.NoError(t, s.node.Drain(t.Context()))
	want := "historical state of block 1 is not available: "
	require.ErrorContains(t, c.CallContext(t.Context(), new(any), "eth_getBalance", common.Address{1}, "0x1"), want)
	for method, args := range map[string][]any{
		"trace_block": {"0x2"}, "trace_filter": {m{"fromBlock": "0x2"}}, "trace_replayBlockTransactions": {"0x2", []string{"trace"}},
		"debug_traceBlockByNumber": {"0x2"}, "trace_transaction": {s.node.BlockByNumber(2).Transactions()[0].Hash()},
	} {
		require.ErrorContains(t, c.CallContext(t.Context(), new(any), method, args...), want, method)
	}
	var first []callTrace
	require.NoError(t, c.CallContext(t.Context(), &first, "trace_block", "0x1"))
	require.Len(t, first, 1)
}
