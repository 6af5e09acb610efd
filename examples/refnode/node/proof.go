package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest"
)

var (
	// ErrNotFinal is returned for a transaction that is known and not final
	// yet.
	ErrNotFinal = errors.New("node: not final yet")
	// ErrNoProofs is returned if the JAM chain does not offer the parts of a
	// proof.
	ErrNoProofs = errors.New("node: no finality proofs")
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
	d, err := n.jam.prove(ctx, number)
	if err != nil {
		return nil, err
	}
	if err := d.AddTransaction(b.Transactions(), index); err != nil {
		return nil, err
	}
	trust, err := n.jam.trust(ctx)
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
func (n *Node) Trust(ctx context.Context) (*proof.Trust, error) { return n.jam.trust(ctx) }

func (e *embedded) prove(_ context.Context, number uint64) (d *proof.Document, err error) {
	e.Driver().View(func(c *jamtest.Chain) { d, err = c.Prove(e.service, number, jamtest.ByStorage) })
	if err != nil {
		// The chain began with this process; blocks that were final before are not on it.
		return nil, fmt.Errorf("%w: the embedded JAM chain has none for block %d: %w", ErrNoProofs, number, err)
	}
	return d, nil
}

func (e *embedded) trust(context.Context) (t *proof.Trust, err error) {
	e.Driver().View(func(c *jamtest.Chain) { t, err = c.Trust(e.service) })
	return t, err
}

// errJIP2 is the reason why a remote chain offers no proofs.
var errJIP2 = fmt.Errorf("%w: JIP-2, by which the JAM node is asked, has neither state proofs nor finality votes", ErrNoProofs)

func (r *remote) prove(context.Context, uint64) (*proof.Document, error) { return nil, errJIP2 }
func (r *remote) trust(context.Context) (*proof.Trust, error)            { return nil, errJIP2 }
