package proof

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// AddReceipt adds the fifth link, which proves the outcome of the document's
// transaction. The caller must have called [Document.AddTransaction] before. header
// is the header of the rollup block, whose hash is in the commitment, and receipts
// are all receipts of that block in the order of its transactions. AddReceipt does
// not check that they belong together: [Document.Verify] does. The error wraps
// ErrReceipt.
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

// verifyReceipt checks the fifth link, from the commitment to the receipt.
func (d *Document) verifyReceipt(c *Commitment) (*types.Receipt, error) {
	header := new(types.Header)
	if have := crypto.Keccak256Hash(d.Receipt.Header); have != c.Hash {
		return nil, fmt.Errorf("%w: the header has the hash %s, and block %d is %s", ErrReceipt, have, c.Number, c.Hash)
	}
	if err := rlp.DecodeBytes(d.Receipt.Header, header); err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrReceipt, err)
	}
	// The header names the receipts, and the commitment names the transactions. Only if both
	// have the same transactions root, a receipt belongs to the transaction with the same
	// index.
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
	// Receipts from before the Byzantium fork have a state root instead of a status.
	if root := receipt.PostState; len(root) != 0 {
		return nil, fmt.Errorf("%w: it has the state root %x, want a status", ErrReceipt, root)
	}
	return receipt, nil
}

// outcome describes the status of a receipt in one word.
func outcome(r *types.Receipt) string {
	if r.Status == types.ReceiptStatusSuccessful {
		return "succeeded"
	}
	return "failed"
}
