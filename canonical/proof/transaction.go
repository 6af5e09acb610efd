package proof

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// ProveTransaction returns the trie nodes from a block's transactions root to
// the transaction at an index. The error wraps ErrTransaction if there is no
// such transaction.
func ProveTransaction(txs types.Transactions, index int) ([][]byte, error) {
	nodes, err := proveEntry(txs, index)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTransaction, err)
	}
	return nodes, nil
}

// VerifyTransaction returns the transaction that the nodes prove to be at an
// index of the block with the given transactions root. nodes lead from the root
// to the leaf, without unrelated ones. The error wraps ErrTransaction.
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
