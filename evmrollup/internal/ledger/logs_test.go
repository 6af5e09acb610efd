package ledger_test

import (
	"encoding/json"
	"log/slog"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/store"
	"github.com/jamq/jamq/statedb/evm"
)

// drawBlock draws a block with legacy and other transactions, of which some have logs.
func drawBlock(t *rapid.T, parent *types.Block, config *params.ChainConfig) *ledger.Block {
	header := &types.Header{
		Number: new(big.Int).Add(parent.Number(), common.Big1), ParentHash: parent.Hash(),
		Time: parent.Time() + 7, BaseFee: big.NewInt(params.GWei), Difficulty: new(big.Int),
	}
	var txs types.Transactions
	var receipts types.Receipts
	for i := range rapid.IntRange(0, 6).Draw(t, "transactions") {
		to, nonce := common.Address{byte(i)}, parent.NumberU64()<<8+uint64(i)
		r := &types.Receipt{Status: types.ReceiptStatusSuccessful, CumulativeGasUsed: uint64(i+1) * 21_000}
		if rapid.Bool().Draw(t, "legacy") {
			txs = append(txs, types.NewTx(&types.LegacyTx{Nonce: nonce, To: &to, GasPrice: big.NewInt(params.GWei), V: big.NewInt(27), R: common.Big1, S: common.Big1}))
		} else {
			r.Type = types.DynamicFeeTxType
			txs = append(txs, types.NewTx(&types.DynamicFeeTx{ChainID: config.ChainID, Nonce: nonce, To: &to, V: common.Big1, R: common.Big1, S: common.Big1}))
		}
		for n := range rapid.IntRange(0, 3).Draw(t, "logs") {
			r.Logs = append(r.Logs, &types.Log{Address: to, Topics: make([]common.Hash, n), Data: make([]byte, 40*n)})
		}
		r.Bloom = types.CreateBloom(r)
		receipts = append(receipts, r)
	}
	block := types.NewBlock(header, &types.Body{Transactions: txs}, receipts, trie.NewStackTrie(nil))
	return &ledger.Block{Block: block, Receipts: receipts}
}

// The logs of a block on the disk, of which only the receipts are decoded, are those of the
// whole block.
func TestLogsOf(t *testing.T) {
	const blocks = 100 // more than stay in memory
	config := evm.ChainConfig(big.NewInt(7))
	rapid.Check(t, func(t *rapid.T) {
		genesis := &ledger.Block{Block: types.NewBlockWithHeader(&types.Header{Number: new(big.Int)})}
		l, err := ledger.Open(store.NewKeys(), config, genesis, 0, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		for number := range uint64(blocks) {
			require.NoError(t, l.Append(drawBlock(t, l.Head().Block, config)))
			require.NoError(t, l.Finalize(number+1, builder.Progress{}))
		}
		for number := range uint64(20) {
			logs, ok := l.LogsOf(number)
			require.True(t, ok)
			require.Equal(t, text(t, l.ByNumber(number).Logs()), text(t, logs))
		}
		_, ok := l.LogsOf(blocks + 1)
		require.False(t, ok)
	})
}

func text(t require.TestingT, logs []*types.Log) string {
	raw, err := json.Marshal(logs)
	require.NoError(t, err)
	return string(raw)
}
