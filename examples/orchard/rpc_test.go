package main

import (
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrorsOfParameters: errors of parameters have zcashd's codes and texts.
func TestErrorsOfParameters(t *testing.T) {
	n := testNode(t) // does not run: it has the genesis only
	nothing := strings.Repeat("00", 32)
	const (
		notText    = "JSON value is not a string as expected"
		notInteger = "JSON value is not an integer as expected"
		outOfRange = "Block height out of range"
		noHeight   = "Invalid block height parameter"
	)
	for _, c := range []struct {
		method, params string
		code           int
		text           string
	}{
		{"getblock", `[]`, codeParameters, "Not enough parameters for method `getblock`. Needed at least 1 and at most 2, but received 0\n\ngetblock hash|height ( verbosity )"},
		{"getblock", `["0",1,2]`, codeParameters, "Too many parameters for method `getblock`. Needed at least 1 and at most 2, but received 3\n\ngetblock hash|height ( verbosity )"},
		{"getinfo", `[1]`, codeParameters, "Too many parameters for method `getinfo`. Needed exactly 0, but received 1\n\ngetinfo"},
		{"getblock", `[[1]]`, codeMisc, notText},
		{"getblock", `[null]`, codeMisc, notText},
		{"getblock", `["7"]`, codeParameter, outOfRange},
		{"getblock", `[-3]`, codeParameter, outOfRange},
		{"getblock", `["one"]`, codeParameter, noHeight},
		{"getblock", `["+0"]`, codeParameter, noHeight},
		{"getblock", `[1.5]`, codeParameter, noHeight},
		{"getblock", `["` + nothing + `"]`, codeNotFound, "Block not found"},
		{"getblock", `["` + strings.Repeat("z", 64) + `"]`, codeNotFound, "Block not found"},
		{"getblock", `["0", 3]`, codeParameter, "Verbosity must be in range from 0 to 2"},
		{"getblock", `["0", "1"]`, codeMisc, "JSON value is not a boolean as expected"},
		{"getblockhash", `["0"]`, codeMisc, notInteger},
		{"getblockhash", `[2147483648]`, codeMisc, "JSON integer out of range"},
		{"getblockhash", `[1]`, codeParameter, outOfRange},
		{"z_gettreestate", `[{}]`, codeMisc, notText},
		{"z_gettreestate", `["1"]`, codeParameter, outOfRange},
		{"getrawtransaction", `["` + nothing + `"]`, codeNotFound, "No such mempool or blockchain transaction"},
		{"getrawtransaction", `["12"]`, codeNotFound, "No such mempool or blockchain transaction"},
		{"getrawtransaction", `["x"]`, codeParameter, "parameter 1 must be hexadecimal string (not 'x')"},
		{"getrawtransaction", `["` + nothing + `", true]`, codeMisc, notInteger},
		{"getrawmempool", `[true]`, codeParameter, "verbose must be false: the pool knows no fees, times or priorities"},
		{"sendrawtransaction", `[5]`, codeType, "Expected type string, got number"},
		{"sendrawtransaction", `["00", "yes"]`, codeType, "Expected type bool, got string"},
		{"sendrawtransaction", `["0"]`, codeDecode, "TX decode failed: encoding/hex: odd length hex string"},
		{"z_getsubtreesbyindex", `["sprout", 0]`, codeParameter, `Requested pool must be "sapling" or "orchard"`},
		{"z_getsubtreesbyindex", `["orchard", "0"]`, codeMisc, notInteger},
		{"z_getsubtreesbyindex", `["orchard", 0, -1]`, codeParameter, "start_index is 0 and limit is -1, want 0 or more"},
		{"getaddresstxids", `[5]`, codeNotFound, "Invalid address"},
		{"getaddresstxids", `[{"addresses":["t1"],"start":3,"end":2}]`, codeNotFound, "End value is expected to be greater than start"},
		{"getaddresstxids", `[{"addresses":["t1"],"start":0,"end":2}]`, codeNotFound, "Start and end are expected to be greater than zero"},
		{"getaddresstxids", `[{"addresses":["t1"],"start":1,"end":-2}]`, codeNotFound, "Start and end are expected to be greater than zero"},
		{"getaddresstxids", `[{"addresses":["t1"],"start":"1","end":2}]`, codeMisc, notInteger},
		{"getaddressbalance", `[{}]`, codeNotFound, "Addresses is expected to be an array"},
		{"getaddressutxos", `[{"addresses":[5]}]`, codeMisc, notText},
		{"getpeerinfo", `[]`, codeMethod, "Method not found"},
	} {
		_, f := ask(t, n, c.method, c.params)
		require.Equal(t, &fault{c.code, c.text}, f, "%s %s", c.method, c.params)
	}
}

// TestErrorsOfRequests: a request that is not one has zcashd's codes and HTTP status, and the
// id as soon as it is known.
func TestErrorsOfRequests(t *testing.T) {
	n := testNode(t)
	for body, want := range map[string]struct {
		status, code int
		text, id     string
	}{
		``:                              {500, codeParse, "Parse error", `null`},
		`{"id":1`:                       {500, codeParse, "Parse error", `null`},
		`{"id":1}{"id":2}`:              {500, codeParse, "Parse error", `null`},
		strings.Repeat(" ", 1<<22+1):    {500, codeParse, "Parse error", `null`},
		`5`:                             {500, codeParse, "Top-level object parse error", `null`},
		`null`:                          {500, codeParse, "Top-level object parse error", `null`},
		`{"id":"a"}`:                    {400, codeRequest, "Missing method", `"a"`},
		`{"id":7,"method":5}`:           {400, codeRequest, "Method must be a string", `7`},
		`{"method":"x","params":{}}`:    {400, codeRequest, "Params must be an array", `null`},
		`{"id":[1],"method":"help"}`:    {404, codeMethod, "Method not found", `[1]`},
		` {"id":1,"method":"getblock"}`: {500, codeParameters, "Not enough parameters for method `getblock`. Needed at least 1 and at most 2, but received 0\n\ngetblock hash|height ( verbosity )", `1`},
	} {
		w := post(n, body)
		require.Equal(t, want.status, w.Code, "%.40q", body)
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		text, err := json.Marshal(want.text)
		require.NoError(t, err)
		code, err := json.Marshal(want.code)
		require.NoError(t, err)
		require.JSONEq(t, `{"id":`+want.id+`,"result":null,"error":{"code":`+string(code)+`,"message":`+string(text)+`}}`, w.Body.String())
	}
	w := httptest.NewRecorder()
	n.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

// TestBatch: each request of a batch is answered by itself, in order.
func TestBatch(t *testing.T) {
	n := testNode(t)
	w := post(n, ` [{"id":1,"method":"getblockcount"}, 5, {"id":2,"method":"getblockhash","params":[1]}, [], null]`)
	require.Equal(t, http.StatusOK, w.Code)
	invalid := `{"id":null,"result":null,"error":{"code":-32600,"message":"Invalid Request object"}}`
	require.JSONEq(t, `[{"id":1,"result":0,"error":null}, `+invalid+`,
		{"id":2,"result":null,"error":{"code":-8,"message":"Block height out of range"}}, `+invalid+`, `+invalid+`]`, w.Body.String())
	require.NotContains(t, w.Body.String(), "Go value")
	require.JSONEq(t, `[]`, post(n, `[]`).Body.String())
}

// TestTransparentAddresses: no transparent address has transactions, because the pool has no
// outputs that pay to one.
func TestTransparentAddresses(t *testing.T) {
	n := testNode(t)
	for method, want := range map[string]string{
		"getaddresstxids": `[]`, "getaddressutxos": `[]`, "getaddressbalance": `{"balance":0,"received":0}`,
	} {
		for _, params := range []string{`["t1"]`, `[{"addresses":["t1","t3"],"start":1,"end":2}]`, `[{"addresses":["t1"],"start":3,"end":3}]`, `[{"addresses":["t1"],"start":3}]`} {
			result, f := ask(t, n, method, params)
			require.Nil(t, f, method)
			require.JSONEq(t, want, string(result), method)
		}
	}
}

// TestNoSubtrees: a pool with few notes has no complete subtree, and the Sapling pool is empty.
func TestNoSubtrees(t *testing.T) {
	onePackage(t, func(t *testing.T, n *node) {
		for params, want := range map[string]string{
			`["orchard", 0]`:    `{"pool":"orchard","start_index":0,"subtrees":[]}`,
			`["sapling", 3, 7]`: `{"pool":"sapling","start_index":3,"subtrees":[]}`,
		} {
			result, f := ask(t, n, "z_getsubtreesbyindex", params)
			require.Nil(t, f)
			require.JSONEq(t, want, string(result))
		}
	})
}

// TestSubtrees: a subtree is complete in the block with its last note, until the block is
// undone.
func TestSubtrees(t *testing.T) {
	r := newRollup()
	var roots []bytes32
	extend := func(notes int) *transaction {
		tx := &transaction{Actions: make([]action, notes)}
		for i := range tx.Actions {
			binary.LittleEndian.PutUint64(tx.Actions[i].Nullifier[:], r.state.notes+uint64(i))
		}
		require.NoError(t, r.state.apply(tx))
		r.blocks = append(r.blocks, &block{Height: r.tip().Height + 1, Notes: r.state.notes, Root: r.state.root})
		roots = append(roots, r.state.root)
		return tx
	}
	extend(subtreeSize - 1)
	require.Empty(t, r.subtrees(1, 0, 10))
	extend(1)
	last := extend(2 * subtreeSize)
	first, all := subtreeView{roots[1], 2}, r.subtrees(3, 0, 10)
	require.Len(t, all, 3)
	require.Equal(t, first, all[0])
	require.EqualValues(t, 3, all[1].EndHeight)
	require.Equal(t, subtreeView{roots[2], 3}, all[2])
	require.Equal(t, []subtreeView{first}, r.subtrees(2, 0, 10), "only blocks that are accumulated")
	require.Equal(t, all[1:2], r.subtrees(3, 1, 1))
	require.Empty(t, r.subtrees(3, 3, 10))
	require.Empty(t, r.subtrees(3, 0, 0))

	r.blocks = r.blocks[:3]
	r.state.revert([]*transaction{last}, r.tip())
	extend(subtreeSize)
	require.Equal(t, []subtreeView{first, {roots[3], 3}}, r.subtrees(3, 0, 10))
}
