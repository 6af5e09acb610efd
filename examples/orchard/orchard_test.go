package main

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/submit"
)

func TestNotesBecomeFinal(t *testing.T) {
	ctx := wait.Context(t)
	var out strings.Builder
	require.NoError(t, run(ctx, &out, "", 100*time.Millisecond))
	require.Contains(t, out.String(), "10 notes made, 5 spent, all of it final")
	require.Contains(t, out.String(), "bad-txns-orchard-double-spend")
}

// sample is a transaction of two actions.
func sample(first byte) *transaction {
	t := &transaction{Actions: make([]action, 2), Flags: flagSpends | flagOutputs, ValueBalance: -12_345_678_901, Proof: make([]byte, proofSize+2*proofPerAction)}
	for i := range t.Actions {
		t.Actions[i].Nullifier = bytes32{first, byte(i)}
		t.Actions[i].CMX = bytes32{first, byte(i), 1}
		t.Actions[i].SpendAuthSig[63] = first
	}
	return t
}

func testNode(t *testing.T) *node {
	n, err := newNode(jamtest.DefaultConfig(jamq.Tiny(), 1))
	require.NoError(t, err)
	return n
}

// told lets the node hear that a block moved on.
func told(n *node, number uint64, from, to bundlequeue.State) {
	n.observe(submit.Observation{Effect: bundlequeue.Changed{Number: number, From: from, To: to, Package: jamq.PackageHash{9}}})
}

func ask(t *testing.T, n *node, method string, params string) (result json.RawMessage, f *fault) {
	w := httptest.NewRecorder()
	n.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"id":1,"method":"`+method+`","params":`+params+`}`)))
	var reply struct {
		Result json.RawMessage
		Error  *fault
		ID     int
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &reply))
	require.Equal(t, 1, reply.ID)
	require.Equal(t, reply.Error != nil, w.Code == http.StatusInternalServerError)
	return reply.Result, reply.Error
}

func TestGetBlock(t *testing.T) {
	n := testNode(t)
	tx := sample(1)
	result, f := ask(t, n, "sendrawtransaction", `["`+hex.EncodeToString(tx.encode())+`"]`)
	require.Nil(t, f)
	require.JSONEq(t, `"`+tx.id().String()+`"`, string(result))
	_, f = ask(t, n, "sendrawtransaction", `["`+hex.EncodeToString(tx.encode())+`"]`)
	require.Equal(t, codeRejected, f.Code)

	b := n.seal()
	_, f = ask(t, n, "getblock", `["1"]`)
	require.Equal(t, codeParameter, f.Code, "JAM has not accumulated it")
	result, _ = ask(t, n, "getrawmempool", `[]`)
	require.JSONEq(t, `["`+tx.id().String()+`"]`, string(result))
	told(n, 1, bundlequeue.Guaranteed, bundlequeue.Accumulated)

	result, f = ask(t, n, "getblock", `["`+b.hash().String()+`", 0]`)
	require.Nil(t, f)
	var text string
	require.NoError(t, json.Unmarshal(result, &text))
	raw, err := hex.DecodeString(text)
	require.NoError(t, err)
	again, err := decodeBlock(raw)
	require.NoError(t, err)
	require.Equal(t, b.hash(), again.hash())
	require.Equal(t, b.Transactions, again.Transactions)

	var one, two blockView
	result, _ = ask(t, n, "getblock", `["1", 1]`)
	require.NoError(t, json.Unmarshal(result, &jsonBlock{&one}))
	require.Equal(t, []any{tx.id().String()}, one.Tx)
	require.EqualValues(t, 1, one.Confirmations)
	require.Equal(t, jamq.PackageHash{9}, one.WorkPackageHash)
	require.False(t, one.Finalized)
	told(n, 1, bundlequeue.Accumulated, bundlequeue.Finalized)
	result, _ = ask(t, n, "getblock", `["1", 2]`)
	require.NoError(t, json.Unmarshal(result, &jsonBlock{&two}))
	require.True(t, two.Finalized)
	orchard := two.Tx[0].(map[string]any)["orchard"].(map[string]any)
	require.Len(t, orchard["actions"], 2)
	require.Equal(t, -123.45678901, orchard["valueBalance"])
	first := orchard["actions"].([]any)[0].(map[string]any)
	for field, size := range map[string]int{"cv": 32, "nullifier": 32, "rk": 32, "cmx": 32, "ephemeralKey": 32, "encCiphertext": 580, "outCiphertext": 80, "spendAuthSig": 64} {
		require.Len(t, first[field], 2*size, field)
	}

	for params, code := range map[string]int{
		`["7"]`: codeParameter, `["-1"]`: codeParameter, `["1", 3]`: codeParameter, `["` + strings.Repeat("00", 32) + `"]`: codeNotFound, `[]`: codeRequest, `[1]`: codeRequest,
	} {
		_, f := ask(t, n, "getblock", params)
		require.NotNil(t, f, params)
		require.Equal(t, code, f.Code, params)
	}
}

// jsonBlock reads only what a test looks at: hashes are texts there.
type jsonBlock struct{ *blockView }

func (b *jsonBlock) UnmarshalJSON(raw []byte) error {
	var v struct {
		Confirmations   uint64
		Tx              []any
		WorkPackageHash jamq.PackageHash
		Finalized       bool
	}
	err := json.Unmarshal(raw, &v)
	b.Confirmations, b.Tx, b.WorkPackageHash, b.Finalized = v.Confirmations, v.Tx, v.WorkPackageHash, v.Finalized
	return err
}

// A block that fails comes back: its transactions wait again, before those that came later, and
// their notes are unspent.
func TestFailedBlockComesBack(t *testing.T) {
	n := testNode(t)
	for i := range byte(2 * perBlock) {
		require.NoError(t, n.add(sample(i)))
	}
	one, two := n.seal(), n.seal()
	require.NoError(t, n.add(sample(99)))
	require.ErrorIs(t, n.add(sample(0)), errDoubleSpend)
	n.observe(submit.Observation{Effect: bundlequeue.Failed[bundle]{Number: 1, Bundle: bundle{block: one}}})
	n.observe(submit.Observation{Effect: bundlequeue.Failed[bundle]{Number: 2, Bundle: bundle{block: two}}})
	require.Len(t, n.waiting, 2*perBlock+1)
	require.Equal(t, one.Transactions, n.waiting[:perBlock])
	require.Empty(t, n.state.spent)
	again := n.seal()
	require.Equal(t, one.Root, again.Root)
	require.Equal(t, one.Transactions, again.Transactions)
}

func TestMalformedTransactions(t *testing.T) {
	good := sample(1).encode()
	tx, err := decodeTransaction(good)
	require.NoError(t, err)
	require.Equal(t, good, tx.encode())
	for i := range len(good) {
		_, err := decodeTransaction(good[:i])
		require.ErrorIs(t, err, errMalformed)
	}
	_, err = decodeTransaction(append(good, 0))
	require.ErrorIs(t, err, errMalformed)
	twice := sample(1)
	twice.Actions[1].Nullifier = twice.Actions[0].Nullifier
	require.ErrorIs(t, testNode(t).add(twice), errDoubleSpend)
}

func FuzzDecodeBlock(f *testing.F) {
	b := &block{Height: 1, Transactions: []*transaction{sample(1)}}
	f.Add(b.encode())
	f.Fuzz(func(t *testing.T, raw []byte) {
		if b, err := decodeBlock(raw); err == nil {
			require.Equal(t, raw, b.encode())
		}
	})
}
