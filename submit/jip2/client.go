package jip2

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/jamq/jamq/internal/backoff"
	"github.com/jamq/jamq/internal/feed"
)

// Client keeps one WebSocket connection to a JAM node and sends all calls and
// subscriptions over it. If the connection breaks, the client connects again
// after a wait. Create a client with [Open]. Its methods are safe for
// concurrent use.
type Client struct {
	cfg    Config
	log    *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}

	mu        sync.Mutex
	conn      *conn         // nil while disconnected
	connected chan struct{} // closed while connected
	subs      map[*stream]struct{}
	closed    bool

	bundles support // whether the node lacks the method for bundles

	took atomic.Int64 // nanoseconds that the last answered call took, see answerTime

	// failed, renewing and malformed limit how often the client logs three faults:
	// a lost connection, a subscription that it could not renew, and a malformed
	// message. A faulty node could otherwise fill the log.
	failed, renewing, malformed feed.Seldom
}

// Open returns a client that connects to the node in the background and stays
// connected until Close. Open itself does not wait for the connection, but the
// first call does. It returns ErrInvalidConfig if the configuration is invalid.
func Open(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Client{
		cfg: cfg, log: cfg.Logger, cancel: cancel, done: make(chan struct{}),
		connected: make(chan struct{}), subs: make(map[*stream]struct{}),
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	go c.run(ctx)
	return c, nil
}

// Close closes the connection and all subscriptions. It returns when the
// client's goroutines have ended; pending calls fail with ErrClosed or
// ErrDisconnected. Further calls of Close have no effect.
func (c *Client) Close() {
	c.cancel()
	<-c.done
}

// run keeps the client connected until ctx ends.
func (c *Client) run(ctx context.Context) {
	defer close(c.done)
	defer c.endSubscriptions()
	failures := 0
	for ctx.Err() == nil {
		ws, err := c.dial(ctx)
		if err == nil {
			began := time.Now()
			err = c.serve(ctx, ws)
			if time.Since(began) > c.cfg.BackoffMax {
				failures = 0
			}
		}
		if ctx.Err() != nil {
			return
		}
		failures++
		wait := c.backoff(failures)
		c.failed.Do(func() { c.log.Warn("not connected to the JAM node", "url", c.cfg.URL, "retry in", wait, "err", err) })
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// backoff returns the wait before the next dial, after consecutive failures.
func (c *Client) backoff(failures int) time.Duration {
	wait := backoff.Wait(c.cfg.BackoffBase, c.cfg.BackoffMax, failures)
	// A random part is subtracted, so that the clients of a node that restarts do
	// not all connect at the same time.
	return wait/2 + rand.N(wait/2+1)
}

func (c *Client) dial(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	defer cancel()
	var limited *limitedConn
	dialer := websocket.Dialer{HandshakeTimeout: c.cfg.DialTimeout, NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dial := c.cfg.Dial
		if dial == nil {
			dial = new(net.Dialer).DialContext
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		limited = &limitedConn{Conn: conn, left: maxHandshake}
		return limited, nil
	}}
	ws, response, err := dialer.DialContext(ctx, c.cfg.URL, nil)
	switch {
	case err != nil && response != nil:
		return nil, fmt.Errorf("%w: the node answered %s", err, cut(response.Status))
	case err != nil:
		return nil, short(err) // it may quote the node
	}
	limited.left = math.MaxInt64
	return ws, nil
}

// maxHandshake is the maximum number of bytes, including those of TLS, that the
// client reads from a node before the connection has become a WebSocket.
// Without this limit a node could send a handshake that never ends.
const maxHandshake = 256 << 10

// limitedConn is a network connection whose Read fails after a number of bytes, so
// that a node cannot send an endless handshake. left is how many bytes may still
// arrive.
type limitedConn struct {
	net.Conn
	left int64
}

// Read implements net.Conn.
func (l *limitedConn) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("%w: handshake of more than %d bytes", ErrTooLarge, maxHandshake)
	}
	n, err := l.Conn.Read(b[:min(int64(len(b)), l.left)])
	l.left -= int64(n)
	return n, err
}

// serve runs one connection until it ends, and returns the reason for the end.
func (c *Client) serve(ctx context.Context, ws *websocket.Conn) error {
	conn := newConn(ws, &c.cfg, c.log, &c.malformed)
	stop := context.AfterFunc(ctx, conn.close) // unblocks the reader
	defer stop()
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer conn.close()
	helpers.Go(conn.ping)
	// The node does not know the subscriptions of the previous connection.
	again := c.attach(conn)
	helpers.Go(func() { c.resubscribe(conn, again) })
	err := conn.read()
	c.detach(conn)
	conn.fail(err)
	return err
}

// attach makes conn the client's connection, and returns the subscriptions to
// renew.
func (c *Client) attach(conn *conn) []*stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	again := slices.Collect(maps.Keys(c.subs))
	c.conn = conn
	// This wakes the calls that wait for a connection.
	close(c.connected)
	return again
}

