package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
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

// post sends a body to the node.
func post(n *node, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	n.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
	return w
}

func ask(t *testing.T, n *node, method string, params string) (result json.RawMessage, f *fault) {
	w := post(n, `{"id":1,"method":"`+method+`","params":`+params+`}`)
	var reply struct {
		Result json.RawMessage
		Error  *fault
		ID     int
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &reply))
	require.Equal(t, 1, reply.ID)
	return reply.Result, reply.Error
}

// view is the result of getblock.
type view struct {
	Hash, PreviousBlockHash string
	Confirmations           uint64
	Tx                      []any
	WorkPackageHash         jamq.PackageHash
	HeaderHash              jamq.HeaderHash
	Finalized               bool
}

func askBlock(t *testing.T, n *node, params string) (b view) {
	result, f := ask(t, n, "getblock", params)
	require.Nil(t, f)
	require.NoError(t, json.Unmarshal(result, &b))
	return b
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
	rival := sample(1)
	rival.ValueBalance++
	_, f = ask(t, n, "sendrawtransaction", `["`+hex.EncodeToString(rival.encode())+`"]`)
	require.Equal(t, codeRejected, f.Code)
	require.Contains(t, f.Message, "18: bad-txns-orchard-duplicate-nullifier")

	synctest.Wait()
	require.EqualValues(t, 1, n.builder.Heads().Pending.Number)
	b := n.tip()
	_, f = ask(t, n, "getblock", `["1"]`)
	require.Equal(t, codeParameter, f.Code, "JAM has not accumulated it")
	_, f = ask(t, n, "getblock", `["`+b.hash().String()+`"]`)
	require.Equal(t, codeNotFound, f.Code, "JAM has not accumulated it")
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

	one := askBlock(t, n, `["1", 1]`)
	require.Equal(t, []any{tx.id().String()}, one.Tx)
	require.EqualValues(t, 1, one.Confirmations)
	require.False(t, one.Finalized)

	require.NoError(t, n.builder.Await(ctx, func(h canonical.Heads) bool { return h.Finalized.Number == 1 }))
	synctest.Wait()
	n.network.Driver().View(func(chain *jamtest.Chain) {
		status, err := chain.Status(one.WorkPackageHash, chain.Finalized().Hash)
		require.NoError(t, err)
		require.Equal(t, jamtest.Accumulated, status.Stage)
		require.Equal(t, status.Accumulated.Hash, one.HeaderHash)
	})
	two := askBlock(t, n, `["1", 2]`)
	require.True(t, two.Finalized)
	require.Equal(t, one.WorkPackageHash, two.WorkPackageHash)
	require.Equal(t, one.HeaderHash, two.HeaderHash)
	orchard := two.Tx[0].(map[string]any)["orchard"].(map[string]any)
	require.Len(t, orchard["actions"], 2)
	require.EqualValues(t, int64(-12_345_678_901), orchard["valueBalanceZat"])
	first := orchard["actions"].([]any)[0].(map[string]any)
	for field, size := range map[string]int{"cv": 32, "nullifier": 32, "rk": 32, "cmx": 32, "ephemeralKey": 32, "encCiphertext": 580, "outCiphertext": 80, "spendAuthSig": 64} {
		require.Len(t, first[field], 2*size, field)
	}
}

// TestNamesOfBlocks: a block is found by its height, from the tip down, and by its hash.
func TestNamesOfBlocks(t *testing.T) {
	onePackage(t, func(t *testing.T, n *node) {
		for name, height := range map[string]int{
			`1`: 1, `-1`: 1, n.blocks[1].hash().String(): 1, `0`: 0, `-2`: 0, n.blocks[0].hash().String(): 0,
		} {
			b := askBlock(t, n, `["`+name+`"]`)
			require.Equal(t, n.blocks[height].hash().String(), b.Hash, name)
			require.Equal(t, n.blocks[height].Previous.String(), b.PreviousBlockHash, name)
		}
	})
}

// TestStates: the calls with which a light wallet starts agree with the blocks.
func TestStates(t *testing.T) {
	onePackage(t, func(t *testing.T, n *node) {
		var info struct {
			Blocks uint64
			Best   string `json:"bestblockhash"`
		}
		result, f := ask(t, n, "getblockchaininfo", `[]`)
		require.Nil(t, f)
		require.NoError(t, json.Unmarshal(result, &info))
		require.EqualValues(t, 1, info.Blocks)
		require.Equal(t, n.blocks[1].hash().String(), info.Best)

		for height, of := range n.blocks {
			var state struct {
				Hash    string
				Orchard struct {
					Commitments struct{ FinalRoot, FinalState string }
				}
			}
			result, f = ask(t, n, "z_gettreestate", fmt.Sprintf(`["%d"]`, height))
			require.Nil(t, f)
			require.NoError(t, json.Unmarshal(result, &state))
			require.Equal(t, of.hash().String(), state.Hash)
			require.Equal(t, of.Root.String(), state.Orchard.Commitments.FinalRoot)
			require.Equal(t, of.Root.String()+fmt.Sprintf("%02x", of.Notes)+strings.Repeat("00", 7), state.Orchard.Commitments.FinalState)
		}
	})
}

// onePackage calls f when a node has a block with a transaction.
func onePackage(t *testing.T, f func(*testing.T, *node)) {
	bubble.Run(t, func(t *testing.T) {
		n := testNode(t)
		running(t, n, func(ctx context.Context) {
			require.NoError(t, n.builder.Submit(ctx, sample(1).encode()))
			require.NoError(t, n.builder.Await(ctx, func(h canonical.Heads) bool { return h.Latest.Number == 1 }))
			synctest.Wait()
			f(t, n)
		})
	})
}
