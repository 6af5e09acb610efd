package command

import (
	"bytes"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/evmrollup/stateproof"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/statedb"
)

const rollup = jamq.ServiceID(7)

var txs = types.Transactions{types.NewTx(&types.LegacyTx{Nonce: 1}), types.NewTx(&types.LegacyTx{Nonce: 2})}

// receipts are those of txs. The second transaction failed.
var receipts = types.Receipts{{Status: types.ReceiptStatusSuccessful, Logs: []*types.Log{}}, {Logs: []*types.Log{}}}

// header is that of the rollup block.
var header = &types.Header{
	TxHash: types.DeriveSha(txs, trie.NewStackTrie(nil)), ReceiptHash: types.DeriveSha(receipts, trie.NewStackTrie(nil)),
	Number: common.Big1, Difficulty: new(big.Int),
}

// holder is an account in the state after the block, with the value 42 in slot 7.
var holder = common.Address{0xac}

// state returns a state with the holder, and its root.
func state(t *testing.T) (*statedb.Store, common.Hash) {
	t.Helper()
	store := statedb.NewStore()
	view, err := store.View(statedb.EmptyRoot)
	require.NoError(t, err)
	require.NoError(t, view.SetAccount(holder, statedb.Account{Exists: true, Nonce: 3, Balance: uint256.NewInt(1000), CodeHash: types.EmptyCodeHash}))
	view.SetStorage(holder, common.Hash{31: 7}, common.Hash{31: 42})
	root, err := view.Commit()
	require.NoError(t, err)
	return store, root
}

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
	_, root := state(t)
	block := proof.Commitment{Number: 1, Hash: header.Hash(), PostRoot: root, TransactionsRoot: header.TxHash}
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

// The outcome of a transaction is printed if the document proves it, and demanded by -receipt.
func TestVerifyReceipt(t *testing.T) {
	documents, trust := prove(t)
	file, d := write(t, trust), documents[jamtest.ByStorage]
	var out bytes.Buffer
	require.Equal(t, exitNotProved, Run([]string{"-trust", file, "-receipt", write(t, d)}, nil, &out, &out))
	require.Contains(t, out.String(), "the document has none")
	for index, outcome := range []string{"SUCCEEDED", "FAILED"} {
		require.NoError(t, d.AddTransaction(txs, index))
		require.NoError(t, d.AddReceipt(header, receipts))
		out.Reset()
		require.Equal(t, exitFinal, Run([]string{"-trust", file, "-receipt", write(t, d)}, nil, &out, &out), "%s", &out)
		require.Contains(t, out.String(), "FINAL: transaction "+txs[index].Hash().Hex()+", in rollup block 1, "+outcome+"\n")
		require.Contains(t, out.String(), "5. receipt: ")
		require.NotContains(t, out.String(), "\n   \n", "every link says why")
	}
	require.NoError(t, d.AddTransaction(txs, 0))
	out.Reset()
	require.Equal(t, exitNotProved, Run([]string{"-trust", file, write(t, d)}, nil, &out, &out), "the receipt of another transaction")
	require.Contains(t, out.String(), "link 5 is not valid: proof: receipt not proved")
}

// An account is proved with the slots of the question, and with no others.
func TestVerifyAccount(t *testing.T) {
	documents, trust := prove(t)
	file, block := write(t, trust), documents[jamtest.ByStorage]
	store, root := state(t)
	account, err := stateproof.Prove(func() (*statedb.View, error) { return store.View(root) }, holder, []string{"0x7"})
	require.NoError(t, err)
	answer := &stateproof.FinalAccount{Block: block, Account: account}
	run := func(args ...string) (status int, text string) {
		var out bytes.Buffer
		status = Run(append([]string{"-trust", file}, args...), nil, &out, &out)
		return status, out.String()
	}
	status, text := run("-account", holder.Hex(), "-slot", common.Hash{31: 7}.Hex(), write(t, answer))
	require.Equal(t, exitFinal, status, text)
	require.Contains(t, text, "FINAL: after rollup block 1, account "+holder.Hex()+" has\n   balance 1000 wei\n   nonce 3\n   slot "+common.Hash{31: 7}.Hex()+": 0x2a\n")
	require.NotContains(t, text, "\n   \n", "every link says why")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"does not have the slot 0x8", []string{"-account", holder.Hex(), "-slot", "0x8", write(t, answer)}},
		{"-account is 0x", []string{"-account", common.Address{1}.Hex(), write(t, answer)}},
		{"malformed document", []string{"-account", holder.Hex(), write(t, block)}},
		{"malformed document", []string{write(t, answer)}},
	} {
		status, text := run(c.args...)
		require.Equal(t, exitNotProved, status, text)
		require.Contains(t, text, c.want)
		require.NotContains(t, text, "FINAL:")
	}
	account.Nonce++
	status, text = run("-account", holder.Hex(), write(t, answer))
	require.Equal(t, exitNotProved, status)
	require.Contains(t, text, "is not valid: stateproof: invalid proof")
	for _, args := range [][]string{{"-account", holder.Hex(), "-receipt", file}, {"-slot", "0x1", file}, {"-account", holder.Hex(), "-slot", "x", file}, {"-account", "0x1", file}} {
		status, _ := run(args...)
		require.Equal(t, exitUsage, status, "%v", args)
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
