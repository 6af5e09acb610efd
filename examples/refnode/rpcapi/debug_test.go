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
	type object = map[string]any
	calls := map[string][]any{
		"debug_traceTransaction":   {tx.Hash()},
		"debug_traceBlockByNumber": {hexutil.EncodeBig(receipt.BlockNumber)},
		"debug_traceBlockByHash":   {receipt.BlockHash},
		"debug_traceCall":          {object{"to": common.Address{1}}, "latest"},
	}
	for method, args := range calls {
		for _, x := range []struct {
			config object
			says   string
		}{
			{object{"tracer": "nonsense"}, `tracer "nonsense" not found`},
			{object{"tracer": ""}, `tracer "" not found`},
			{object{"tracer": "{step: function() {}, fault: function() {}, result: function() { return 1 }}"}, "not found"},
			{object{"tracer": "muxTracer", "tracerConfig": object{"callTracer": nil, "nonsense": object{}}}, `tracer "nonsense" not found`},
			{object{"tracer": "muxTracer", "tracerConfig": object{"muxTracer": object{"nonsense": object{}}}}, "muxTracer in muxTracer"},
			{object{"tracer": "muxTracer", "tracerConfig": 7}, "tracerConfig of muxTracer"},
		} {
			err := c.CallContext(t.Context(), new(any), method, append(args[:len(args):len(args)], x.config)...)
			require.ErrorContains(t, err, x.says, method)
			require.Equal(t, -32602, code(err))
		}
		for _, config := range []object{{}, {"tracer": "callTracer"}, {"tracer": "muxTracer", "tracerConfig": object{"callTracer": nil, "4byteTracer": nil}}} {
			require.NoError(t, c.CallContext(t.Context(), new(any), method, append(args[:len(args):len(args)], config)...), method)
		}
	}
}
