package evmrollup

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/service"
)

// ErrPayload is returned if no node of this rollup can have made the payload.
var ErrPayload = errors.New("evmrollup: invalid payload")

// Transition is the payload of a block's work item. It begins with the header that
// package service defines, the only part that the rollup's service reads. The other
// fields follow in RLP. The witness contains all parts of the state that a guarantor
// needs to execute the block again, and proves the state roots before and after the
// block.
type Transition struct {
	PreRoot common.Hash  `rlp:"-"` // the header has it
	Block   *types.Block // without receipts
	Witness []byte       // see statedb.View.Witness
}

// Header returns the commitment that the service stores for a block: its number, hash,
// state roots and transactions root. preRoot is the state root before the block. The
// commitment's package field stays empty.
func Header(b *types.Block, preRoot common.Hash) proof.Commitment {
	return proof.Commitment{Number: b.NumberU64(), Hash: b.Hash(), PreRoot: preRoot, PostRoot: b.Root(), TransactionsRoot: b.TxHash()}
}

// Encode returns the payload.
func (t *Transition) Encode() ([]byte, error) {
	body, err := rlp.EncodeToBytes(t)
	return append(service.EncodeHeader(Header(t.Block, t.PreRoot)), body...), err
}

// Payload implements builder.Rollup. To get a witness, Payload executes the block again
// on the state before it. This works no matter which state is canonical. Payload fails
// if the execution results in a different block.
func (r *rollup) Payload(_ context.Context, b builder.Block[*Block]) ([]byte, error) {
	parent := r.ledger.ByNumber(b.Number - 1)
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
	payload, err := (&Transition{b.PreRoot, b.Body.Block, witness.Encode()}).Encode()
	fits := fitting(payload)
	if len(fits) < len(payload) {
		r.log.Warn("the package of a large block has only its header; other nodes cannot execute it", "block", b.Number, "bytes", len(payload), "most", maxPayload)
	}
	return fits, err
}

// maxPayload is the maximum size of a payload in bytes. It leaves room in a signed
// package for the refine context and the other fields.
const maxPayload = service.MaxSigned - 4096

// fitting returns the payload if it fits into a signed package.
func fitting(payload []byte) []byte {
	if len(payload) > maxPayload {
		// The header is enough for the service, so the chain continues. But other nodes
		// cannot execute such a block from its package.
		return payload[:service.HeaderSize]
	}
	return payload
}

// DecodeTransition decodes a payload, and checks that the header and the block belong
// together. The error wraps ErrPayload, or service.ErrHeader if the payload has no
// header.
func DecodeTransition(payload []byte) (*Transition, error) {
	h, err := service.DecodeHeader(payload)
	if err != nil {
		return nil, err
	}
	t := &Transition{PreRoot: h.PreRoot}
	if err := rlp.DecodeBytes(payload[service.HeaderSize:], t); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	want := Header(t.Block, h.PreRoot)
	want.TransactionsRoot = types.DeriveSha(t.Block.Transactions(), trie.NewStackTrie(nil))
	if !t.Block.Number().IsUint64() || t.Block.TxHash() != want.TransactionsRoot || h != want {
		return nil, fmt.Errorf("%w: block %d %s does not match the header, have %+v, want %+v", ErrPayload, t.Block.Number(), t.Block.Hash(), h, want)
	}
	return t, nil
}
