package proof

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/stretchr/testify/require"
)

func block(n int) (types.Transactions, common.Hash) {
	txs := make(types.Transactions, n)
	for i := range txs {
		txs[i] = types.NewTx(&types.LegacyTx{Nonce: uint64(i), Gas: 21000, Data: make([]byte, 40)})
	}
	return txs, types.DeriveSha(txs, trie.NewStackTrie(nil))
}

func TestTransactionProofs(t *testing.T) {
	for _, n := range []int{1, 2, 17, 200} {
		txs, root := block(n)
		for _, i := range []int{0, n / 2, n - 1} {
			nodes, err := ProveTransaction(txs, i)
			require.NoError(t, err)
			tx, err := VerifyTransaction(root, i, nodes)
			require.NoError(t, err)
			require.Equal(t, txs[i].Hash(), tx.Hash())

			_, err = VerifyTransaction(common.Hash{1}, i, nodes)
			require.ErrorIs(t, err, ErrTransaction, "another block")
			_, err = VerifyTransaction(root, n+1, nodes)
			require.ErrorIs(t, err, ErrTransaction, "a place that does not exist")
			_, err = VerifyTransaction(root, i, nodes[:len(nodes)-1])
			require.ErrorIs(t, err, ErrTransaction, "a node is missing")
			_, err = VerifyTransaction(root, i, append(nodes[:len(nodes):len(nodes)], []byte("more")))
			require.ErrorIs(t, err, ErrTransaction, "a node too many")
			_, err = VerifyTransaction(root, i, append([][]byte{[]byte("more")}, nodes...))
			require.ErrorIs(t, err, ErrTransaction, "a node before the root")
			forged := append([][]byte(nil), nodes...)
			forged[len(forged)-1] = append([]byte(nil), forged[len(forged)-1]...)
			forged[len(forged)-1][3] ^= 1
			_, err = VerifyTransaction(root, i, forged)
			require.ErrorIs(t, err, ErrTransaction, "a forged node")
		}
	}
	txs, _ := block(3)
	_, err := ProveTransaction(txs, 3)
	require.ErrorIs(t, err, ErrTransaction)
}

func FuzzVerifyTransaction(f *testing.F) {
	txs, root := block(20)
	nodes, err := ProveTransaction(txs, 5)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(root[:], 5, nodes[0], nodes[1])
	f.Fuzz(func(t *testing.T, root []byte, index int, a, b []byte) {
		for _, root := range []common.Hash{common.BytesToHash(root), crypto.Keccak256Hash(a)} {
			if tx, err := VerifyTransaction(root, index, [][]byte{a, b}); err == nil && tx == nil {
				t.Fatal("proved, and there is none")
			}
		}
	})
}
