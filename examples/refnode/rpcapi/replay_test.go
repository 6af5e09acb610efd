package rpcapi

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/examples/refnode/node"
)

// TestReplay: the traces of a replay are those of trace_transaction without the place of the
// transaction, and the difference of the state is that of go-ethereum's prestateTracer.
func TestReplay(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(s.server.URL)
	at := s.counter(4)
	config := s.node.ChainConfig()
	authorization, err := types.SignSetCode(s.node.Accounts()[5].Key, types.SetCodeAuthorization{ChainID: *uint256.MustFromBig(config.ChainID), Address: at})
	require.NoError(t, err)
	delegation := types.MustSignNewTx(s.node.Accounts()[6].Key, types.LatestSigner(config), &types.SetCodeTx{
		ChainID: uint256.MustFromBig(config.ChainID), GasTipCap: uint256.NewInt(params.GWei), GasFeeCap: uint256.NewInt(10 * params.GWei),
		Gas: 200_000, To: s.node.Accounts()[5].Address, AuthList: []types.SetCodeAuthorization{authorization},
	})
	require.NoError(t, s.node.SendTransaction(delegation))
	receipts := []*types.Receipt{
		s.mined(delegation), s.mined(s.send(4, &at, 0, nil)),
		s.mined(s.send(4, &at, 0, []byte{1})), // fails
		s.mined(s.send(4, &common.Address{0x77}, 9, nil)), s.mined(s.send(4, &common.Address{0x77}, 0, nil)),
		s.run(0, 3_000_000, calling("33ff", "f1")+calling("60015ffd", "f1")+creating("60ff5ffd")+"6001600755"),
		s.run(1, 3_000_000, creating("60016002555f5ff3")+"60016003555f60035560ff5ff3"), s.run(2, 100_000, "5b5f56"),
		s.run(3, 3_000_000, "6001600755"+"5f5ffd"),
	}
	for _, receipt := range receipts {
		var one, block, of any
		require.NoError(t, c.CallContext(t.Context(), &one, "trace_replayTransaction", receipt.TxHash, []string{"trace", "stateDiff"}))
		require.NoError(t, c.CallContext(t.Context(), &of, "trace_replayBlockTransactions", receipt.BlockHash, []string{"stateDiff", "trace"}))
		result := one.(m)
		require.NotContains(t, result, "transactionHash")
		withHash := maps.Clone(result)
		withHash["transactionHash"] = receipt.TxHash.Hex()
		block = []any{withHash}
		require.Equal(t, block, of)

		var traces []m
		require.NoError(t, c.CallContext(t.Context(), &traces, "trace_transaction", receipt.TxHash))
		var without []any
		for _, trace := range traces {
			for _, field := range []string{"blockHash", "blockNumber", "transactionHash", "transactionPosition"} {
				delete(trace, field)
			}
			without = append(without, trace)
		}
		require.Equal(t, without, result["trace"])
		require.Contains(t, result, "vmTrace")
		require.Nil(t, result["vmTrace"])
		require.Equal(t, s.gethsDiff(receipt.TxHash), result["stateDiff"])
	}
}

// gethsDiff returns the difference of prestateTracer in OpenEthereum's format.
func (s *served) gethsDiff(hash common.Hash) m {
	s.t.Helper()
	type side struct {
		Balance *hexutil.Big
		Code    *hexutil.Bytes
		Nonce   uint64
		Storage map[common.Hash]common.Hash
	}
	var answer struct{ Pre, Post map[common.Address]*side }
	config := m{"tracer": "prestateTracer", "tracerConfig": m{"diffMode": true}}
	require.NoError(s.t, s.dial(s.server.URL).CallContext(s.t.Context(), &answer, "debug_traceTransaction", hash, config))
	diff := m{}
	addresses := maps.Clone(answer.Pre)
	maps.Copy(addresses, answer.Post)
	for address := range addresses {
		from, existed := answer.Pre[address]
		if !existed {
			from = &side{}
		}
		to := answer.Post[address]
		require.NotNil(s.t, to, "no account that existed is destroyed")
		if !existed && to.Balance == nil && to.Code == nil && to.Nonce == 0 {
			continue // the creation failed
		}
		field := func(from, to string, known bool) any {
			switch {
			case !existed:
				return m{"+": to}
			case !known || from == to:
				return "="
			}
			return m{"*": m{"from": from, "to": to}}
		}
		quantity := func(b *hexutil.Big) string {
			if b == nil {
				return "0x0"
			}
			return b.String()
		}
		code := func(b *hexutil.Bytes) string {
			if b == nil {
				return "0x"
			}
			return b.String()
		}
		slots := m{}
		keys := maps.Clone(from.Storage)
		if keys == nil {
			keys = map[common.Hash]common.Hash{}
		}
		maps.Copy(keys, to.Storage)
		for slot := range keys {
			slots[slot.Hex()] = field(from.Storage[slot].Hex(), to.Storage[slot].Hex(), true)
		}
		diff[strings.ToLower(address.Hex())] = m{
			"balance": field(quantity(from.Balance), quantity(to.Balance), to.Balance != nil),
			"code":    field(code(from.Code), code(to.Code), to.Code != nil),
			"nonce":   field(hexutil.EncodeUint64(from.Nonce), hexutil.EncodeUint64(to.Nonce), to.Nonce != 0),
			"storage": slots,
		}
	}
	return diff
}

