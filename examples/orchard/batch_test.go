package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A small request has no answer of any size: with 5,000 calls of getblock, 185 kB of request
// would take 490 MB.
func TestAnswerOfABatchIsBounded(t *testing.T) {
	onePackage(t, func(t *testing.T, n *node) {
		body := "[" + strings.Repeat(`{"method":"getblock","params":[1,2]},`, 4999) + `{"method":"getblock","params":[1,2]}]`
		w := post(n, body)
		require.Contains(t, w.Body.String()[:min(200, w.Body.Len())], "answers of more than")
	})
}

// No call of a batch runs after its client has left.
func TestBatchEndsWithItsClient(t *testing.T) {
	n := testNode(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	n.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(
		`[{"id":1,"method":"getblockcount"},{"id":2,"method":"getblockcount"}]`)))
	require.NotContains(t, w.Body.String(), `"result":0`)
}
