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
	require.Equal(t, reply.Error == nil, w.Code == http.StatusOK)
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
	result, f = ask(t, n, "sendrawtransaction", `["`+hex.EncodeToString(tx.encode())+`", true]`)
	require.Nil(t, f, "the transaction waits")
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
	result, _ = ask(t, n, "getrawmempool", `[false]`)
	require.JSONEq(t, `["`+tx.id().String()+`"]`, string(result))
	result, _ = ask(t, n, "getrawtransaction", `["`+tx.id().String()+`", 1]`)
	require.NotContains(t, string(result), "blockhash", "the block is not accumulated")
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
	_, f = ask(t, n, "sendrawtransaction", `["`+hex.EncodeToString(tx.encode())+`"]`)
	require.Equal(t, &fault{codeInChain, "transaction already in block chain"}, f)

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
}

// TestNamesOfBlocks: a block is found by its height as a number or a text, from the tip down,
// and by its hash.
func TestNamesOfBlocks(t *testing.T) {
	onePackage(t, func(t *testing.T, n *node) {
		hash := func(height int) string { return `"` + n.blocks[height].hash().String() + `"` }
		for name, height := range map[string]int{
			`1`: 1, `"1"`: 1, `-1`: 1, `"-1"`: 1, hash(1): 1, strings.ToUpper(hash(1)): 1,
			`0`: 0, `"0"`: 0, `-2`: 0, hash(0): 0,
		} {
			var b struct{ Hash, FinalSaplingRoot string }
			result, f := ask(t, n, "getblock", "["+name+"]")
			require.Nil(t, f, name)
			require.NoError(t, json.Unmarshal(result, &b))
			require.Equal(t, hash(height), `"`+b.Hash+`"`, name)
			require.Equal(t, emptySapling, b.FinalSaplingRoot)
		}
		for height, want := range map[string]int{`0`: 0, `1`: 1, `-1`: 1, `-2`: 0} {
			result, f := ask(t, n, "getblockhash", "["+height+"]")
			require.Nil(t, f, height)
			require.Equal(t, hash(want), string(result))
		}
		for _, height := range []string{`2`, `-3`, `-2147483648`} {
			_, f := ask(t, n, "getblockhash", "["+height+"]")
			require.Equal(t, codeParameter, f.Code, height)
		}
	})
}

// TestIngestion: the calls with which lightwalletd follows a chain agree with getblock.
func TestIngestion(t *testing.T) {
	onePackage(t, func(t *testing.T, n *node) {
		b := n.blocks[1]
		var info struct {
			Blocks    uint64
			Best      string `json:"bestblockhash"`
			Upgrades  map[string]struct{ ActivationHeight uint64 }
			Consensus struct{ ChainTip string }
		}
		result, f := ask(t, n, "getblockchaininfo", `[]`)
		require.Nil(t, f)
		require.NoError(t, json.Unmarshal(result, &info))
		require.EqualValues(t, 1, info.Blocks)
		require.Equal(t, b.hash().String(), info.Best)
		require.Contains(t, info.Upgrades, branchSapling)
		require.Contains(t, info.Upgrades, info.Consensus.ChainTip)
		result, _ = ask(t, n, "getbestblockhash", `[]`)
		require.Equal(t, `"`+info.Best+`"`, string(result))
		result, _ = ask(t, n, "getinfo", `[]`)
		require.Contains(t, string(result), `"blocks":1`)

		tx := b.Transactions[0]
		result, _ = ask(t, n, "getrawtransaction", `["`+tx.id().String()+`"]`)
		require.Equal(t, `"`+hex.EncodeToString(tx.encode())+`"`, string(result))
		var placed struct {
			Hex, BlockHash        string
			Height, Confirmations int64
		}
		result, _ = ask(t, n, "getrawtransaction", `["`+tx.id().String()+`", 1]`)
		require.NoError(t, json.Unmarshal(result, &placed))
		require.Equal(t, b.hash().String(), placed.BlockHash)
		require.Equal(t, []int64{1, 1}, []int64{placed.Height, placed.Confirmations})
		_, f = ask(t, n, "getrawtransaction", `["`+strings.Repeat("00", 32)+`"]`)
		require.Equal(t, codeNotFound, f.Code)
		in, other := `", 0, "`+b.hash().String()+`"]`, `", 0, "`+n.blocks[0].hash().String()+`"]`
		result, _ = ask(t, n, "getrawtransaction", `["`+tx.id().String()+in)
		require.Equal(t, `"`+hex.EncodeToString(tx.encode())+`"`, string(result))
		_, f = ask(t, n, "getrawtransaction", `["`+tx.id().String()+other)
		require.Equal(t, &fault{codeNotFound, "No such transaction found in the provided block"}, f)
		_, f = ask(t, n, "getrawtransaction", `["`+tx.id().String()+`", 0, "`+strings.Repeat("00", 32)+`"]`)
		require.Equal(t, &fault{codeNotFound, "Block hash not found"}, f)

		var state struct {
			Hash             string
			Height           uint64
			Sapling, Orchard struct {
				Commitments struct{ FinalRoot, FinalState string }
			}
		}
		for height, of := range n.blocks {
			result, f = ask(t, n, "z_gettreestate", fmt.Sprintf(`["%d"]`, height))
			require.Nil(t, f)
			require.NoError(t, json.Unmarshal(result, &state))
			require.Equal(t, of.hash().String(), state.Hash)
			require.Equal(t, of.Root.String(), state.Orchard.Commitments.FinalRoot)
			require.Equal(t, of.Root.String()+fmt.Sprintf("%02x", of.Notes)+strings.Repeat("00", 7), state.Orchard.Commitments.FinalState)
			require.Equal(t, emptySapling, state.Sapling.Commitments.FinalRoot)
		}
	})
}

// TestWaitingTransaction: a transaction that waits has no block.
func TestWaitingTransaction(t *testing.T) {
	n := testNode(t) // does not run
	tx := sample(1)
	require.NoError(t, n.Admit(t.Context(), tx.encode()))
	result, f := ask(t, n, "getrawtransaction", `["`+tx.id().String()+`", 1]`)
	require.Nil(t, f)
	require.NotContains(t, string(result), `"height"`) // -1 is a block of another fork
	require.NotContains(t, string(result), "blockhash")
}

// onePackage calls f when a node has a block with a transaction.
func onePackage(t *testing.T, f func(*testing.T, *node)) {
	bubble.Run(t, func(t *testing.T) {
		n := testNode(t)
		running(t, n, func(ctx context.Context) {
			require.NoError(t, n.add(ctx, sample(1)))
			require.NoError(t, n.builder.Await(ctx, func(h canonical.Heads) bool { return h.Latest.Number == 1 }))
			synctest.Wait()
			f(t, n)
		})
	})
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
