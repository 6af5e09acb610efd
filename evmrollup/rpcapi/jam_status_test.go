package rpcapi

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"
)

// jam_getTransactionStatus in each state that a user meets.
func TestTransactionStatus(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(s.server.URL)
	ask := func(hash common.Hash) (answer map[string]any) {
		t.Helper()
		require.NoError(t, c.CallContext(t.Context(), &answer, "jam_getTransactionStatus", hash))
		return answer
	}
	require.Nil(t, ask(common.Hash{1}))

	sent := s.send(0, &common.Address{1}, 1, nil)
	receipt := s.mined(sent)
	answer := ask(sent.Hash())
	require.Equal(t, "included", answer["status"])
	require.Equal(t, receipt.BlockHash.Hex(), answer["blockHash"])
	require.Equal(t, "0x0", answer["transactionIndex"])
	require.Contains(t, []any{"accumulated", "finalized"}, answer["bundleStatus"])
	require.Nil(t, answer["reason"])

	s.nonces[1] = 5 // behind a gap
	waiting := s.send(1, &common.Address{1}, 1, nil)
	require.Equal(t, map[string]any{
		"hash": waiting.Hash().Hex(), "status": "queued", "blockNumber": nil, "blockHash": nil, "transactionIndex": nil,
		"bundleStatus": nil, "replacedBy": nil, "reason": nil, "time": nil,
	}, ask(waiting.Hash()))

	id := s.node.ChainConfig().ChainID
	replacement := types.MustSignNewTx(s.node.Accounts()[1].Key, types.LatestSignerForChainID(id), &types.DynamicFeeTx{
		ChainID: id, Nonce: 5, GasTipCap: big.NewInt(9 * params.GWei), GasFeeCap: big.NewInt(90 * params.GWei), Gas: 21_000, To: &common.Address{1},
	})
	require.NoError(t, s.node.SendTransaction(replacement))
	answer = ask(waiting.Hash())
	require.Equal(t, "replaced", answer["status"])
	require.Equal(t, replacement.Hash().Hex(), answer["replacedBy"])

	before := time.Now().Truncate(time.Second)
	require.NoError(t, s.node.RemovePooled(replacement.Hash()))
	answer = ask(replacement.Hash())
	require.Equal(t, "dropped", answer["status"])
	require.Equal(t, "txpool: transaction removed", answer["reason"])
	at, err := time.Parse(time.RFC3339, answer["time"].(string))
	require.NoError(t, err)
	require.False(t, at.Before(before), "%v is before %v", at, before)
	require.False(t, at.After(time.Now()))
}
