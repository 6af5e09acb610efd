package rpcapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	geth "github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/examples/refnode/node"
	"github.com/jamq/jamq/txpool"
)

// Handler serves JSON-RPC over HTTP and WebSocket on one address, and a status page to browsers. The returned function ends
// its WebSocket connections. Errors wrap [ErrInvalidConfig].
//
// There are two servers behind it: one for everybody, and one for who brings a token, with all namespaces and without limits.
func Handler(n *node.Node, cfg Config) (http.Handler, func(), error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	limiter, err := txpool.NewLimiter(cfg.Limits)
	if err != nil {
		return nil, nil, err
	}
	limits := &limits{limiter, cfg.LimitLoopback}
	subscriptions := newFilters(n, &cfg)
	public, err := newServer(&api{node: n, signer: signerOf(n), cfg: &cfg, limits: limits, filters: subscriptions}, limiter, cfg.API)
	if err != nil {
		return nil, nil, err
	}
	admins, err := newServer(&api{node: n, signer: signerOf(n), cfg: &cfg, filters: subscriptions}, limiter, append(slices.Clone(namespaces), "admin"))
	if err != nil {
		public.Stop()
		return nil, nil, err
	}
	stop := func() {
		public.Stop()
		admins.Stop()
	}
	door := &door{
		page:   geth.NewHTTPHandlerStack(&statusPage{node: n}, nil, cfg.VHosts, nil, true),
		public: entrance{limits.http(cfg.BodyBytes, cfg.http(public, nil)), limits.webSocket(cfg.webSocket(public, nil))},
		admins: entrance{cfg.http(admins, cfg.Secret), cfg.webSocket(admins, cfg.Secret)},
		tokens: len(cfg.Secret) > 0,
	}
	return door, stop, nil
}

// newServer returns a server with some namespaces.
func newServer(a *api, limiter *txpool.Limiter, names []string) (*rpc.Server, error) {
	server := rpc.NewServer()
	server.SetBatchLimits(a.cfg.BatchItems, a.cfg.BatchBytes)
	server.SetHTTPBodyLimit(a.cfg.BodyBytes)
	server.SetWebsocketReadLimit(int64(a.cfg.BodyBytes))
	for _, s := range a.services(limiter) {
		if !slices.Contains(names, s.namespace) {
			continue
		}
		if err := server.RegisterName(s.namespace, s.receiver); err != nil {
			server.Stop()
			return nil, fmt.Errorf("rpcapi: register %s: %w", s.namespace, err)
		}
	}
	return server, nil
}

// http puts geth's checks of origin, host and token before a server, and bounds the time of a request.
func (c *Config) http(server *rpc.Server, secret []byte) http.Handler {
	timed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), c.RequestTime)
		defer cancel()
		server.ServeHTTP(w, r.WithContext(ctx))
	})
	checked := geth.NewHTTPHandlerStack(timed, c.CORS, c.VHosts, secret, false)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end := time.Now().Add(c.RequestTime)
		connection := http.NewResponseController(w)
		// Not every ResponseWriter has deadlines; that of a real connection has.
		_ = connection.SetReadDeadline(end)
		_ = connection.SetWriteDeadline(end.Add(time.Second)) // for the answer that says that the time is over
		checked.ServeHTTP(w, r)
		_ = connection.SetWriteDeadline(time.Time{}) // the next request of the connection may be for the page
	})
}

// webSocket puts geth's checks of origin and token before a server.
func (c *Config) webSocket(server *rpc.Server, secret []byte) http.Handler {
	return geth.NewWSHandlerStack(server.WebsocketHandler(c.Origins), secret)
}

// entrance is a server over both transports.
type entrance struct{ http, webSocket http.Handler }

// door sends requests where they belong.
type door struct {
	page           http.Handler
	public, admins entrance
	tokens         bool
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to := d.public
	if d.tokens && r.Header.Get("Authorization") != "" {
		to = d.admins // whoever shows a token must show a good one
	}
	switch {
	case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		to.webSocket.ServeHTTP(w, r)
	case r.Method == http.MethodGet:
		d.page.ServeHTTP(w, r)
	default:
		to.http.ServeHTTP(w, r)
	}
}
