package proof

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// ProveTransaction returns the nodes of the transaction trie that lead from a
// block's transactions root to the transaction at the given index. The error wraps
// ErrTransaction if the block has no such transaction.
func ProveTransaction(txs types.Transactions, index int) ([][]byte, error) {
	nodes, err := proveEntry(txs, index)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTransaction, err)
	}
	return nodes, nil
}

// VerifyTransaction returns the transaction that has the given index in the block
// with the given transactions root. The nodes must lead from the root to the leaf,
// and there must be no unrelated nodes among them. The error wraps ErrTransaction
// if they do not prove a transaction.
func VerifyTransaction(root common.Hash, index int, nodes [][]byte) (*types.Transaction, error) {
	raw, err := verifyEntry(root, index, nodes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTransaction, err)
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTransaction, err)
	}
	return tx, nil
}
