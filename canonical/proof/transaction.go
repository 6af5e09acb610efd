package proof

import (
	"bytes"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// ProveTransaction returns the trie nodes from a block's transactions root to
// the transaction at an index. The error wraps ErrTransaction if there is no
// such transaction.
func ProveTransaction(txs types.Transactions, index int) ([][]byte, error) {
	if index < 0 || index >= len(txs) {
		return nil, fmt.Errorf("%w: index %d of %d transactions", ErrTransaction, index, len(txs))
	}
	tree := trie.NewEmpty(nil)
	for i, tx := range txs {
		raw, err := tx.MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTransaction, err)
		}
		if err := tree.Update(rlp.AppendUint64(nil, uint64(i)), raw); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTransaction, err)
		}
	}
	nodes := &nodeList{}
	if err := tree.Prove(rlp.AppendUint64(nil, uint64(index)), nodes); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTransaction, err)
	}
	return nodes.list, nil
}

// nodeList collects the nodes of a proof in their order.
type nodeList struct{ list [][]byte }

// Put implements ethdb.KeyValueWriter.
func (n *nodeList) Put(_, value []byte) error {
	n.list = append(n.list, bytes.Clone(value))
	return nil
}

// Delete implements ethdb.KeyValueWriter. A proof deletes nothing.
func (n *nodeList) Delete([]byte) error { return nil }

// Get implements ethdb.KeyValueReader for a walk from the root down. It returns
// the next node, which must have the requested hash.
func (n *nodeList) Get(hash []byte) ([]byte, error) {
	if len(n.list) == 0 || !bytes.Equal(crypto.Keccak256(n.list[0]), hash) {
		return nil, fmt.Errorf("the next node is not %x", hash)
	}
	node := n.list[0]
	n.list = n.list[1:]
	return node, nil
}

// Has implements ethdb.KeyValueReader.
func (n *nodeList) Has(hash []byte) (bool, error) {
	return len(n.list) > 0 && bytes.Equal(crypto.Keccak256(n.list[0]), hash), nil
}

// VerifyTransaction returns the transaction that the nodes prove to be at an
// index of the block with the given transactions root. nodes lead from the root
// to the leaf, without unrelated ones. The error wraps ErrTransaction.
func VerifyTransaction(root common.Hash, index int, nodes [][]byte) (*types.Transaction, error) {
	if index < 0 {
		return nil, fmt.Errorf("%w: index %d", ErrTransaction, index)
	}
	path := &nodeList{nodes}
	raw, err := trie.VerifyProof(root, rlp.AppendUint64(nil, uint64(index)), path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrTransaction, err)
	case raw == nil:
		return nil, fmt.Errorf("%w: the block has no transaction %d", ErrTransaction, index)
	case len(path.list) > 0:
		return nil, fmt.Errorf("%w: %d unused nodes", ErrTransaction, len(path.list))
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTransaction, err)
	}
	return tx, nil
}
