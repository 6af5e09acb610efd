// Package proof verifies what makes a user sure that a transaction of a rollup is final.
//
// The whole chain is: signatures of more than two thirds of JAM's validators over a header, the state or output log under that header, the
// commitment of the rollup's service in it, and the transaction in the rollup block behind that. Here are its two ends: the count of
// signers ([Quorum]) and the transaction in its block ([VerifyTransaction]). The links between come with the finality proofs.
//
// Verifiers are pure and safe for concurrent use. They trust nothing in a proof: whatever it holds, the answer is an error or the truth.
package proof

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethdb/memorydb"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

var (
	// ErrQuorum: too few distinct validators signed.
	ErrQuorum = errors.New("proof: no quorum")
	// ErrTransaction: the transaction is not proved to be in the block.
	ErrTransaction = errors.New("proof: transaction not proved")
)

// Quorum checks that distinct signers out of a validator set of the given size are more than two thirds of it. Exactly two thirds are not
// enough. signers are indices into the set; the error wraps ErrQuorum, also where one is repeated or out of range.
func Quorum(signers []int, validators int) error {
	seen := make(map[int]bool, len(signers))
	for _, s := range signers {
		if s < 0 || s >= validators || seen[s] {
			return fmt.Errorf("%w: signer %d is repeated or not in the set of %d", ErrQuorum, s, validators)
		}
		seen[s] = true
	}
	if 3*len(seen) <= 2*validators {
		return fmt.Errorf("%w: %d of %d signed, want at least %d", ErrQuorum, len(seen), validators, 2*validators/3+1)
	}
	return nil
}

// ProveTransaction returns the trie nodes that lead from a block's transactions root to the transaction at an index. The error wraps
// ErrTransaction for an index that does not exist.
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

// nodeList keeps the nodes of a proof in their order.
type nodeList struct{ list [][]byte }

// Put implements ethdb.KeyValueWriter.
func (n *nodeList) Put(_, value []byte) error {
	n.list = append(n.list, bytes.Clone(value))
	return nil
}

// Delete implements ethdb.KeyValueWriter; a proof deletes nothing.
func (n *nodeList) Delete([]byte) error { return nil }

// VerifyTransaction returns the transaction that the nodes prove to stand at an index of the block with the given transactions root. The
// error wraps ErrTransaction.
func VerifyTransaction(root common.Hash, index int, nodes [][]byte) (*types.Transaction, error) {
	if index < 0 {
		return nil, fmt.Errorf("%w: index %d", ErrTransaction, index)
	}
	db := memorydb.New()
	for _, n := range nodes {
		if err := db.Put(crypto.Keccak256(n), n); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTransaction, err)
		}
	}
	raw, err := trie.VerifyProof(root, rlp.AppendUint64(nil, uint64(index)), db)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTransaction, err)
	}
	if raw == nil {
		return nil, fmt.Errorf("%w: the block has no transaction %d", ErrTransaction, index)
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTransaction, err)
	}
	return tx, nil
}
