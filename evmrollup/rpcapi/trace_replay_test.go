package rpcapi

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/evmrollup/node"
)

// A transaction that was reverted and waits again has no receipt.
func TestReceiptAfterRevert(t *testing.T) {
	s := serveDev(t)
	c := s.dial(s.server.URL)
	var id hexutil.Uint64
	require.NoError(t, c.CallContext(t.Context(), &id, "evm_snapshot"))
	tx := s.send(0, &common.Address{1}, 1, nil)
	s.mined(tx)
	require.NoError(t, c.CallContext(t.Context(), new(bool), "evm_revert", id))
	require.NoError(t, c.CallContext(t.Context(), nil, "evm_setAutomine", false))
	require.NoError(t, s.node.SendTransaction(tx))
	var receipt, found any
	require.NoError(t, c.CallContext(t.Context(), &receipt, "eth_getTransactionReceipt", tx.Hash()))
	require.NoError(t, c.CallContext(t.Context(), &found, "eth_getTransactionByHash", tx.Hash()))
	require.Nil(t, found.(m)["blockNumber"], "the transaction waits")
	require.Nil(t, receipt, "the transaction waits")
}

// The bound on an answer counts the answer. The code of an account is not in it unless it has
// changed.
func TestReplayCountsItsAnswer(t *testing.T) {
	s := serve(t, func(_ *node.Config, api *Config) { api.BatchBytes = 16_000 })
	c := s.dial(s.server.URL)
	contract := s.run(0, 6_000_000, "6120005ff3").ContractAddress // 8,192 bytes of STOP
	hash := s.mined(s.send(1, &contract, 1, nil)).TxHash
	var answer json.RawMessage
	require.NoError(t, c.CallContext(t.Context(), &answer, "trace_replayTransaction", hash, []string{"stateDiff"}))
	require.Less(t, len(answer), 2_000)
}

// The difference of a transaction with authorizations is that of the states before and after its
// block.
func TestReplayOfAuthorizations(t *testing.T) {
	s := serve(t, nil)
	c, eth := s.dial(s.server.URL), s.eth(s.server.URL)
	at := s.counter(4)
	config := s.node.ChainConfig()
	nonce := map[int]uint64{}
	send := func(from int, to common.Address, auths ...types.SetCodeAuthorization) {
		tx := types.MustSignNewTx(s.node.Accounts()[from].Key, types.LatestSigner(config), &types.SetCodeTx{
			ChainID: uint256.MustFromBig(config.ChainID), GasTipCap: uint256.NewInt(params.GWei), GasFeeCap: uint256.NewInt(10 * params.GWei),
			Gas: 400_000, To: to, AuthList: auths, Nonce: nonce[from],
		})
		nonce[from]++
		require.NoError(t, s.node.SendTransaction(tx))
		r := s.mined(tx)
		var answer struct{ StateDiff map[common.Address]m }
		require.NoError(t, c.CallContext(t.Context(), &answer, "trace_replayTransaction", tx.Hash(), []string{"stateDiff"}))
		block := r.BlockNumber
		parent := new(uint256.Int).SubUint64(uint256.MustFromBig(block), 1).ToBig()
		for i := range 10 {
			who := s.node.Accounts()[i].Address
			before, err := eth.CodeAt(t.Context(), who, parent)
			require.NoError(t, err)
			after, err := eth.CodeAt(t.Context(), who, block)
			require.NoError(t, err)
			n0, err := eth.NonceAt(t.Context(), who, parent)
			require.NoError(t, err)
			n1, err := eth.NonceAt(t.Context(), who, block)
			require.NoError(t, err)
			same := func(from, to string) any {
				if from == to {
					return "="
				}
				return map[string]any{"*": map[string]any{"from": from, "to": to}}
			}
			have := answer.StateDiff[who]
			if n0 == n1 && string(before) == string(after) {
				require.Nil(t, have)
				continue
			}
			require.Equal(t, same(hexutil.Encode(before), hexutil.Encode(after)), have["code"], who)
			require.Equal(t, same(hexutil.EncodeUint64(n0), hexutil.EncodeUint64(n1)), have["nonce"], who)
		}
	}
	auth := func(i int, to common.Address, n uint64) types.SetCodeAuthorization {
		a, err := types.SignSetCode(s.node.Accounts()[i].Key, types.SetCodeAuthorization{ChainID: *uint256.MustFromBig(config.ChainID), Address: to, Nonce: n})
		require.NoError(t, err)
		return a
	}
	five, six := s.node.Accounts()[5].Address, s.node.Accounts()[6].Address
	send(6, five, auth(5, at, 0))
	send(6, five, auth(5, common.Address{}, 1), auth(5, at, 2), auth(7, at, 9))
	send(6, five, auth(5, common.Address{}, 3))
	send(6, six, auth(6, at, 4), auth(8, at, 0), auth(8, common.Address{}, 1))
}

