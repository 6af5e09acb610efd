package rpcapi

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/evmrollup/node"
)

// JavaScript tracers and unknown tracers are refused with an error. If one of them
// traced a whole block, it would end the process.
func TestUnknownTracers(t *testing.T) {
	s := serve(t, nil)
	tx := s.send(0, &common.Address{1}, 1, nil)
	receipt := s.mined(tx)
	c := s.dial(s.server.URL)
	calls := map[string][]any{
		"debug_traceTransaction":   {tx.Hash()},
		"debug_traceBlockByNumber": {hexutil.EncodeBig(receipt.BlockNumber)},
		"debug_traceBlockByHash":   {receipt.BlockHash},
		"debug_traceCall":          {m{"to": common.Address{1}}, "latest"},
	}
	for method, args := range calls {
		for _, x := range []struct {
			config m
			says   string
		}{
			{m{"tracer": "nonsense"}, `tracer "nonsense" not found`},
			{m{"tracer": ""}, `tracer "" not found`},
			{m{"tracer": boundedTracer, "tracerConfig": m{"name": "nonsense"}}, "not found"},
			{m{"tracer": "{step: function() {}, fault: function() {}, result: function() { return 1 }}"}, "no interpreter for tracers in JavaScript"},
			{m{"tracer": "muxTracer", "tracerConfig": m{"callTracer": nil, "nonsense": m{}}}, `tracer "nonsense" not found`},
			{m{"tracer": "muxTracer", "tracerConfig": m{"muxTracer": m{"nonsense": m{}}}}, "muxTracer in muxTracer"},
			{m{"tracer": "muxTracer", "tracerConfig": 7}, "tracerConfig of muxTracer"},
		} {
			err := c.CallContext(t.Context(), new(any), method, append(args[:len(args):len(args)], x.config)...)
			require.ErrorContains(t, err, x.says, method)
			require.Equal(t, -32602, code(err))
		}
		for _, config := range []m{{}, {"tracer": "callTracer"}, {"tracer": "muxTracer", "tracerConfig": m{"callTracer": nil, "4byteTracer": nil}}} {
			require.NoError(t, c.CallContext(t.Context(), new(any), method, append(args[:len(args):len(args)], config)...), method)
		}
	}
}

// A call is traced before a transaction of the block, or without an index after the last one.
func TestTraceCallAt(t *testing.T) {
	s := serve(t, nil)
	at := s.counter(0)
	receipt := s.mined(s.send(0, &at, 0, nil))
	c := s.dial(s.server.URL)
	trace := func(config m) (string, error) {
		var answer struct{ Output string }
		config["tracer"] = "callTracer"
		err := c.CallContext(t.Context(), &answer, "debug_traceCall", m{"to": at}, receipt.BlockHash, config)
		return answer.Output, err
	}
	before, err := trace(m{"txIndex": "0x0"})
	require.NoError(t, err)
	require.Equal(t, common.Hash{31: 1}.Hex(), before)
	after, err := trace(m{})
	require.NoError(t, err)
	require.Equal(t, common.Hash{31: 2}.Hex(), after)
	for index, number := range map[string]string{"0x1": "1", "0xffffffffffffffff": "-1"} {
		_, err = trace(m{"txIndex": index})
		require.EqualError(t, err, "transaction index "+number+" out of range for block "+receipt.BlockHash.Hex())
	}
}

// nativeTracers are go-ethereum's tracers that are written in Go.
var nativeTracers = []m{
	{"tracer": "callTracer"}, {"tracer": "flatCallTracer"}, {"tracer": "prestateTracer"}, {"tracer": "4byteTracer"},
	{"tracer": "noopTracer"}, {"tracer": "erc7562Tracer"}, {"tracer": "keccak256PreimageTracer"}, {"tracer": "muxTracer", "tracerConfig": m{"callTracer": nil, "keccak256PreimageTracer": nil}},
}

// Every tracer can be stopped, before and during the first call. Several of go-ethereum's own
// ended the process or crashed.
func TestStoppedTracers(t *testing.T) {
	s := serve(t, func(_ *node.Config, c *Config) { c.CallTime, c.GasCap = 50*time.Millisecond, 1<<40 })
	c := s.dial(s.server.URL)
	tx := s.send(0, &common.Address{1}, 1, nil)
	r := s.mined(tx)
	endless := m{"data": "0x5b5f56"} // JUMPDEST PUSH0 JUMP
	for _, config := range nativeTracers {
		for _, timeout := range []string{"0s", "1h"} {
			config["timeout"] = timeout
			err := c.CallContext(t.Context(), new(any), "debug_traceCall", endless, "latest", config)
			require.EqualError(t, err, "execution timeout", config)
		}
		config["timeout"] = "0s"
		require.EqualError(t, c.CallContext(t.Context(), new(any), "debug_traceTransaction", tx.Hash(), config), "execution timeout", config)
		require.EqualError(t, c.CallContext(t.Context(), new(any), "debug_traceBlockByHash", r.BlockHash, config), "execution timeout", config)
		delete(config, "timeout")
		require.NoError(t, c.CallContext(t.Context(), new(any), "debug_traceTransaction", tx.Hash(), config), config)
	}
	require.EqualError(t, c.CallContext(t.Context(), new(any), "debug_traceTransaction", tx.Hash(), m{"timeout": "0s"}), "execution timeout")
}

// A trace with more bytes than an answer may have is refused before it is in memory: calls with
// much input cost little gas.
func TestHugeTraces(t *testing.T) {
	s := serve(t, func(_ *node.Config, c *Config) { c.BatchBytes = 1 << 20 })
	c := s.dial(s.server.URL)
	// Calls of 0x99 with 64 KiB, without end: JUMPDEST PUSH0 PUSH0 PUSH3 0x010000 PUSH0 PUSH0
	// PUSH1 0x99 PUSH0 CALL POP PUSH0 JUMP
	calls := common.FromHex("0x5b5f5f620100005f5f60995ff1505f56")
	tx := s.send(0, nil, 0, calls)
	r := s.mined(tx)
	// Hashes of 64 KiB that differ: JUMPDEST GAS PUSH0 MSTORE PUSH3 0x010000 PUSH0 KECCAK256 POP
	// PUSH0 JUMP
	hashes := m{"data": "0x5b5a5f52620100005f20505f56", "gas": "0x200000"}
	for name, text := range map[string]string{
		"keccak256PreimageTracer": "the traces have more than 1048576 bytes", "erc7562Tracer": "the traces have more than 1048576 bytes", "callTracer": "",
	} {
		if err := c.CallContext(t.Context(), new(any), "debug_traceCall", hashes, "latest", m{"tracer": name}); text == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, text, name)
		}
	}
	for _, config := range nativeTracers {
		message := m{"data": hexutil.Bytes(calls), "gas": "0x100000"}
		for method, args := range map[string][]any{
			"debug_traceCall": {message, "latest", config}, "debug_traceTransaction": {tx.Hash(), config}, "debug_traceBlockByHash": {r.BlockHash, config},
		} {
			err := c.CallContext(t.Context(), new(any), method, args...)
			if name := config["tracer"]; name == "keccak256PreimageTracer" || name == "prestateTracer" {
				require.NoError(t, err, config) // it does not have the calls
				continue
			}
			require.EqualError(t, err, "the traces have more than 1048576 bytes", config)
			require.Equal(t, codeTooMany, code(err))
		}
	}
}
