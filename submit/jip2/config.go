package jip2

import (
	"fmt"
	"log/slog"
	"net/url"
	"time"
)

// Config says how a client talks to its node. Begin with [DefaultConfig].
type Config struct {
	// URL is the node's endpoint, ws:// or wss://.
	URL string
	// DialTimeout bounds one attempt to connect, CallTimeout one call, with the wait for a connection; 10 s each, positive.
	DialTimeout, CallTimeout time.Duration
	// PingInterval is how often the connection is tried while it is idle, positive; 10 s. It is given up when nothing at all was heard for
	// three of them.
	PingInterval time.Duration
	// MaxMessage bounds a message in either direction, in bytes, at least 1 kB; 32 MiB, which holds a bundle of the full chain in base64.
	MaxMessage int64
	// BackoffBase and BackoffMax bound the wait before connecting again: base, doubled for each failure in a row, at most max, of which a
	// random half is taken off. 100 ms and 10 s, positive and ascending.
	BackoffBase, BackoffMax time.Duration
	// Logger gets what an operator should know. Nil is silent.
	Logger *slog.Logger
}

// DefaultConfig returns the defaults for a node.
func DefaultConfig(url string) Config {
	return Config{
		URL: url, DialTimeout: 10 * time.Second, CallTimeout: 10 * time.Second, PingInterval: 10 * time.Second, MaxMessage: 32 << 20,
		BackoffBase: 100 * time.Millisecond, BackoffMax: 10 * time.Second,
	}
}

// leastMessage is the least MaxMessage.
const leastMessage = 1 << 10

// Validate names the first field that is out of range. The error wraps [ErrInvalidConfig].
func (c *Config) Validate() error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Host == "" {
		return fmt.Errorf("%w: URL is %q, want ws://host:port or wss://host:port", ErrInvalidConfig, c.URL)
	}
	for _, f := range []struct {
		field string
		have  time.Duration
	}{
		{"DialTimeout", c.DialTimeout}, {"CallTimeout", c.CallTimeout}, {"PingInterval", c.PingInterval}, {"BackoffBase", c.BackoffBase},
	} {
		if f.have <= 0 {
			return fmt.Errorf("%w: %s is %v, want positive", ErrInvalidConfig, f.field, f.have)
		}
	}
	switch {
	case c.BackoffMax < c.BackoffBase:
		return fmt.Errorf("%w: BackoffMax is %v, want at least BackoffBase %v", ErrInvalidConfig, c.BackoffMax, c.BackoffBase)
	case c.MaxMessage < leastMessage:
		return fmt.Errorf("%w: MaxMessage is %d, want at least %d bytes", ErrInvalidConfig, c.MaxMessage, leastMessage)
	}
	return nil
}
