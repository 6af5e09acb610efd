package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/jamtest"
)

// testNode returns a node whose chain and builder do not run yet.
func testNode(t *testing.T) *node {
	network, err := simnet.Tiny(jamq.Tiny().SlotDuration, service, nil)
	require.NoError(t, err)
	n, err := newNode(t.Context(), network)
	require.NoError(t, err)
	return n
}

// running runs the chain and the builder of a node until f returns.
func running(t *testing.T, n *node, f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- n.run(ctx) }()
	f(ctx)
	cancel()
	require.ErrorIs(t, <-ran, context.Canceled)
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

// TestGetBlock: a client sees a block when JAM has accumulated it, with the package and the JAM
// block of the chain.
func TestGetBlock(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := testNode(t)
		running(t, n, func(ctx context.Context) { getBlock(ctx, t, n) })
	})
}

func getBlock(ctx context.Context, t *testing.T, n *node) {
	tx := sample(1)
	result, f := ask(t, n, "sendrawtransaction", `["`+hex.EncodeToString(tx.encode())+`"]`)
	require.Nil(t, f)
	require.JSONEq(t, `"`+tx.id().String()+`"`, string(result))
	_, f = ask(t, n, "sendrawtransaction", `["`+hex.EncodeToString(tx.encode())+`"]`)
	require.Equal(t, codeRejected, f.Code)

	synctest.Wait()
	require.EqualValues(t, 1, n.builder.Heads().Pending.Number)
	b := n.tip()
	_, f = ask(t, n, "getblock", `["1"]`)
	require.Equal(t, codeParameter, f.Code, "JAM has not accumulated it")
	result, _ = ask(t, n, "getrawmempool", `[]`)
	require.JSONEq(t, `["`+tx.id().String()+`"]`, string(result))
	require.NoError(t, n.builder.Await(ctx, func(h canonical.Heads) bool { return h.Latest.Number == 1 }))
	synctest.Wait()

	result, f = ask(t, n, "getblock", `["`+b.hash().String()+`", 0]`)
	require.Nil(t, f)
	var text string
	require.NoError(t, json.Unmarshal(result, &text))
	raw, err := hex.DecodeString(text)
	require.NoError(t, err)
	again, err := decodeBlock(raw)
	require.NoError(t, err)
	require.Equal(t, b, again)

	var one, two blockView
	result, _ = ask(t, n, "getblock", `["1", 1]`)
	require.NoError(t, json.Unmarshal(result, &jsonBlock{&one}))
	require.Equal(t, []any{tx.id().String()}, one.Tx)
	require.EqualValues(t, 1, one.Confirmations)
	require.False(t, one.Finalized)
	result, _ = ask(t, n, "getrawmempool", `[]`)
	require.JSONEq(t, `[]`, string(result))

	require.NoError(t, n.builder.Await(ctx, func(h canonical.Heads) bool { return h.Finalized.Number == 1 }))
	synctest.Wait()
	n.network.Driver().View(func(chain *jamtest.Chain) {
		status, err := chain.Status(one.WorkPackageHash, chain.Finalized().Hash)
		require.NoError(t, err)
		require.Equal(t, jamtest.Accumulated, status.Stage)
		require.Equal(t, status.Accumulated.Hash, one.HeaderHash)
	})
	result, _ = ask(t, n, "getblock", `["1", 2]`)
	require.NoError(t, json.Unmarshal(result, &jsonBlock{&two}))
	require.True(t, two.Finalized)
	require.Equal(t, one.WorkPackageHash, two.WorkPackageHash)
	require.Equal(t, one.HeaderHash, two.HeaderHash)
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
		HeaderHash      jamq.HeaderHash
		Finalized       bool
	}
	err := json.Unmarshal(raw, &v)
	b.Confirmations, b.Tx, b.Finalized = v.Confirmations, v.Tx, v.Finalized
	b.WorkPackageHash, b.HeaderHash = v.WorkPackageHash, v.HeaderHash
	return err
}
