package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest"
)

var (
	// ErrNotFinal: a transaction is known and not final yet.
	ErrNotFinal = errors.New("node: not final yet")
	// ErrNoProofs: the JAM chain cannot be asked for what a proof is made of.
	ErrNoProofs = errors.New("node: no finality proofs")
)

// commit is what the rollup's service stores of a package: nothing, where the payload is not about the block that it holds. The hash of that binds
// number, state after it and transactions root, of which the last is taken from the transactions themselves.
func commit(p jamtest.Package) (proof.Commitment, bool) {
	var t transition
	if err := rlp.DecodeBytes(p.Payload, &t); err != nil || t.Block == nil {
		return proof.Commitment{}, false
	}
	root := types.DeriveSha(t.Block.Transactions(), trie.NewStackTrie(nil))
	if !t.Block.Number().IsUint64() || t.Block.NumberU64() != t.Number || t.Block.Root() != t.PostRoot || t.Block.TxHash() != root {
		return proof.Commitment{}, false
	}
	return proof.Commitment{Number: t.Number, Hash: t.Block.Hash(), PreRoot: t.PreRoot, PostRoot: t.PostRoot, TransactionsRoot: root}, true
}

// FinalityProof returns the proof that a transaction is final, or nil for one that is in no block. It is checked before it is handed out. Errors wrap
// ErrNotFinal or ErrNoProofs.
func (n *Node) FinalityProof(ctx context.Context, tx common.Hash) (*proof.Document, error) {
	b, index, ok := n.Transaction(tx)
	if !ok {
		return nil, nil
	}
	number := b.NumberU64()
	if final := n.head(canonical.Finalized).Number; number > final {
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
		err = fmt.Errorf("the service took %s", result.Commitment.Hash)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: block %d %s: %w", ErrNoProofs, number, b.Hash(), err)
	}
	return d, nil
}

// Trust returns what a verifier of the node's proofs has to know beforehand. Who takes it from the node that makes the proofs trusts the
// node: compare its fingerprint with what others say. The error wraps ErrNoProofs.
func (n *Node) Trust(ctx context.Context) (*proof.Trust, error) { return n.jam.trust(ctx) }

// head returns the block that a tag names.
func (n *Node) head(tag canonical.Tag) canonical.Head {
	n.mu.Lock()
	defer n.mu.Unlock()
	head, err := n.tracker.Resolve(tag)
	if err != nil {
		n.log.Error("tag without a block", "tag", tag, "err", err)
	}
	return head
}

func (e *embedded) prove(_ context.Context, number uint64) (d *proof.Document, err error) {
	e.driver.View(func(c *jamtest.Chain) { d, err = c.Prove(e.service, number, jamtest.ByStorage) })
	if err != nil {
		// The chain began with this process; blocks that were final before are not on it.
		return nil, fmt.Errorf("%w: the embedded JAM chain has none for block %d: %w", ErrNoProofs, number, err)
	}
	return d, nil
}

func (e *embedded) trust(context.Context) (t *proof.Trust, err error) {
	e.driver.View(func(c *jamtest.Chain) { t, err = c.Trust(e.service) })
	return t, err
}

// errJIP2 says why a remote chain cannot be asked.
var errJIP2 = fmt.Errorf("%w: JIP-2, by which the JAM node is asked, has neither state proofs nor finality votes", ErrNoProofs)

func (r *remote) prove(context.Context, uint64) (*proof.Document, error) { return nil, errJIP2 }
func (r *remote) trust(context.Context) (*proof.Trust, error)            { return nil, errJIP2 }
