package rpcapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/guard"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/ratelimit"
)

// Handler returns an HTTP handler for a node. It serves JSON-RPC over HTTP and WebSocket on one
// address, and Config.Page for browsers. The returned function closes the WebSocket connections.
// The error wraps [ErrInvalidConfig] if cfg is not valid.
func Handler(n *node.Node, cfg Config) (http.Handler, func(), error) {
	d, err := newDoor(n, &cfg)
	if err != nil {
		return nil, nil, err
	}
	return d, d.stop, nil
}

// door routes each request to the right server. The public server serves all clients.
// The other one serves clients with a token; it has all namespaces and no limits.
type door struct {
	page           http.Handler // Config.Page behind the VHosts check; nil if there is none
	public, admins entrance
	tokens         bool
	filters        *filters
	copies         http.Handler // for replicas that join, nil without a cluster
}

// entrance is a JSON-RPC server with its handlers for HTTP and for WebSocket.
type entrance struct {
	server          *rpc.Server
	http, webSocket http.Handler
}

// APIs returns the RPC methods for a host that already has a go-ethereum server. It
// leaves out the namespace admin, the rate limits and the checks of the caller, because
// the host's server and middleware are responsible for these. The error wraps
// [ErrInvalidConfig] if cfg is not valid.
func APIs(n *node.Node, cfg Config) ([]rpc.API, error) {
	open, limiter, err := newAPI(n, &cfg)
	if err != nil {
		return nil, err
	}
	open.limits = nil
	var all []rpc.API
	for _, s := range open.services(limiter) {
		if slices.Contains(cfg.API, s.namespace) || slices.Contains(devNamespaces, s.namespace) {
			all = append(all, rpc.API{Namespace: s.namespace, Service: s.receiver})
		}
	}
	return append(all, cfg.APIs...), nil
}

// newAPI returns the value that the receivers of all public RPC methods share, with the
// node, the configuration and the limits. It also returns the rate limiter that the limits
// use.
func newAPI(n *node.Node, cfg *Config) (api, *ratelimit.Limiter, error) {
	if err := cfg.Validate(); err != nil {
		return api{}, nil, err
	}
	rates := cfg.Limits
	if rates.Surge.Pressure == nil {
		rates.Surge.Pressure = n.PoolPressure
	}
	limiter, err := ratelimit.New(rates)
	if err != nil {
		return api{}, nil, err
	}
	open := api{node: n, signer: n.Signer(), cfg: cfg, limits: &limits{limiter, cfg.LimitLoopback}, filters: newFilters(n, cfg)}
	if n.Clustered() {
		open.leader = &leader{node: n, secret: cfg.Secret}
	}
	return open, limiter, nil
}

func newDoor(n *node.Node, cfg *Config) (*door, error) {
	open, limiter, err := newAPI(n, cfg)
	if err != nil {
		return nil, err
	}
	admin := open
	admin.limits = nil
	public, err := newServer(&open, limiter, cfg.API)
	if err != nil {
		return nil, err
	}
	admins, err := newServer(&admin, limiter, append(slices.Clone(namespaces), "admin"))
	if err != nil {
		public.Stop()
		return nil, err
	}
	l := open.limits
	var copies http.Handler
	if n.Clustered() {
		copies = guard.Tokens(cfg.Secret, http.HandlerFunc(open.serveCopy))
	}
	var page http.Handler
	if cfg.Page != nil {
		page = guard.Hosts(cfg.VHosts, cfg.Page)
	}
	return &door{
		copies:  copies,
		page:    page,
		public:  entrance{public, cfg.http(l.http(cfg.BodyBytes, public), nil), l.webSocket(cfg.webSocket(public, nil))},
		admins:  entrance{admins, cfg.http(admins, cfg.Secret), cfg.webSocket(admins, cfg.Secret)},
		tokens:  len(cfg.Secret) > 0,
		filters: open.filters,
	}, nil
}

// ServeHTTP implements http.Handler.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to := &d.public
	if d.tokens && r.Header.Get("Authorization") != "" {
		to = &d.admins // an invalid token is refused
	}
	switch {
	case d.copies != nil && r.URL.Path == node.CopyPath:
		d.copies.ServeHTTP(w, r)
	case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		to.webSocket.ServeHTTP(w, r)
	case d.page != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead || strings.HasPrefix(r.URL.Path, "/lab/")):
		d.page.ServeHTTP(w, r)
	default:
		to.http.ServeHTTP(w, r)
	}
}

// stop closes all WebSocket connections.
func (d *door) stop() {
	d.public.server.Stop()
	d.admins.server.Stop()
}

// newServer returns a server with the namespaces in names.
func newServer(a *api, limiter *ratelimit.Limiter, names []string) (*rpc.Server, error) {
	server := rpc.NewServer()
	server.SetBatchLimits(a.cfg.BatchItems, a.cfg.BatchBytes)
	server.SetHTTPBodyLimit(a.cfg.BodyBytes)
	server.SetWebsocketReadLimit(int64(a.cfg.BodyBytes))
	all := a.services(limiter)
	for _, further := range a.cfg.APIs {
		if a.limits == nil || !further.Authenticated {
			all = append(all, service{further.Namespace, further.Service})
			names = append(slices.Clone(names), further.Namespace)
		}
	}
	for _, s := range all {
		if !slices.Contains(names, s.namespace) && !slices.Contains(devNamespaces, s.namespace) {
			continue
		}
		if err := server.RegisterName(s.namespace, s.receiver); err != nil {
			server.Stop()
			return nil, fmt.Errorf("rpcapi: register %s: %w", s.namespace, err)
		}
	}
	return server, nil
}

// http returns a handler that checks the origin, the host and the token of a request
// before it calls next. It also limits the duration of the request, counted from the
// first byte of the body.
func (c *Config) http(next http.Handler, secret []byte) http.Handler {
	checked := guard.Compressed(withToken(secret, guard.Hosts(c.VHosts, guard.Origins(c.CORS, next))))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end := time.Now().Add(c.RequestTime)
		ctx, cancel := context.WithDeadline(r.Context(), end)
		defer cancel()
		connection := http.NewResponseController(w)
		// Only the ResponseWriter of a real connection supports deadlines.
		_ = connection.SetReadDeadline(end)
		_ = connection.SetWriteDeadline(end.Add(time.Second)) // for the time-out's answer
		checked.ServeHTTP(w, r.WithContext(ctx))
		// The connection's next request may be for the page, which has no deadline.
		_ = connection.SetWriteDeadline(time.Time{})
	})
}

// webSocket returns a handler that checks the origin and the token of a connection
// before the server serves it.
func (c *Config) webSocket(server *rpc.Server, secret []byte) http.Handler {
	return withToken(secret, server.WebsocketHandler(c.Origins))
}

// withToken lets only clients with a token call next. Without a secret, every client
// may.
func withToken(secret []byte, next http.Handler) http.Handler {
	if len(secret) == 0 {
		return next
	}
	return guard.Tokens(secret, next)
}
