package jip2proof

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/jip2"
)

// A document about the storage or the outputs of a service is made of the node's state proof and of
// the validators' votes, and verifies.
func TestStateLink(t *testing.T) {
	n, ctx := startNode(t), t.Context()
	for route, key := range map[jamtest.Route]statetrie.Key{
		jamtest.ByStorage: statetrie.StorageKey(firstService, proof.CommitmentKey([]byte(service.CommitmentPrefix), 1)),
		jamtest.ByOutputs: statetrie.ChapterKey(statetrie.ChapterOutputs),
	} {
		var d *proof.Document
		n.server.View(func(c *jamtest.Chain) {
			var err error
			d, err = c.Prove(firstService, 1, route)
			require.NoError(t, err)
		})
		target := d.Finality.Precommit.Target
		answer, err := n.StateProof(ctx, target.Header, statetrie.Query{Keys: []statetrie.Key{key}}, 1<<20)
		require.NoError(t, err)
		link, err := State(target.StateRoot, key, answer)
		require.NoError(t, err)
		if route == jamtest.ByStorage {
			d.Storage, d.Commitment = &proof.StorageProof{Nodes: link.Nodes}, link.Value
		} else {
			d.Outputs = &link
		}
		require.NoError(t, d.AddTransaction(transactions(1), 0))
		result, err := d.Verify(n.trust(t, firstService))
		require.NoError(t, err)
		require.Equal(t, transactions(1)[0].Hash(), result.Transaction.Hash())

		_, err = State(common.Hash{1}, key, answer)
		require.ErrorIs(t, err, ErrContradiction, "another root")
		_, err = State(target.StateRoot, statetrie.ChapterKey(99), answer)
		require.ErrorIs(t, err, ErrContradiction, "a key that the proof does not open, or that is not there")
		answer.Proof[len(answer.Proof)-1] ^= 1
		_, err = State(target.StateRoot, key, answer)
		require.ErrorIs(t, err, ErrContradiction, "another value")
		_, err = State(target.StateRoot, key, jip2.StateProof{})
		require.ErrorIs(t, err, ErrContradiction)
	}
}
