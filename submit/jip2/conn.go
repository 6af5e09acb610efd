package jip2

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/jamq/jamq/internal/feed"
)

// conn is one WebSocket connection of a [Client]. It passes the node's answers to the calls that
// wait for them, and the node's updates to the subscriptions. Only one goroutine may run read; the
// other methods are safe for concurrent use.
type conn struct {
	ws      *websocket.Conn
	log     *slog.Logger
	cfg     *Config
	closed  chan struct{}
	closing sync.Once

	// malformed limits how often malformed messages are logged. All connections of
	// a client share it, because a node could break the connection after each
	// malformed message.
	malformed *feed.Seldom

	// partly is true while a message has arrived only in part. The read deadline is
	// not extended meanwhile; see extendDeadline.
	partly bool

	writing sync.Mutex

	mu      sync.Mutex
	lastID  uint64
	pending map[uint64]*request
	streams map[string]*stream // keys are made by idKey
	early   earlyUpdates
	failed  error
	// doubted is when something last happened because of which an error without an id may
	// belong to no waiting call, for example when a call was given up; see doubt. Until
	// doubtTime has passed, such an error is not passed to a waiting call.
	doubted time.Time
}

// request is a call that was sent to the node and waits for its answer.
type request struct {
	answer chan answered // capacity 1
	// stream is the subscription that the call opens, or nil. The reading goroutine
	// registers it with the answer, because a notification may follow immediately.
	stream *stream
	// done is closed when the call no longer needs the memory of the answer.
	done chan struct{}
}

type answered struct {
	result part
	err    error
}

// message is any JSON-RPC message that a node sends: an answer, a notification or a request. Error
// and Params are decoded only when it is known which call or subscription they are for. A malformed
// part then affects only this receiver and not the whole connection.
type message struct {
	ID     part   `json:"id"`
	Result part   `json:"result"`
	Error  part   `json:"error"`
	Method string `json:"method"`
	Params part   `json:"params"`
}

// part is a piece of JSON inside a message that is decoded later. Unlike
// json.RawMessage, it shares the memory of the message, so that a large message
// takes only its own size of memory. Sharing is safe because encoding/json, also
// with GOEXPERIMENT=jsonv2, never changes the text that it passes to UnmarshalJSON.
type part []byte

func (p *part) UnmarshalJSON(raw []byte) error {
	*p = raw
	return nil
}

// MarshalJSON returns the part unchanged.
func (p part) MarshalJSON() ([]byte, error) { return p, nil }

// idKey returns the text of a JSON-RPC id without quotes, as a map key.
func idKey(id part) string {
	// Some nodes send the same id as a number in one message and as a string in
	// another.
	if n := len(id); n > 2 && id[0] == '"' && id[n-1] == '"' {
		return string(id[1 : n-1])
	}
	return string(id)
}

func newConn(ws *websocket.Conn, cfg *Config, log *slog.Logger, malformed *feed.Seldom) *conn {
	c := &conn{
		ws: ws, cfg: cfg, log: log, malformed: malformed, closed: make(chan struct{}),
		pending: make(map[uint64]*request), streams: make(map[string]*stream),
	}
	ws.SetReadLimit(cfg.MaxAnswer)
	ws.SetPongHandler(func(string) error { return c.extendDeadline() })
	return c
}

// extendDeadline moves the read deadline to three ping intervals from now.
func (c *conn) extendDeadline() error {
	// A message has begun and not ended. Without this check, a node could answer all pings
	// while it sends one message forever, and no call would ever get an answer.
	if c.partly {
		return nil
	}
	return c.ws.SetReadDeadline(time.Now().Add(3 * c.cfg.PingInterval))
}

// close closes the connection, which ends the reading goroutine.
func (c *conn) close() {
	c.closing.Do(func() {
		close(c.closed)
		_ = c.ws.Close()
	})
}

// ping sends a ping in each interval until the connection is closed.
func (c *conn) ping() {
	ticker := time.NewTicker(c.cfg.PingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			// A failed ping shows that the node has disappeared, even if no call is
			// running.
			if err := c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(c.cfg.PingInterval)); err != nil {
				c.close()
				return
			}
		case <-c.closed:
			return
		}
	}
}

// read receives the node's messages and passes them on until an error.
func (c *conn) read() error {
	defer c.close()
	for {
		if err := c.extendDeadline(); err != nil {
			return err
		}
		raw, err := c.receive()
		if err == nil {
			err = c.take(raw)
		}
		if err != nil {
			return err
		}
	}
}