// The error of a call that fails for each reason, in all methods with traces, and the output of
// a transaction. Only a revert has an output.
func TestErrorsOfTraces(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(s.server.URL)
	for program, want := range map[string]struct{ text, output string }{
		"60ef5f5360015ff3":      {"invalid code: must not begin with 0xef", "0x"},
		"50":                    {"Stack underflow", "0x"},
		"60aa5f5360015ffd":      {"Reverted", "0xaa"},
		"620186a05ff3":          {"Out of gas", "0x"}, // the code is too large
		"6180005ff3":            {"Out of gas", "0x"}, // it costs too much
		"fe":                    {"Bad instruction", "0x"},
		"5f56":                  {"Bad jump destination", "0x"},
		"60015f5f3e":            {"Out of bounds", "0x"},
		"5b5f5f56":              {"Out of stack", "0x"},
		"5b5f56":                {"Out of gas", "0x"},
		"60016001" + "5f5ff3":   {"", "0x"},
		"60fe5f53" + "60015ff3": {"", "0xfe"},
	} {
		hash := s.run(0, 200_000, program).TxHash
		var replay struct {
			Output string
			Trace  []callTrace
		}
		require.NoError(t, c.CallContext(t.Context(), &replay, "trace_replayTransaction", hash, []string{"trace"}))
		require.Equal(t, want.output, replay.Output, program)
		require.Equal(t, want.text, replay.Trace[0].Error, program)
	}
	// These are forbidden in a static call.
	for name, program := range map[string]string{
		"SSTORE": "5f5f55", "TSTORE": "5f5f5d", "LOG0": "5f5fa0", "LOG1": "5f5f5fa1", "CREATE": "5f5f5ff0", "CREATE2": "5f5f5f5ff5", "SELFDESTRUCT": "5fff", "CALL": "5f5f5f5f60015f5af1",
	} {
		n := len(program) / 2
		made := s.run(1, 200_000, fmt.Sprintf("%02x%s5f5260%02x60%02xf3", 0x5f+n, program, n, 32-n)).ContractAddress
		receipt := s.run(1, 200_000, "5f5f5f5f73"+made.Hex()[2:]+"61fffffa")
		var traces, block []callTrace
		require.NoError(t, c.CallContext(t.Context(), &traces, "trace_transaction", receipt.TxHash))
		require.NoError(t, c.CallContext(t.Context(), &block, "trace_block", receipt.BlockHash))
		require.Equal(t, traces, block)
		require.Equal(t, "write protection", traces[1].Error, name)
		require.Nil(t, traces[1].Result, name)
		var replay struct{ Trace []callTrace }
		require.NoError(t, c.CallContext(t.Context(), &replay, "trace_replayTransaction", receipt.TxHash, []string{"trace"}))
		require.Equal(t, traces, replay.Trace)
		var frame struct{ Calls []struct{ Error string } }
		require.NoError(t, c.CallContext(t.Context(), &frame, "debug_traceTransaction", receipt.TxHash, m{"tracer": "callTracer"}))
		require.Contains(t, frame.Calls[0].Error, "write protection", name)
	}
}
