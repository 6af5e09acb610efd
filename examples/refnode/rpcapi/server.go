package rpcapi

import (
	"net/http"
	"strings"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/examples/refnode/node"
)

const (
	// maxBody bounds one HTTP request, in bytes: geth's limit.
	maxBody = 5 * 1024 * 1024
	// maxBatch and maxBatchAnswer bound a batch: calls, and bytes of the answer; geth's limits.
	maxBatch, maxBatchAnswer = 1000, 25 * 1000 * 1000
)

// Handler serves JSON-RPC over HTTP and WebSocket on one address, and a status page to browsers. The returned function ends
// its WebSocket connections.
func Handler(n *node.Node) (http.Handler, func(), error) {
	server := rpc.NewServer()
	server.SetBatchLimits(maxBatch, maxBatchAnswer)
	server.SetHTTPBodyLimit(maxBody)
	if err := Register(server, n); err != nil {
		server.Stop()
		return nil, nil, err
	}
	// Wallet pages of any origin may ask: the node holds no secrets and signs for nobody.
	ws := server.WebsocketHandler([]string{"*"})
	page := &statusPage{node: n}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
			ws.ServeHTTP(w, r)
		case r.Method == http.MethodGet:
			page.ServeHTTP(w, r)
		case r.Method == http.MethodOptions:
			allowBrowser(w)
			w.WriteHeader(http.StatusNoContent)
		default:
			allowBrowser(w)
			server.ServeHTTP(w, r)
		}
	})
	return handler, server.Stop, nil
}

// allowBrowser lets scripts of other origins read the answer.
func allowBrowser(w http.ResponseWriter) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Access-Control-Allow-Methods", "POST, OPTIONS")
	w.Header().Set("Access-Control-Allow-Headers", "Content-Type")
}
