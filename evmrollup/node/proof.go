package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/evmrollup/internal/jam"
	"github.com/jamq/jamq/evmrollup/stateproof"
	"github.com/jamq/jamq/statedb"
)

var (
	// ErrNotFinal is returned if the transaction or block for which a proof is requested is
	// known but not final yet.
	ErrNotFinal = errors.New("node: not final yet")
	// ErrNoProofs is returned if the JAM chain does not provide the data for proofs.
	ErrNoProofs = jam.ErrNoProofs
)

// FinalityProof returns a proof that a transaction is final, which the node has
// verified. It returns nil if the transaction is not in a block. Errors wrap
// ErrNotFinal or ErrNoProofs.
func (n *Node) FinalityProof(ctx context.Context, tx common.Hash) (*proof.Document, error) {
	b, index, ok := n.Transaction(tx)
	if !ok {
		return nil, nil
	}
	return n.prove(ctx, b, func(d *proof.Document) error { return d.AddTransaction(b.Transactions(), index) })
}

// ReceiptProof returns a proof that a transaction is final, like FinalityProof,
// together with a proof of the transaction's receipt.
func (n *Node) ReceiptProof(ctx context.Context, tx common.Hash) (*proof.Document, error) {
	b, index, ok := n.Transaction(tx)
	if !ok {
		return nil, nil
	}
	return n.prove(ctx, b, func(d *proof.Document) error {
		if err := d.AddTransaction(b.Transactions(), index); err != nil {
			return err
		}
		return d.AddReceipt(b.Header(), b.Receipts)
	})
}

// AccountProof returns a proof of an account, and of slots of its storage, in the state
// after a final block. The proof also shows that the block is final; the node has
// verified this part. Errors wrap ErrNotFinal or ErrNoProofs, or are those of StateAt
// and stateproof.Prove.
func (n *Node) AccountProof(ctx context.Context, b *Block, addr common.Address, slots []string) (*stateproof.FinalAccount, error) {
	d, err := n.prove(ctx, b, func(*proof.Document) error { return nil })
	if err != nil {
		return nil, err
	}
	account, err := stateproof.Prove(func() (*statedb.View, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return n.StateAt(b)
	}, addr, slots)
	if err != nil {
		return nil, err
	}
	return &stateproof.FinalAccount{Block: d, Account: account}, nil
}

// prove returns a verified proof that a block is final, completed by add.
func (n *Node) prove(ctx context.Context, b *Block, add func(*proof.Document) error) (*proof.Document, error) {
	number := b.NumberU64()
	if final := n.builder.Heads().Finalized.Number; number > final {
		return nil, fmt.Errorf("%w: block %d is %s; finalized is %d", ErrNotFinal, number, n.Progress(number).Status, final)
	}
	d, trust, err := n.jam.Prove(ctx, number)
	if err != nil {
		return nil, err
	}
	if err := add(d); err != nil {
		return nil, err
	}
	result, err := d.VerifyBlock(trust)
	if err == nil && result.Commitment.Hash != b.Hash() {
		err = fmt.Errorf("the service received %s", result.Commitment.Hash)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: block %d %s: %w", ErrNoProofs, number, b.Hash(), err)
	}
	return d, nil
}

// Trust returns the data that a verifier of the node's proofs must trust, such as the
// keys of the validators. A verifier that gets this data from the same node as the
// proofs has to trust the node, so the verifier should compare the fingerprint over
// another channel. The error wraps ErrNoProofs.
func (n *Node) Trust(ctx context.Context) (*proof.Trust, error) { return n.jam.Trust(ctx) }

// Handoff returns a proof of the JAM validator set that follows the given set. A
// verifier needs it when the validators change. The error wraps ErrNoProofs.
func (n *Node) Handoff(ctx context.Context, set uint64) (*proof.Handoff, error) {
	return n.jam.Handoff(ctx, set)
}