// TestStateDiffOfADestruction: an account that existed and is gone, and one whose destruction
// was taken back.
func TestStateDiffOfADestruction(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(s.server.URL)
	maker := crypto.CreateAddress(s.node.Accounts()[0].Address, 0)
	child := crypto.CreateAddress(maker, 1)
	s.mined(s.send(1, &child, 7, nil)) // it has a balance before it is created
	receipt := s.run(0, 500_000, creating("33ff"))
	require.Equal(t, maker, receipt.ContractAddress)
	var answer struct{ StateDiff map[common.Address]m }
	require.NoError(t, c.CallContext(t.Context(), &answer, "trace_replayTransaction", receipt.TxHash, []string{"stateDiff"}))
	require.Equal(t, m{"balance": m{"-": "0x7"}, "code": m{"-": "0x"}, "nonce": m{"-": "0x0"}, "storage": m{}}, answer.StateDiff[child])
	require.Equal(t, m{"+": "0x6b"}, answer.StateDiff[maker]["balance"], "100 wei of the transaction and 7 of the child")

	child = crypto.CreateAddress(crypto.CreateAddress(s.node.Accounts()[2].Address, 0), 1)
	s.mined(s.send(1, &child, 7, nil))
	receipt = s.run(2, 500_000, creating("33ff")+"5f5ffd")
	answer.StateDiff = nil
	require.NoError(t, c.CallContext(t.Context(), &answer, "trace_replayTransaction", receipt.TxHash, []string{"stateDiff"}))
	require.NotContains(t, answer.StateDiff, child)
	require.NotContains(t, answer.StateDiff, receipt.ContractAddress)
}

// TestPartsOfAReplay: parts that the client does not want are empty, and others are refused.
func TestPartsOfAReplay(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(s.server.URL)
	hash := s.mined(s.send(0, &common.Address{19: 4}, 1, []byte{5})).TxHash // returns its input
	for _, x := range []struct {
		parts       []string
		trace, diff bool
	}{{[]string{}, false, false}, {[]string{"trace"}, true, false}, {[]string{"stateDiff", "stateDiff"}, false, true}} {
		var answer map[string]json.RawMessage
		require.NoError(t, c.CallContext(t.Context(), &answer, "trace_replayTransaction", hash, x.parts))
		require.Len(t, answer, 4)
		require.Equal(t, `"0x05"`, string(answer["output"]))
		require.Equal(t, x.trace, string(answer["trace"]) != "[]")
		require.Equal(t, x.diff, string(answer["stateDiff"]) != "null")
		require.Equal(t, "null", string(answer["vmTrace"]))
	}
	for method, of := range map[string]any{"trace_replayTransaction": hash, "trace_replayBlockTransactions": "latest"} {
		err := c.CallContext(t.Context(), new(any), method, of, []string{"trace", "vmTrace"})
		require.ErrorContains(t, err, "vmTrace is not supported")
		require.Equal(t, CodeUnsupported, code(err))
		err = c.CallContext(t.Context(), new(any), method, of, []string{"all"})
		require.EqualError(t, err, `the part of a trace is "all", want trace or stateDiff`)
		require.Equal(t, -32602, code(err))
		require.Equal(t, -32602, code(c.CallContext(t.Context(), new(any), method, of)))
	}
	for method, of := range map[string]any{"trace_replayTransaction": common.Hash{1}, "trace_replayBlockTransactions": "0x70"} {
		var answer any = "something"
		require.NoError(t, c.CallContext(t.Context(), &answer, method, of, []string{"trace"}))
		require.Nil(t, answer)
	}
	var none []any
	require.NoError(t, c.CallContext(t.Context(), &none, "trace_replayBlockTransactions", "earliest", []string{"trace"}))
	require.Equal(t, []any{}, none)
}

// TestReplayBounds: an answer with too many bytes is refused, whatever its parts are.
func TestReplayBounds(t *testing.T) {
	s := serve(t, func(_ *node.Config, api *Config) { api.BatchBytes = 4 * emptyTrace })
	c := s.dial(s.server.URL)
	calls := s.run(0, 200_000, creating("33ff")+creating("33ff")).TxHash
	writes := s.run(1, 200_000, "60015f556001600155600160025560016003556001600455").TxHash
	for hash, part := range map[common.Hash]string{calls: "trace", writes: "stateDiff"} {
		err := c.CallContext(t.Context(), new(any), "trace_replayTransaction", hash, []string{part})
		require.EqualError(t, err, "the traces have more than 2400 bytes", part)
		require.Equal(t, codeTooMany, code(err))
	}
	require.NoError(t, c.CallContext(t.Context(), new(any), "trace_replayTransaction", writes, []string{"trace"}))
}
