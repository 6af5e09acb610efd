package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/examples/refnode/rpcapi"
)

// A user asks the node for a proof and the command whether it holds: node, document, verify.
func TestFinalityProof(t *testing.T) {
	t.Parallel()
	node := startNode(t, "-skip", "0.1")
	c := dial(t, node.url)
	me := accounts(t)[3]
	var txs []*types.Transaction
	for nonce := range uint64(7) {
		txs = append(txs, send(t, c, me, transfer(nonce, common.Address{0xf6})))
	}
	var document *proof.Document
	if err := c.Client().CallContext(t.Context(), &document, "jam_getFinalityProof", txs[6].Hash()); err != nil {
		require.ErrorContains(t, err, "not final yet")
	} else {
		require.Nil(t, document, "in no block, so null")
	}
	var trust *proof.Trust
	require.NoError(t, c.Client().CallContext(t.Context(), &trust, "jam_getTrust"))
	require.Len(t, trust.Validators, 6)

	save := func(v any) string {
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		name := filepath.Join(t.TempDir(), "file.json")
		require.NoError(t, os.WriteFile(name, raw, 0o600))
		return name
	}
	trustFile := save(trust)
	for _, tx := range txs {
		receipt := waitFor(t, c, tx.Hash(), rpc.FinalizedBlockNumber)
		var raw json.RawMessage
		require.NoError(t, c.Client().CallContext(t.Context(), &raw, "jam_getFinalityProof", tx.Hash()))
		document, err := proof.Parse(raw)
		require.NoError(t, err)
		result, err := document.Verify(trust)
		require.NoError(t, err)
		require.Equal(t, tx.Hash(), result.Transaction.Hash())
		require.Equal(t, receipt.BlockHash, result.Commitment.Hash)
		require.Equal(t, receipt.TransactionIndex, uint(document.Transaction.Index))

		out, err := program(t, "verify", "-trust", trustFile, "-tx", tx.Hash().Hex(), save(raw)).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "FINAL: transaction "+tx.Hash().Hex())
	}
	// One command that asks the node itself: with a trust from elsewhere, and with the node's own,
	// which it says.
	for _, args := range [][]string{{"-trust", trustFile}, {}} {
		out, err := program(t, "verify", append(args, "-node", node.url, "-tx", txs[0].Hash().Hex())...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "FINAL: transaction "+txs[0].Hash().Hex())
		require.Equal(t, len(args) == 0, strings.Contains(string(out), "The trust comes from the node"))
	}
	require.NoError(t, c.Client().CallContext(t.Context(), &document, "jam_getFinalityProof", common.Hash{1}))
	require.Nil(t, document, "an unknown transaction")
}

// On a chain behind JIP-2 the node makes no proofs, and its error names the package that can.
func TestNoFinalityProofByJIP2(t *testing.T) {
	t.Parallel()
	jam := startJAMNode(t, "-slot", "80ms")
	node := launch(t, "-jam", jam.url)
	c := dial(t, node.url)
	tx := send(t, c, accounts(t)[4], transfer(0, common.Address{0xf7}))
	waitFor(t, c, tx.Hash(), rpc.FinalizedBlockNumber)
	var document *proof.Document
	err := c.Client().CallContext(t.Context(), &document, "jam_getFinalityProof", tx.Hash())
	require.ErrorContains(t, err, "jip2proof")
	var coded rpc.Error
	require.ErrorAs(t, err, &coded)
	require.Equal(t, rpcapi.CodeNoProofs, coded.ErrorCode())
	require.ErrorContains(t, c.Client().CallContext(t.Context(), &document, "jam_getTrust"), "JIP-2")
}
