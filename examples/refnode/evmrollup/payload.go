package evmrollup

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/canonical/proof"
)

// Transition is the payload of a block's work item. The rollup's service checks
// and stores it. The witness has all of the state that a guarantor needs to
// execute the block again, and proves both roots.
type Transition struct {
	Number            uint64
	PreRoot, PostRoot common.Hash
	Block             *types.Block
	Witness           []byte
}

// Payload implements builder.Rollup. It executes the block again on its own pre-state,
// whatever the canonical root is, and fails unless the result has the same hash.
func (r *rollup) Payload(_ context.Context, b builder.Block[*Block]) ([]byte, error) {
	parent := r.ledger.byNumber(b.Number - 1)
	if parent == nil || parent.Root() != b.PreRoot {
		return nil, fmt.Errorf("evmrollup: block %d: its parent was undone", b.Number)
	}
	view, sealed, err := r.replay(parent, b.Body.Block, true)
	if err != nil {
		return nil, err
	}
	witness, err := view.Witness()
	if err != nil {
		return nil, err
	}
	root, err := view.Root()
	if err != nil {
		return nil, err
	}
	if _, err := sealed(root); err != nil {
		return nil, err
	}
	return rlp.EncodeToBytes(&Transition{b.Number, b.PreRoot, b.Root, b.Body.Block, witness.Encode()})
}

// DecodeTransition decodes a payload.
func DecodeTransition(payload []byte) (*Transition, error) {
	t := new(Transition)
	if err := rlp.DecodeBytes(payload, t); err != nil {
		return nil, fmt.Errorf("evmrollup: payload: %w", err)
	}
	return t, nil
}

// Commit returns the commitment that the rollup's service stores for a payload,
// or false if the payload does not match its block. The commitment binds the
// number, the state after the block and the transactions root, which is derived
// from the transactions themselves.
func Commit(payload []byte) (proof.Commitment, bool) {
	t, err := DecodeTransition(payload)
	if err != nil || t.Block == nil {
		return proof.Commitment{}, false
	}
	root := types.DeriveSha(t.Block.Transactions(), trie.NewStackTrie(nil))
	if !t.Block.Number().IsUint64() || t.Block.NumberU64() != t.Number || t.Block.Root() != t.PostRoot || t.Block.TxHash() != root {
		return proof.Commitment{}, false
	}
	return proof.Commitment{Number: t.Number, Hash: t.Block.Hash(), PreRoot: t.PreRoot, PostRoot: t.PostRoot, TransactionsRoot: root}, true
}
