package jip2

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/jamq/jamq/internal/feed"
)

// Update is one notification of a subscription.
type Update[T any] struct {
	// Value is the value that the node sent, or the zero value if Err is set.
	Value T
	// Err is set if the update has no value. Either it wraps ErrMalformed, or
	// it is an *[Error] that the node sent instead of a value. In JIP-2 such an
	// error is a string, which becomes Error.Message, and Error.Code is then
	// CodeOther. An error does not affect the connection or other
	// subscriptions.
	//
	// Some nodes end the subscription after an error. A host that needs further
	// updates soon should therefore close the subscription and subscribe again.
	// A node may also refuse to renew the subscription on a new connection. Err
	// is then that refusal, and the client tries again on each later
	// connection.
	Err error
}

// Subscription receives updates about something that changes on the node, such
// as the best block. It survives a lost connection. Because it holds only the
// newest update, a slow reader misses the updates in between. The node may also
// leave out updates, and consecutive updates may be on different forks.
type Subscription[T any] struct {
	updates chan Update[T]
	stream  *stream
	client  *Client
}

// Updates returns the channel of updates. The channel is closed when the
// subscription or the client is closed.
func (s *Subscription[T]) Updates() <-chan Update[T] { return s.updates }

// Close closes the subscription and unsubscribes from the node without waiting
// for its answer. Further calls have no effect.
func (s *Subscription[T]) Close() {
	s.client.mu.Lock()
	delete(s.client.subs, s.stream)
	s.client.mu.Unlock()
	s.stream.end(true)
}

// stream is a [Subscription] without its type parameter, so that a connection
// can keep subscriptions of all types in one map.
type stream struct {
	method string
	params []any

	mu     sync.Mutex
	ended  bool
	errors feed.Seldom // limits how often errors of the node are logged
	offer  func(raw part, err error)
	close  func()
	conn   *conn
	id     part
}

// attached notes the subscription's new connection and its id there.
func (s *stream) attached(c *conn, id part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.id = c, bytes.Clone(id) // the message may be large
}

// hasEnded reports whether Close was called.
func (s *stream) hasEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// deliver offers an update to the reader, unless the subscription has ended.
func (s *stream) deliver(raw part, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.offer(raw, err)
	}
}

// end closes the channel of updates and, with tell, unsubscribes from the node.
func (s *stream) end(tell bool) {
	s.mu.Lock()
	conn, id := s.conn, s.id
	s.conn = nil
	if !s.ended {
		s.ended = true
		s.close()
	}
	s.mu.Unlock()
	if conn == nil || !tell {
		return
	}
	conn.mu.Lock()
	delete(conn.streams, idKey(id))
	conn.doubt()
	conn.mu.Unlock()
	// The answer to this request does not matter. If the request is lost, the connection has
	// failed, and the subscription with it.
	ctx, cancel := context.WithTimeout(context.Background(), conn.cfg.CallTimeout)
	defer cancel()
	raw, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 0, "method": "un" + s.method, "params": []part{id},
	})
	if err == nil {
		_ = conn.write(ctx, raw)
	}
}

// Subscribe opens a subscription with any method whose name begins with
// "subscribe". T is the type of the updates' values. Subscribe returns when the
// node has accepted the subscription. Until Close, the client then renews the
// subscription on each new connection. A node may limit the number of
// subscriptions.
//
// Subscribe returns ErrUnsupported if the name of the method does not begin
// with "subscribe". Its other errors are those of [Client.Call].
func Subscribe[T any](ctx context.Context, c *Client, method string, params ...any) (*Subscription[T], error) {
	if !strings.HasPrefix(method, "subscribe") {
		return nil, fmt.Errorf("%w: method %q, want one that begins with subscribe", ErrUnsupported, method)
	}
	if params == nil {
		params = []any{}
	}
	s := &Subscription[T]{updates: make(chan Update[T], 1), client: c}
	s.stream = &stream{method: method, params: params, close: func() { close(s.updates) }, offer: func(raw part, err error) {
		u := Update[T]{Err: err}
		if err == nil {
			if err := json.Unmarshal(raw, &u.Value); err != nil {
				u.Err = malformed(method, err)
			}
		}
		// Drop an update that the reader has not taken, and put the new one in its place.
		// Nothing else writes to the channel, because deliver holds the stream's lock.
		select {
		case <-s.updates:
		default:
		}
		s.updates <- u
	}}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.CallTimeout)
	defer cancel()
	conn, err := c.await(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	if err := conn.subscribe(ctx, s.stream); err != nil {
		s.stream.end(true)
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	c.subs[s.stream] = struct{}{}
	// While the node was accepting the subscription, the connection may have been replaced by
	// a new one that does not know it. Close that one too: the client then connects again and
	// renews all subscriptions.
	if c.conn != conn {
		if c.conn != nil {
			c.conn.close()
		}
	}
	return s, nil
}

// endSubscriptions closes all subscriptions when the client closes.
func (c *Client) endSubscriptions() {
	c.mu.Lock()
	c.closed = true
	subs := c.subs
	c.subs = nil
	c.mu.Unlock()
	for s := range subs {
		s.end(false)
	}
}
