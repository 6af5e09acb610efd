package rpcapi

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/evmrollup"
	"github.com/jamq/jamq/evmrollup/node"
)

// reverse is a precompiled contract that reverses its input, for 1,000 gas.
type reverse struct{}

func (reverse) RequiredGas([]byte) uint64 { return 1_000 }
func (reverse) Name() string              { return "REVERSE" }
func (reverse) Run(input []byte) ([]byte, error) {
	output := make([]byte, len(input))
	for i, b := range input {
		output[len(input)-1-i] = b
	}
	return output, nil
}

// Methods and blocks follow the rules of the chain: a fee rule, a receiver of the tips, a gas
// limit and a precompiled contract.
func TestRulesOfTheChain(t *testing.T) {
	at, tips, price := common.Address{0x99, 19: 1}, common.Address{0x77}, big.NewInt(3*params.GWei)
	s := serve(t, func(cfg *node.Config, _ *Config) {
		cfg.Rules = evmrollup.Rules{
			BaseFee: func(*types.Header) *big.Int { return price }, Tips: tips, GasLimit: 10_000_000,
			Precompiles: vm.PrecompiledContracts{at: reverse{}},
		}
	})
	c, me := s.dial(s.server.URL), s.node.Accounts()[0].Address
	receipt := s.mined(s.send(0, &at, 0, []byte{1, 2, 3}))
	require.Equal(t, uint64(params.TxGas+3*16+1_000), receipt.GasUsed)
	b := s.node.BlockByHash(receipt.BlockHash)
	require.Equal(t, price, b.BaseFee())
	require.Equal(t, uint64(10_000_000), b.GasLimit())
	require.Equal(t, tips, b.Coinbase())

	answer := func(into any, method string, args ...any) {
		t.Helper()
		require.NoError(t, c.CallContext(t.Context(), into, method, args...), method)
	}
	call := map[string]any{"from": me, "to": at, "data": hexutil.Bytes{1, 2, 3}}
	var output hexutil.Bytes
	answer(&output, "eth_call", call, "latest")
	require.Equal(t, hexutil.Bytes{3, 2, 1}, output)
	var gas hexutil.Uint64
	answer(&gas, "eth_estimateGas", call)
	require.InDelta(t, receipt.GasUsed, uint64(gas), 500)
	var history struct{ BaseFeePerGas []*hexutil.Big }
	answer(&history, "eth_feeHistory", 1, "latest", []float64{})
	require.Len(t, history.BaseFeePerGas, 2)
	require.Equal(t, price, history.BaseFeePerGas[1].ToInt())
	var forks struct {
		Current struct{ Precompiles map[string]common.Address }
	}
	answer(&forks, "eth_config")
	require.Equal(t, at, forks.Current.Precompiles["REVERSE"])
	var trace struct{ Output hexutil.Bytes }
	answer(&trace, "debug_traceTransaction", receipt.TxHash, map[string]any{"tracer": "callTracer"})
	require.Equal(t, hexutil.Bytes{3, 2, 1}, trace.Output)
	var flat []struct {
		Result struct{ Output hexutil.Bytes }
	}
	answer(&flat, "trace_transaction", receipt.TxHash)
	require.Equal(t, hexutil.Bytes{3, 2, 1}, flat[0].Result.Output)
	var simulated []struct {
		Calls []struct{ ReturnData hexutil.Bytes }
	}
	answer(&simulated, "eth_simulateV1", map[string]any{"blockStateCalls": []any{map[string]any{"calls": []any{call}}}}, "latest")
	require.Equal(t, hexutil.Bytes{3, 2, 1}, simulated[0].Calls[0].ReturnData)
}
