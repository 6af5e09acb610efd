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
	// URL is the node's endpoint. Its scheme is ws or wss.
	URL string
	// Dial makes the connection that carries the WebSocket, for a node behind a
	// Unix socket or a tunnel. It receives "tcp" and the host and port of URL,
	// and a context that ends after DialTimeout. TLS runs over the connection
	// if the scheme is wss. After an error the client waits and tries again.
	// Only one call runs at a time. Nil dials TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// DialTimeout bounds one attempt to connect. CallTimeout bounds one call,
	// including the wait for a connection. Both must be positive. The default
	// of each is 10 s.
	DialTimeout, CallTimeout time.Duration
	// PingInterval is the time between two pings. It must be positive; the
	// default is 10 s. A connection on which nothing arrives for three
	// intervals is closed, and so is one on which a message takes longer.
	PingInterval time.Duration
	// MaxRequest is the maximum size of a message to the node, in bytes, at least
	// 1,024. The default is 20 MiB, enough for the base64 of the largest bundle of the
	// full chain.
	MaxRequest int64
	// MaxAnswer is the maximum size of a message from the node, in bytes, at least
	// 1,024. The default is 6 MiB, enough for 1,000 segments or 4 MiB of a service's
	// data. A larger message ends the connection. A status, a block, a request or the
	// parameters of more than 64 KiB are refused. With the default, a client of a node
	// that sends as much as it can takes less than 64 MiB.
	MaxAnswer int64
	// BackoffBase and BackoffMax bound the wait before a new attempt to
	// connect. The wait starts at BackoffBase, doubles with each consecutive
	// failure up to BackoffMax, and is then reduced by a random part of at most
	// one half. BackoffBase must be positive and BackoffMax at least as long.
	// The defaults are 100 ms and 10 s.
	BackoffBase, BackoffMax time.Duration
	// Logger receives lost connections, failed subscriptions and malformed
	// messages. Nil discards them.
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

// Validate returns an error that wraps [ErrInvalidConfig] and lists each field
// that is out of range, or nil.
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