// resubscribe renews the given subscriptions on a new connection.
func (c *Client) resubscribe(conn *conn, again []*stream) {
	for _, s := range again {
		ctx, cancel := context.WithTimeout(context.Background(), c.cfg.CallTimeout)
		err := conn.subscribe(ctx, s)
		cancel()
		if err != nil {
			c.renewing.Do(func() { c.log.Warn("cannot renew a subscription", "method", s.method, "err", err) })
		}
		// The node refuses this subscription, for example because it allows only a few. The
		// reader receives the error. The connection stays, because the other subscriptions need
		// it.
		if refused := new(Error); errors.As(err, &refused) {
			s.deliver(nil, err)
			continue
		}
		if err != nil {
			conn.close() // the next connection tries again
			return
		}
		if s.hasEnded() { // closed meanwhile
			s.end(true)
		}
	}
}

func (c *Client) detach(conn *conn) {
	<-conn.closed
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == conn {
		c.conn = nil
		c.connected = make(chan struct{})
	}
}

// isConnected reports whether the client has a connection to the node now.
func (c *Client) isConnected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn != nil
}

// await returns the current connection, or waits for one.
func (c *Client) await(ctx context.Context) (*conn, error) {
	for {
		c.mu.Lock()
		conn, connected, closed := c.conn, c.connected, c.closed
		c.mu.Unlock()
		if closed {
			return nil, ErrClosed
		}
		if conn != nil {
			return conn, nil
		}
		select {
		case <-connected:
		case <-c.done:
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: no connection to %s: %w", ErrDisconnected, c.cfg.URL, ctx.Err())
		}
	}
}

// Call calls a method of the node with positional parameters, and decodes the
// result into the pointer into. If into is nil, the result is dropped. If the
// client is disconnected, Call waits for a connection; in total it takes at
// most Config.CallTimeout. Errors wrap one of these:
//
//   - *[Error]: the node answered with an error.
//   - ErrDisconnected or the error of ctx: it is unknown whether the node has
//     carried out the call.
//   - ErrMalformed: the result cannot be decoded.
//   - ErrTooLarge: the request is larger than Config.MaxRequest.
//   - ErrClosed: the client is closed.
//
// While Call decodes a result of more than 64 KiB, the client reads nothing
// more from the node. The method UnmarshalJSON of into must therefore not wait
// for another call.
func (c *Client) Call(ctx context.Context, into any, method string, params ...any) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.CallTimeout)
	defer cancel()
	conn, err := c.await(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	began := time.Now()
	err = conn.call(ctx, into, nil, method, params)
	if err != nil {
		err = fmt.Errorf("%s: %w", method, err)
	}
	if e := new(Error); err == nil || errors.As(err, &e) {
		c.took.Store(int64(time.Since(began)))
	}
	return err
}

// answerTime returns how long the node took for its last answer; 0 before that.
func (c *Client) answerTime() time.Duration { return time.Duration(c.took.Load()) }
