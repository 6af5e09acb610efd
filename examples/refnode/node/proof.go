package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/examples/refnode/jam"
)

var (
	// ErrNotFinal is returned for a transaction that is known and not final
	// yet.
	ErrNotFinal = errors.New("node: not final yet")
	// ErrNoProofs is returned if the JAM chain does not offer the parts of a
	// proof.
	ErrNoProofs = jam.ErrNoProofs
)

// FinalityProof returns a verified proof that a transaction is final, or nil if
// it is in no block. Errors wrap ErrNotFinal or ErrNoProofs.
func (n *Node) FinalityProof(ctx context.Context, tx common.Hash) (*proof.Document, error) {
	b, index, ok := n.Transaction(tx)
	if !ok {
		return nil, nil
	}
	number := b.NumberU64()
	if final := n.builder.Heads().Finalized.Number; number > final {
		return nil, fmt.Errorf("%w: %s is in block %d, which is %s; finalized is %d", ErrNotFinal, tx, number, n.Progress(number).Status, final)
	}
	d, err := n.jam.Prove(ctx, number)
	if err != nil {
		return nil, err
	}
	if err := d.AddTransaction(b.Transactions(), index); err != nil {
		return nil, err
	}
	trust, err := n.jam.Trust(ctx)
	if err != nil {
		return nil, err
	}
	result, err := d.Verify(trust)
	if err == nil && result.Commitment.Hash != b.Hash() {
		err = fmt.Errorf("the service received %s", result.Commitment.Hash)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: block %d %s: %w", ErrNoProofs, number, b.Hash(), err)
	}
	return d, nil
}

// Trust returns the trust that a verifier of the node's proofs needs. A
// verifier that takes it from the node which makes the proofs trusts that node,
// and should compare the fingerprint over another channel. The error wraps
// ErrNoProofs.
func (n *Node) Trust(ctx context.Context) (*proof.Trust, error) { return n.jam.Trust(ctx) }
