package evmrollup

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/stretchr/testify/require"
)

// The service commits to a block only under its own number, with the state and the transactions
// that its hash binds.
func TestCommitBindsTheBlock(t *testing.T) {
	header := &types.Header{Number: big.NewInt(7), Root: common.Hash{1}, Difficulty: new(big.Int)}
	txs := types.Transactions{types.NewTx(&types.LegacyTx{Nonce: 1})}
	block := types.NewBlock(header, &types.Body{Transactions: txs}, nil, trie.NewStackTrie(nil))
	honest := Transition{Number: 7, PreRoot: common.Hash{2}, PostRoot: common.Hash{1}, Block: block}
	of := func(change func(*Transition)) bool {
		t.Helper()
		forged := honest
		change(&forged)
		payload, err := rlp.EncodeToBytes(&forged)
		require.NoError(t, err)
		c, ok := Commit(payload)
		require.Equal(t, ok, c.Hash == block.Hash())
		return ok
	}
	require.True(t, of(func(*Transition) {}))
	for name, change := range map[string]func(*Transition){
		"another number": func(t *Transition) { t.Number = 8 },
		"another state":  func(t *Transition) { t.PostRoot = common.Hash{3} },
		"other transactions": func(t *Transition) {
			t.Block = types.NewBlockWithHeader(block.Header()).WithBody(types.Body{})
		},
		"a number beyond all": func(t *Transition) {
			t.Block = types.NewBlockWithHeader(&types.Header{Number: new(big.Int).Lsh(big.NewInt(1), 64), Root: common.Hash{1}})
			t.Number = 0
		},
	} {
		require.False(t, of(change), name)
	}
}
