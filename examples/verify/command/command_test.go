package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/service"
)

const rollup = jamq.ServiceID(7)

var txs = types.Transactions{types.NewTx(&types.LegacyTx{Nonce: 1}), types.NewTx(&types.LegacyTx{Nonce: 2})}

// prove returns a document in each way, and the trust to check it, as files would hold them.
func prove(t *testing.T, punished ...int) (documents map[jamtest.Route]*proof.Document, trust *proof.Trust) {
	t.Helper()
	cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
	cfg.Punished = punished
	var err error
	cfg.Genesis, err = service.Genesis{Service: rollup}.Entries()
	require.NoError(t, err)
	chain, err := jamtest.New(cfg)
	require.NoError(t, err)
	chain.Advance()
	context, err := chain.Context(1)
	block := proof.Commitment{Number: 1, Hash: common.Hash{1}, TransactionsRoot: types.DeriveSha(txs, trie.NewStackTrie(nil))}
	require.NoError(t, err)
	require.NoError(t, chain.Submit(jamtest.NewPackage(rollup, context, service.EncodeHeader(block)), 0, 0))
	for range 8 {
		chain.Advance()
	}
	documents = make(map[jamtest.Route]*proof.Document)
	for _, route := range []jamtest.Route{jamtest.ByStorage, jamtest.ByOutputs, jamtest.ByLog} {
		documents[route], err = chain.Prove(rollup, 1, route)
		require.NoError(t, err)
		require.NoError(t, documents[route].AddTransaction(txs, 1))
	}
	trust, err = chain.Trust(rollup)
	require.NoError(t, err)
	return documents, trust
}

func write(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "file.json")
	require.NoError(t, os.WriteFile(name, raw, 0o600))
	return name
}

func TestVerify(t *testing.T) {
	documents, trust := prove(t)
	file := write(t, trust)
	for route, d := range documents {
		var out bytes.Buffer
		require.Equal(t, exitFinal, Run([]string{"-trust", file, "-tx", txs[1].Hash().Hex(), write(t, d)}, nil, &out, &out), "%s", &out)
		text := out.String()
		require.Contains(t, text, "FINAL: transaction "+txs[1].Hash().Hex()+", in rollup block 1\n")
		require.Equal(t, 4, strings.Count(text, ".\n   ")-1, "four links with a reason each: %s", text)
		for _, link := range []string{"1. finality: 5 of 6 validators", "3. commitment: it binds rollup block 1", "4. transaction: "} {
			require.Contains(t, text, link, "route %d", route)
		}
		require.NotContains(t, text, "\n   \n", "every link says why")
	}
}

// A set with a punished validator is used as it is on the chain.
func TestVerifyPunished(t *testing.T) {
	documents, trust := prove(t, 2)
	for _, d := range documents {
		var out bytes.Buffer
		require.Equal(t, exitFinal, Run([]string{"-trust", write(t, trust), write(t, d)}, nil, &out, &out), "%s", &out)
		require.Contains(t, out.String(), "JAM has punished 1 of them")
	}
	d := documents[jamtest.ByStorage]
	d.Finality.Signatures[2].Validator = 2
	var out bytes.Buffer
	require.Equal(t, exitNotProved, Run([]string{"-trust", write(t, trust), write(t, d)}, nil, &out, &out), "%s", &out)
	require.Contains(t, out.String(), "validator 2: proof: key without a vote")
}

// Files may be as curl prints the answers of a node.
func TestVerifyAnswers(t *testing.T) {
	documents, trust := prove(t)
	answer := func(v any) map[string]any { return map[string]any{"jsonrpc": "2.0", "id": 1, "result": v} }
	raw, err := json.Marshal(answer(documents[jamtest.ByStorage]))
	require.NoError(t, err)
	var out bytes.Buffer
	require.Equal(t, exitFinal, Run([]string{"-trust", write(t, answer(trust)), "-"}, bytes.NewReader(raw), &out, &out), "%s", &out)
	for _, bad := range []map[string]any{answer(nil), {"jsonrpc": "2.0", "id": 1, "error": map[string]any{"code": 1, "message": "not final yet"}}} {
		require.Equal(t, exitUsage, Run([]string{"-trust", write(t, trust), write(t, bad)}, nil, &out, &out))
	}
	require.Contains(t, out.String(), "not final yet")
}

func TestVerifyRefuses(t *testing.T) {
	documents, trust := prove(t)
	d := documents[jamtest.ByStorage]
	file := write(t, trust)
	refuse := func(want string, args ...string) {
		t.Helper()
		var out bytes.Buffer
		require.Equal(t, exitNotProved, Run(args, nil, &out, &out), "%s", &out)
		require.Contains(t, out.String(), "NOT PROVED: "+want)
		require.NotContains(t, out.String(), "FINAL:")
	}
	refuse("proof: transaction not proved: the document is about", "-trust", file, "-tx", txs[0].Hash().Hex(), write(t, d))
	refuse("proof: malformed document", "-trust", file, write(t, map[string]int{"version": 9}))
	d.Claim.Package[0] ^= 1
	refuse("link 3 is not valid: proof: commitment", "-trust", file, write(t, d))
	d.Finality.Signatures = d.Finality.Signatures[:4]
	refuse("link 1 is not valid: proof: not final: 4 of 6 validators signed, want at least 5", "-trust", file, write(t, d))

	var out bytes.Buffer
	for _, args := range [][]string{{}, {"-trust", file}, {"-tx", "0x1", "-trust", file, file}, {"-trust", "nowhere", file}, {"-trust", write(t, 1), file}, {"-trust", file, "nowhere"}, {"-node", "http://127.0.0.1:1"}, {"-node", "http://127.0.0.1:1", "-tx", txs[0].Hash().Hex()}} {
		require.Equal(t, exitUsage, Run(args, nil, &out, &out), "%v", args)
	}
}
