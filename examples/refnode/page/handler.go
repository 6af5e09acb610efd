package page

import (
	"context"
	"net/http"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/rpcapi"
	"github.com/jamq/jamq/examples/refnode/lab"
)

// Handler returns a handler that serves JSON-RPC and the page of a node. The returned function
// closes its WebSocket connections and streams. The error is that of rpcapi.Handler.
func Handler(n *lab.Node, cfg rpcapi.Config) (http.Handler, func(), error) {
	shown := New(n.Live(), n.Lab(), n.KillReplica)
	cfg.Page = shown
	cfg.APIs = append(cfg.APIs, rpc.API{Namespace: "admin", Service: &Admin{n}, Authenticated: true})
	handler, end, err := rpcapi.Handler(n.Node, cfg)
	return handler, func() {
		shown.Close()
		end()
	}, err
}

// Admin has the method of the namespace admin that is for replicas with -lab.
type Admin struct{ node *lab.Node }

// KillReplica implements admin_killReplica. It ends the process of a replica as a crash does, if
// both have -lab.
func (a *Admin) KillReplica(ctx context.Context, address string) (bool, error) {
	err := a.node.KillReplica(ctx, address)
	return err == nil, err
}
