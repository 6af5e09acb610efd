package jip2proof

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/submit/jip2"
)

// State returns the second link of a document that proves the finality of a block
// and then leads through its state. The link contains the value of a key in the
// state with the given root, and the nodes that lead to that value. answer is the
// node's proof for statetrie.Query{Keys: []statetrie.Key{key}}, which transfers
// only a part of the nodes.
//
//	entry, err := jip2proof.State(root, statetrie.StorageKey(service, proof.CommitmentKey(prefix, number)), answer)
//	document.Storage, document.Commitment = &proof.StorageProof{Nodes: entry.Nodes}, entry.Value
//
// If key is the key of C(16), the result can be used as proof.Document.Outputs
// directly. The error wraps ErrContradiction if the answer does not prove the key,
// or if it proves that the state does not contain the key. State does no I/O and is
// safe for concurrent use.
func State(root common.Hash, key statetrie.Key, answer jip2.StateProof) (proof.ChapterProof, error) {
	opened, err := answer.Open(root, statetrie.Query{Keys: []statetrie.Key{key}})
	if err != nil {
		return proof.ChapterProof{}, fmt.Errorf("%w: %w", ErrContradiction, err)
	}
	value, present, err := opened.Get(key)
	switch {
	case err != nil:
		return proof.ChapterProof{}, fmt.Errorf("%w: %w", ErrContradiction, err)
	case !present:
		return proof.ChapterProof{}, fmt.Errorf("%w: the state does not have key %x", ErrContradiction, key)
	}
	nodes, err := opened.Prove(key)
	if err != nil {
		return proof.ChapterProof{}, fmt.Errorf("%w: %w", ErrContradiction, err)
	}
	return proof.ChapterProof{Nodes: nodes, Value: value}, nil
}
