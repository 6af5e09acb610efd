package jip2

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/jamq/jamq/internal/fields"
)

// Config configures a [Client]. Start from [DefaultConfig].
type Config struct {
	// URL is the address of the node's JSON-RPC endpoint, for example ws://127.0.0.1:19800. Its
	// scheme is ws, or wss for TLS.
	URL string
	// Dial makes the network connection that carries the WebSocket. A host sets
	// it to reach a node behind a Unix socket or a tunnel; nil dials TCP. Dial
	// receives "tcp", the host and port of URL, and a context that ends after
	// DialTimeout. If the scheme is wss, TLS runs over the returned connection.
	// If Dial returns an error, the client waits and calls it again. The client
	// never runs two calls of Dial at the same time.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// DialTimeout is the maximum duration of one attempt to connect.
	// CallTimeout is the maximum duration of one call, including the time in
	// which the call waits for a connection. Both must be positive, and both
	// are 10 s by default.
	DialTimeout, CallTimeout time.Duration
	// PingInterval is the time between two pings, with which the client detects
	// that the node has disappeared. It must be positive; the default is 10 s.
	// The client closes a connection if nothing arrives on it for three
	// intervals, or if a single message takes longer than three intervals.
	PingInterval time.Duration
	// MaxRequest is the maximum size in bytes of a message from the client to
	// the node. It must be at least 1,024. The default of 20 MiB is enough for
	// the base64 of the largest bundle on the full chain.
	MaxRequest int64
	// MaxAnswer is the maximum size in bytes of a message from the node. It
	// must be at least 1,024. The default of 6 MiB is enough for 1,000 segments
	// or for 4 MiB of a service's data. If a larger message arrives, the client
	// closes the connection. With the default, a client uses less than 64 MiB
	// of memory even if the node sends as much as it can.
	//
	// A lower limit of 64 KiB holds for small results: a status, a block
	// descriptor, the state of a request for data, or the parameters of the
	// chain.
	MaxAnswer int64
	// BackoffBase and BackoffMax bound how long the client waits before it
	// connects again. The wait starts at BackoffBase and doubles with each
	// consecutive failure, up to BackoffMax. A random part of at most one half
	// is then subtracted. BackoffBase must be positive, and BackoffMax must not
	// be less than BackoffBase. The defaults are 100 ms and 10 s.
	BackoffBase, BackoffMax time.Duration
	// Logger receives a message when a connection is lost, a subscription
	// fails, or the node sends a malformed message. Nil discards these
	// messages.
	Logger *slog.Logger
}

// DefaultConfig returns the default configuration for the node at url.
func DefaultConfig(url string) Config {
	return Config{
		URL: url, DialTimeout: 10 * time.Second, CallTimeout: 10 * time.Second, PingInterval: 10 * time.Second, MaxRequest: 20 << 20, MaxAnswer: 6 << 20,
		BackoffBase: 100 * time.Millisecond, BackoffMax: 10 * time.Second,
	}
}

// minMessage is the smallest MaxRequest and MaxAnswer, in bytes.
const minMessage = 1 << 10

// Validate checks the configuration. It returns nil, or an error that wraps [ErrInvalidConfig] and
// lists every field that is out of range.
func (c *Config) Validate() error {
	var wrong fields.Errors
	u, err := url.Parse(c.URL)
	wrong.Want(err == nil && (u.Scheme == "ws" || u.Scheme == "wss") && u.Host != "", "URL", strconv.Quote(c.URL), "ws://host:port or wss://host:port")
	fields.Positive(&wrong, "DialTimeout", c.DialTimeout)
	fields.Positive(&wrong, "CallTimeout", c.CallTimeout)
	fields.Positive(&wrong, "PingInterval", c.PingInterval)
	fields.Positive(&wrong, "BackoffBase", c.BackoffBase)
	wrong.Want(c.BackoffMax >= c.BackoffBase, "BackoffMax", c.BackoffMax, fmt.Sprintf("at least BackoffBase %v", c.BackoffBase))
	atLeast := fmt.Sprintf("at least %d bytes", minMessage)
	wrong.Want(c.MaxRequest >= minMessage, "MaxRequest", c.MaxRequest, atLeast)
	wrong.Want(c.MaxAnswer >= minMessage, "MaxAnswer", c.MaxAnswer, atLeast)
	return wrong.Wrap(ErrInvalidConfig)
}
