package main

import (
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/evmrollup/rpcapi"
	"github.com/jamq/jamq/evmrollup/stateproof"
	"github.com/jamq/jamq/internal/wait"
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

// A user asks the node for the outcome of a transaction and for the state after a final block, and
// the command whether both hold.
func TestReceiptAndAccountProofs(t *testing.T) {
	t.Parallel()
	node := startNode(t)
	c := dial(t, node.url)
	me := accounts(t)[5]
	var trust json.RawMessage
	require.NoError(t, c.Client().CallContext(t.Context(), &trust, "jam_getTrust"))
	trustFile := filepath.Join(t.TempDir(), "trust.json")
	require.NoError(t, os.WriteFile(trustFile, trust, 0o600))
	verify := func(args ...string) string {
		out, err := program(t, "verify", append([]string{"-trust", trustFile, "-node", node.url}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}

	// The creation writes 42 to slot 7. The other one fails at an invalid instruction.
	price := big.NewInt(10 * params.GWei)
	created := send(t, c, me, &types.LegacyTx{Nonce: 0, GasPrice: price, Gas: 200_000, Data: common.FromHex("602a600755")})
	failed := send(t, c, me, &types.LegacyTx{Nonce: 1, GasPrice: price, Gas: 200_000, Data: common.FromHex("fe")})
	receipt := waitFor(t, c, created.Hash(), rpc.FinalizedBlockNumber)
	require.Equal(t, types.ReceiptStatusSuccessful, receipt.Status)
	require.Equal(t, types.ReceiptStatusFailed, waitFor(t, c, failed.Hash(), rpc.FinalizedBlockNumber).Status)
	require.Contains(t, verify("-receipt", "-tx", created.Hash().Hex()), ", SUCCEEDED\n")
	require.Contains(t, verify("-receipt", "-tx", failed.Hash().Hex()), ", FAILED\n")
	require.NotContains(t, verify("-tx", failed.Hash().Hex()), "FAILED", "the outcome was not asked for")

	text := verify("-account", receipt.ContractAddress.Hex(), "-slot", "0x7")
	require.Contains(t, text, "nonce 1\n   slot 0x7: 0x2a\n")
	text = verify("-account", me.Address.Hex())
	require.Contains(t, text, "nonce 2\n")
	text = verify("-account", common.Address{0xee, 0xee}.Hex())
	require.Contains(t, text, "balance 0 wei\n   nonce 0\n")

	// The state after an earlier block.
	var before *stateproof.FinalAccount
	require.NoError(t, c.Client().CallContext(t.Context(), &before, "jam_getAccountProof", me.Address, []string{}, hexutil.EncodeBig(receipt.BlockNumber)))
	require.Equal(t, receipt.BlockHash, before.Block.Claim.Block)
	require.ErrorContains(t, c.Client().CallContext(t.Context(), &before, "jam_getAccountProof", me.Address, []string{"0xg"}), "invalid hex")
	var none *proof.Document
	require.NoError(t, c.Client().CallContext(t.Context(), &none, "jam_getReceiptProof", common.Hash{1}))
	require.Nil(t, none, "an unknown transaction")
}

// A trust file of the first epoch verifies proofs of later ones, because the node proves the
// changes of validators between them.
func TestTrustFileSurvivesNewValidators(t *testing.T) {
	t.Parallel()
	node := startNode(t, "-rotate")
	c := dial(t, node.url)
	me := accounts(t)[6]
	tx := send(t, c, me, transfer(0, common.Address{0xf9}))
	waitFor(t, c, tx.Hash(), rpc.FinalizedBlockNumber)
	var trust *proof.Trust
	require.NoError(t, c.Client().CallContext(t.Context(), &trust, "jam_getTrust"))
	raw, err := json.Marshal(trust)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "trust.json")
	require.NoError(t, os.WriteFile(file, raw, 0o600))
	wait.Until(t, func() bool {
		var now *proof.Trust
		require.NoError(t, c.Client().CallContext(t.Context(), &now, "jam_getTrust"))
		return now.Set >= trust.Set+2
	}, "two changes of validators are final")
	out, err := program(t, "verify", "-trust", file, "-save", file, "-node", node.url, "-account", me.Address.Hex()).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), fmt.Sprintf("Set %d follows: ", trust.Set+2))
	require.Contains(t, string(out), "nonce 1\n")
	raw, err = os.ReadFile(file)
	require.NoError(t, err)
	again, err := proof.ParseTrust(raw)
	require.NoError(t, err)
	require.GreaterOrEqual(t, again.Set, trust.Set+2)

	var handoff *proof.Handoff
	err = c.Client().CallContext(t.Context(), &handoff, "jam_getHandoff", hexutil.Uint64(1<<40))
	var coded rpc.Error
	require.ErrorAs(t, err, &coded)
	require.Equal(t, rpcapi.CodeNoProofs, coded.ErrorCode())
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