// receive returns the node's next message.
func (c *conn) receive() ([]byte, error) {
	kind, message, err := c.ws.NextReader()
	if err != nil {
		return nil, err
	}
	if kind != websocket.TextMessage {
		return nil, fmt.Errorf("%w: a message that is not text", ErrMalformed)
	}
	c.partly = true
	defer func() { c.partly = false }()
	for raw := make([]byte, 0, 512); ; {
		n, err := message.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		switch {
		case errors.Is(err, io.EOF):
			return raw, nil
		case err != nil:
			return nil, err
		// Double the buffer. ReadMessage of the WebSocket library would leave more
		// garbage for a large message, and bytes.Buffer allocates each size twice
		// under the race detector.
		case len(raw) == cap(raw):
			grown := make([]byte, len(raw), 2*cap(raw))
			copy(grown, raw)
			raw = grown
		}
	}
}

// take passes a message of the node to the waiting call or subscription.
func (c *conn) take(raw []byte) error {
	batch, isArray := elements(raw, maxBatch)
	switch {
	case !isArray:
		return c.takeOne(raw)
	case len(batch) == 0:
		return fmt.Errorf("%w: a batch with no message, or with more than %d", ErrMalformed, maxBatch)
	}
	// Drop the messages of a batch that are not JSON-RPC, and pass on the others.
	for _, one := range batch {
		if err := c.takeOne(one); err != nil {
			c.malformed.Do(func() { c.log.Warn("ignored a part of a batch of the JAM node", "err", err) })
		}
	}
	return nil
}

// maxBatch is the maximum number of messages in a batch.
const maxBatch = 1024

// elements returns the elements of a JSON array; isArray is false for other JSON.
func elements(raw []byte, most int) (list []part, isArray bool) {
	if text := bytes.TrimLeft(raw, " \t\r\n"); len(text) == 0 || text[0] != '[' {
		return nil, false
	}
	// An array of fixed size bounds the memory that many tiny elements take.
	var all [maxBatch + 1]part // later ones are skipped
	if json.Unmarshal(raw, &all) != nil {
		return nil, true
	}
	n := slices.IndexFunc(all[:], func(one part) bool { return one == nil })
	// The array has more elements than the caller accepts.
	if n < 0 || n > most {
		return nil, true
	}
	return all[:n], true
}

// takeOne passes one message to its call or subscription, or drops it.
func (c *conn) takeOne(raw []byte) error {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return fmt.Errorf("%w: %.100q is not JSON-RPC: %w", ErrMalformed, raw, err)
	}
	switch {
	case m.Method != "" && present(m.ID):
		if err := checkSize("id of a request", m.ID); err != nil {
			return err
		}
		c.refuse(&m)
	case m.Method != "" || present(m.Params):
		c.notify(&m)
	case m.ID != nil || present(m.Error):
		c.answer(&m)
	}
	return nil
}

// refuse answers a request from the node with an error.
func (c *conn) refuse(m *message) {
	c.mu.Lock()
	c.doubt()
	c.mu.Unlock()
	// A client offers no methods, but the node may wait for an answer.
	raw, err := json.Marshal(struct {
		Version string `json:"jsonrpc"`
		ID      part   `json:"id"`
		Error   Error  `json:"error"`
	}{"2.0", m.ID, Error{Code: CodeMethodNotFound, Message: "the client has no methods"}})
	if err == nil {
		_ = c.write(context.Background(), raw) // a failure closes the connection
	}
}

// callOf converts the id of an answer to the number of the client's call.
func callOf(id part) (uint64, bool) {
	text := idKey(id)
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n, true
	}
	// Some nodes return a number with a fraction of zero, such as 7.0.
	n, err := strconv.ParseFloat(text, 64)
	return uint64(n), err == nil && n >= 0 && n < 1<<53 && n == math.Trunc(n)
}

// takeCall removes and returns the call that waits for an answer, or returns nil.
func (c *conn) takeCall(m *message, refused *Error) *request {
	// The caller holds c.mu.
	id, ok := callOf(m.ID)
	// If a node cannot read a request, it answers with an error that has no id. If only one
	// call is waiting, the error belongs to this call, unless something else may have caused
	// it.
	if !present(m.ID) && refused != nil {
		id, ok = c.lone()
	}
	if !ok {
		return nil
	}
	r := c.pending[id]
	delete(c.pending, id)
	return r
}

// lone returns the only waiting call if an error must belong to it.
func (c *conn) lone() (id uint64, certain bool) {
	// The caller holds c.mu.
	if len(c.pending) != 1 || time.Since(c.doubted) < doubtTime {
		c.doubt() // the next such error may be for the same message
		return 0, false
	}
	for id = range c.pending {
		certain = true
	}
	return id, certain
}

