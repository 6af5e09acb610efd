package jip2

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
)

// An open proposal for JIP-2 defines the methods in this file
// (polkadot-fellows/JIPs, pull request 16). Few nodes have them.

// StateValue returns the value under a key of the JAM state after a block, or
// nil if the state does not have the key. Package canonical/statetrie makes
// such keys.
func (c *Client) StateValue(ctx context.Context, block jamq.HeaderHash, key statetrie.Key) ([]byte, error) {
	return optional[[]byte](ctx, c, "stateValue", Hash(block), key[:])
}

// SubscribeStateValue follows the value under a key of the JAM state, on the
// best chain or, if finalized is true, on the finalized chain. The value of an
// update is nil if the state does not have the key.
func (c *Client) SubscribeStateValue(ctx context.Context, key statetrie.Key, finalized bool) (*Subscription[ChainSubUpdate[*[]byte]], error) {
	return Subscribe[ChainSubUpdate[*[]byte]](ctx, c, "subscribeStateValue", key[:], finalized)
}

// StateProof returns a proof of the keys and ranges that q requests, in the
// state after a block. The caller must verify it with StateProof.Open. If the
// entries of the ranges take more than sizeLimit bytes, the node may leave some
// of them out, and it may also apply a lower limit: see StateProof.Complete.
// Errors wrap statetrie.ErrQuery or are those of [Client.Call].
func (c *Client) StateProof(ctx context.Context, block jamq.HeaderHash, q statetrie.Query, sizeLimit uint32) (StateProof, error) {
	if err := q.Validate(); err != nil {
		return StateProof{}, err
	}
	keys, ranges := make([][]byte, len(q.Keys)), make([][2][]byte, len(q.Ranges))
	for i := range q.Keys {
		keys[i] = q.Keys[i][:]
	}
	for i := range q.Ranges {
		ranges[i] = [2][]byte{q.Ranges[i].First[:], q.Ranges[i].Last[:]}
	}
	known := [...]string{statetrie.KnownNone: "none", statetrie.KnownKeys: "keys", statetrie.KnownEntries: "keys_and_values"}[q.Known]
	return required[StateProof](ctx, c, "stateProof", Hash(block), keys, ranges, known, sizeLimit)
}

// StateProof is a compact proof of a part of a state.
type StateProof struct {
	// Proof is the encoded proof.
	Proof []byte
	// Complete is false if the node has left out entries at the end of the
	// query's ranges. ProvenThrough is then the last key in the ranges that the
	// proof covers. To get the remaining entries, the caller sends a query
	// whose ranges begin after that key.
	Complete      bool
	ProvenThrough statetrie.Key
}

// UnmarshalJSON decodes a proof. The error wraps ErrMalformed if a field is missing or
// malformed.
func (p *StateProof) UnmarshalJSON(raw []byte) error {
	const name = "state proof"
	var f struct {
		Proof         *[]byte `json:"proof"`
		Complete      *bool   `json:"complete"`
		ProvenThrough []byte  `json:"proven_through"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return malformed(name, err)
	}
	if f.Proof == nil || f.Complete == nil || *f.Complete == (len(f.ProvenThrough) > 0) {
		return fmt.Errorf("%w: %s without a field, or with proven_through although it is complete", ErrMalformed, name)
	}
	*p = StateProof{Proof: *f.Proof, Complete: *f.Complete}
	if n := len(f.ProvenThrough); n > 0 && n != len(p.ProvenThrough) {
		return fmt.Errorf("%w: %s through a key of %d bytes", ErrMalformed, name, n)
	}
	copy(p.ProvenThrough[:], f.ProvenThrough)
	return nil
}

// Open verifies the proof against a state root that the caller trusts, and
// returns the entries that the proof shows. q is the query that was sent with
// the call. known lists the entries that the caller already has, as q.Known
// demands. If the proof is not complete, Open expects only the part of q that
// ends at ProvenThrough. The error wraps statetrie.ErrProof.
func (p *StateProof) Open(root common.Hash, q statetrie.Query, known ...statetrie.Entry) (*statetrie.Opened, error) {
	if !p.Complete {
		q = q.Through(p.ProvenThrough)
	}
	return q.Open(root, p.Proof, known...)
}
