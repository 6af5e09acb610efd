package rpcapi

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"
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