// doubtTime is how long an error without an id may still belong to something else than a
// waiting call: see doubt. It is longer than a node should need for an answer.
const doubtTime = time.Minute

// doubt records that an error without an id may belong to no waiting call. The
// error may be about a call that was given up, an unsubscription, or an answer to
// the node. The caller holds c.mu.
func (c *conn) doubt() { c.doubted = time.Now() }

// answer passes a result to the call that waits for it, or drops the result.
func (c *conn) answer(m *message) {
	a := answered{result: m.Result}
	large := len(m.Result) > maxShape
	// Copy a small result, so that the rest of its message can be freed.
	if !large {
		a.result = bytes.Clone(m.Result)
	}
	refused := errorOf(m.Error)
	if refused != nil {
		a = answered{err: refused}
	}
	var early *notification
	c.mu.Lock()
	r := c.takeCall(m, refused)
	if r != nil && r.stream != nil && a.err == nil {
		if a.err = c.attach(r.stream, a.result); a.err == nil {
			early = c.takeEarly(r.stream.method, a.result)
		}
	}
	c.mu.Unlock()
	if early != nil {
		c.pass(early, r.stream)
	}
	if r == nil {
		if refused != nil && !present(m.ID) {
			c.malformed.Do(func() { c.log.Warn("the JAM node sent an error without an id", "err", a.err) })
		}
		return
	}
	r.answer <- a
	// A large result takes much memory until its call has decoded it. Wait for that, so that
	// only one such result is in memory at a time.
	if large {
		<-r.done
	}
}

// attach registers a subscription under the id that the node gave it.
func (c *conn) attach(s *stream, id part) error {
	const most = 256
	// The id stays in memory as long as the subscription does, so it must not be
	// long.
	if len(id) > most {
		return fmt.Errorf("%w: id of a subscription of %d bytes, want at most %d", ErrMalformed, len(id), most)
	}
	// The caller holds c.mu.
	c.streams[idKey(id)] = s
	s.attached(c, id)
	return nil
}

// fail ends all pending calls, and makes later calls fail, with ErrDisconnected.
func (c *conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = fmt.Errorf("%w: %w", ErrDisconnected, err)
	for id, r := range c.pending {
		delete(c.pending, id)
		r.answer <- answered{err: c.failed}
	}
}

// call sends a request, waits for the answer, and decodes the result into into.
func (c *conn) call(ctx context.Context, into any, stream *stream, method string, params []any) error {
	if params == nil {
		params = []any{}
	}
	// stream is the subscription that the request opens; nil for any other request.
	r := &request{answer: make(chan answered, 1), stream: stream, done: make(chan struct{})}
	defer close(r.done)
	c.mu.Lock()
	if c.failed != nil {
		c.mu.Unlock()
		return c.failed
	}
	c.lastID++
	id := c.lastID
	c.pending[id] = r
	c.mu.Unlock()
	forget := func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}
	raw, err := json.Marshal(struct {
		Version string `json:"jsonrpc"`
		ID      uint64 `json:"id"`
		Method  string `json:"method"`
		Params  []any  `json:"params"`
	}{"2.0", id, method, params})
	if err == nil && int64(len(raw)) > c.cfg.MaxRequest {
		err = fmt.Errorf("%w: %d bytes, want at most %d", ErrTooLarge, len(raw), c.cfg.MaxRequest)
	}
	if err == nil {
		err = c.write(ctx, raw)
	}
	if err != nil {
		forget()
		return err
	}
	select {
	case a := <-r.answer:
		if a.err != nil || into == nil {
			return a.err
		}
		if err := json.Unmarshal(a.result, into); err != nil {
			return malformed("result", err)
		}
		return nil
	case <-ctx.Done():
		c.mu.Lock()
		c.doubt()
		c.mu.Unlock()
		forget()
		return fmt.Errorf("no answer: %w", ctx.Err())
	}
}

// write sends one message.
func (c *conn) write(ctx context.Context, raw []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if ctx.Err() != nil {
		return fmt.Errorf("not sent: %w", ctx.Err())
	}
	// A message that was written in part would make the connection useless for all other
	// calls. A caller that gives up must therefore not stop the write.
	err := c.ws.SetWriteDeadline(time.Now().Add(c.cfg.CallTimeout))
	if err == nil {
		err = c.ws.WriteMessage(websocket.TextMessage, raw)
	}
	if err != nil {
		c.close()
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	return nil
}

// subscribe opens a subscription on this connection.
func (c *conn) subscribe(ctx context.Context, s *stream) error {
	return c.call(ctx, nil, s, s.method, s.params)
}
