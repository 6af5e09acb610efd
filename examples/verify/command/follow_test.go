package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/service"
)

// handoffs returns a trust, files with the proofs of the two sets after it, and a file with a
// document that the last one signed.
func handoffs(t *testing.T) (first *proof.Trust, files []string, document string) {
	t.Helper()
	cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
	cfg.NewValidators = true
	var err error
	cfg.Genesis, err = service.Genesis{Service: rollup}.Entries()
	require.NoError(t, err)
	chain, err := jamtest.New(cfg)
	require.NoError(t, err)
	first, err = chain.Trust(rollup)
	require.NoError(t, err)
	chain.Advance()
	context, err := chain.Context(1)
	require.NoError(t, err)
	block := proof.Commitment{Number: 1, Hash: header.Hash(), TransactionsRoot: header.TxHash}
	require.NoError(t, chain.Submit(jamtest.NewPackage(rollup, context, service.EncodeHeader(block)), 0, 0))
	for chain.Finalized().Slot < 2*cfg.Spec.EpochLength {
		chain.Advance()
	}
	for set := range uint64(2) {
		h, err := chain.Handoff(set)
		require.NoError(t, err)
		files = append(files, write(t, map[string]any{"jsonrpc": "2.0", "id": 1, "result": h}))
	}
	d, err := chain.Prove(rollup, 1, jamtest.ByStorage)
	require.NoError(t, err)
	require.NoError(t, d.AddTransaction(txs, 0))
	return first, files, write(t, d)
}

// A trust file crosses two changes of validators, and is then replaced by that of the last set.
func TestVerifyFollowsTheValidators(t *testing.T) {
	first, files, document := handoffs(t)
	trust := write(t, first)
	run := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		require.Equal(t, want, Run(args, nil, &out, &out), "%s", &out)
		return out.String()
	}
	require.Contains(t, run(exitNotProved, "-trust", trust, document), "votes of validator set 2, trusted is 0")
	text := run(exitNotProved, "-trust", trust, "-save", filepath.Join(t.TempDir(), "none"), "-handoff", files[1], document)
	require.Contains(t, text, "NOT PROVED: the next validator set is not proved: proof: not final: votes of validator set 1, trusted is 0")
	require.Contains(t, run(exitNotProved, "-trust", trust, "-handoff", document, document), "NOT PROVED: proof: malformed document")

	text = run(exitFinal, "-trust", trust, "-save", trust, "-handoff", files[0], "-handoff", files[1], document)
	require.Equal(t, 1, strings.Count(text, "Set 1 follows: "))
	require.Equal(t, 1, strings.Count(text, "Set 2 follows: "))
	require.Contains(t, text, "FINAL: transaction ")
	saved, err := os.ReadFile(trust)
	require.NoError(t, err)
	again, err := proof.ParseTrust(saved)
	require.NoError(t, err)
	require.EqualValues(t, 2, again.Set)
	require.Contains(t, run(exitFinal, "-trust", trust, document), "FINAL: transaction ", "the new file needs no handoffs")

	// A node must not choose the validators that are trusted from now on.
	run(exitUsage, "-save", trust, "-node", "http://127.0.0.1:1", "-tx", txs[0].Hash().Hex())
	run(exitUsage, "-trust", trust, "-node", "http://127.0.0.1:1", "-tx", txs[0].Hash().Hex(), "-handoff", files[0])
	require.Contains(t, run(exitNotProved, "-trust", trust, "-handoff", "nowhere", document), "NOT PROVED: open nowhere")
	require.Contains(t, run(exitNotProved, "-trust", trust, "-save", filepath.Join(t.TempDir(), "no", "folder"), document), "NOT PROVED: open")
}
