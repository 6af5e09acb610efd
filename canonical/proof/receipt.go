package proof

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// AddReceipt adds the receipt of the document's transaction, which
// [Document.AddTransaction] must have added. The header and the receipts, in the
// order of the transactions, are those of the rollup block. The header must have
// the hash in the commitment and the roots of Ethereum. AddReceipt does not check
// that. The error wraps ErrReceipt.
func (d *Document) AddReceipt(header *types.Header, receipts types.Receipts) error {
	if d.Transaction == nil {
		return fmt.Errorf("%w: the document has no transaction", ErrReceipt)
	}
	raw, err := rlp.EncodeToBytes(header)
	if err != nil {
		return fmt.Errorf("%w: header: %w", ErrReceipt, err)
	}
	nodes, err := proveEntry(receipts, d.Transaction.Index)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	d.Receipt = &ReceiptProof{Header: raw, Nodes: hexNodes(nodes)}
	return nil
}

// verifyReceipt checks the fifth link. The header must name the transactions of
// the commitment, because the receipt at an index is the one of the transaction at
// that index in the same block.
func (d *Document) verifyReceipt(c *Commitment) (*types.Receipt, error) {
	header := new(types.Header)
	if have := crypto.Keccak256Hash(d.Receipt.Header); have != c.Hash {
		return nil, fmt.Errorf("%w: the header has the hash %s, and block %d is %s", ErrReceipt, have, c.Number, c.Hash)
	}
	if err := rlp.DecodeBytes(d.Receipt.Header, header); err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrReceipt, err)
	}
	if header.TxHash != c.TransactionsRoot {
		return nil, fmt.Errorf("%w: the header has the transactions %s, and the commitment %s", ErrReceipt, header.TxHash, c.TransactionsRoot)
	}
	raw, err := verifyEntry(header.ReceiptHash, d.Transaction.Index, rawNodes(d.Receipt.Nodes))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	receipt := new(types.Receipt)
	if err := receipt.UnmarshalBinary(raw); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	// Receipts of before Byzantium have a state root and no status.
	if root := receipt.PostState; len(root) != 0 {
		return nil, fmt.Errorf("%w: it has the state root %x, want a status", ErrReceipt, root)
	}
	return receipt, nil
}

// outcome returns the status of a receipt in a word.
func outcome(r *types.Receipt) string {
	if r.Status == types.ReceiptStatusSuccessful {
		return "succeeded"
	}
	return "failed"
}
