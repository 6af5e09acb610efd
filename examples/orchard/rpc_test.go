package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrors: calls that cannot be answered have zcashd's codes.
func TestErrors(t *testing.T) {
	n := testNode(t) // does not run: it has the genesis only
	for _, c := range []struct {
		method, params string
		code           int
	}{
		{"getpeerinfo", `[]`, codeMethod},
		{"getblock", `[[1]]`, codeParameter},
		{"getblock", `["0", "1"]`, codeParameter},
		{"getblock", `["1"]`, codeParameter},
		{"getblock", `["-2"]`, codeParameter},
		{"getblock", `["one"]`, codeParameter},
		{"getblock", `["` + strings.Repeat("00", 32) + `"]`, codeNotFound},
		{"z_gettreestate", `["1"]`, codeParameter},
		{"sendrawtransaction", `[5]`, codeParameter},
		{"sendrawtransaction", `["0"]`, codeDecode},
		{"sendrawtransaction", `["00"]`, codeDecode},
	} {
		_, f := ask(t, n, c.method, c.params)
		require.NotNil(t, f, c.params)
		require.Equal(t, c.code, f.Code, "%s %s", c.method, c.params)
	}
}

// TestMalformedRequests: a body that is not a request, or is too long, gets the error of a
// parser.
func TestMalformedRequests(t *testing.T) {
	n := testNode(t)
	for _, body := range []string{``, `5`, `[]`, `{"id":1`, `{"params":{}}`, `"` + strings.Repeat(" ", maxRequest) + `"`} {
		var reply struct{ Error fault }
		require.NoError(t, json.Unmarshal(post(n, body).Body.Bytes(), &reply))
		require.Equal(t, codeParse, reply.Error.Code, "%.40q", body)
	}
}
