package jip2

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/bubble"
)

// foreignNode is a node that shares no code with the simulated one: a WebSocket
// that answers two subscriptions and sends the texts that a test gives it.
type foreignNode struct {
	wire        bubble.Wire
	connections atomic.Int32
	send        chan string
	// answer, if not nil, returns `"result":…` or `"error":…` for a call, or ""
	// for the default.
	answer func(method string, params []json.RawMessage) string
	// late, if not nil, returns how long the answer to a method takes.
	late func(method string) time.Duration
	// queued is true if that time passes before the node answers, so that the answer is true when
	// it arrives and not when the request arrived.
	queued bool
	// heard has the messages of the client that are no calls.
	heard chan string
}

// noAnswer is returned by foreignNode.answer for a call that gets no answer.
const noAnswer = "none"

// The ids that the node gives to the two subscriptions.
const (
	bestID  = `7`
	finalID = `"eight"`
)

func startForeignNode(t *testing.T) *foreignNode {
	t.Helper()
	n := &foreignNode{send: make(chan string), heard: make(chan string, 100)}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		n.connections.Add(1)
		n.talk(ws)
	})}
	listener := n.wire.Listen()
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return n
}

// talk answers requests and sends what the test wants, until the connection ends.
func (n *foreignNode) talk(ws *websocket.Conn) {
	requests := make(chan string)
	gone := make(chan struct{})
	defer close(gone)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			_, raw, err := ws.ReadMessage()
			if err != nil {
				return
			}
			took, text := n.delay(raw), ""
			if !n.queued || took == 0 {
				text = n.reply(raw)
			}
			answer := func() {
				if n.queued && took > 0 {
					text = n.reply(raw)
				}
				select {
				case requests <- text:
				case <-gone:
				}
			}
			if took > 0 {
				time.AfterFunc(took, answer)
			} else {
				answer()
			}
		}
	}()
	for {
		select {
		case <-ended:
			return
		case text := <-requests:
			if text != "" && ws.WriteMessage(websocket.TextMessage, []byte(text)) != nil {
				return
			}
		case text := <-n.send:
			if ws.WriteMessage(websocket.TextMessage, []byte(text)) != nil {
				return
			}
		}
	}
}

// delay returns how long the answer to a request takes.
func (n *foreignNode) delay(raw []byte) time.Duration {
	var request struct{ Method string }
	if n.late == nil || json.Unmarshal(raw, &request) != nil {
		return 0
	}
	return n.late(request.Method)
}

// reply returns the answer to a request, or "" if there is none.
func (n *foreignNode) reply(raw []byte) string {
	var request struct {
		ID     json.RawMessage
		Method string
		Params []json.RawMessage
	}
	if err := json.Unmarshal(raw, &request); err != nil {
		return err.Error()
	}
	if request.Method == "" {
		n.heard <- string(raw)
		return ""
	}
	result := ""
	if n.answer != nil {
		result = n.answer(request.Method, request.Params)
	}
	if result == noAnswer {
		return ""
	}
	if result == "" {
		result = usual(request.Method)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, request.ID, result)
}

func usual(method string) string {
	result := `"result":null`
	switch method {
	case "subscribeBestBlock":
		result = `"result":` + bestID
	case "subscribeFinalizedBlock":
		result = `"result":` + finalID
	case "bestBlock":
		result = `"error":"no block yet"`
	}
	return result
}

// client returns a client of the node.
func (n *foreignNode) client(t *testing.T) *Client {
	t.Helper()
	cfg := DefaultConfig("ws://node.test")
	cfg.Dial = n.wire.Dial
	cfg.BackoffBase, cfg.BackoffMax = time.Millisecond, 20*time.Millisecond
	c, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func (n *foreignNode) notify(id, what string) {
	n.send <- fmt.Sprintf(`{"jsonrpc":"2.0","method":"subscribe","params":{"subscription":%s,%s}}`, id, what)
}

func descriptor[N int | uint32](slot N) string {
	return fmt.Sprintf(`"result":{"header_hash":"AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","slot":%d}`, slot)
}

// update returns the next update of a subscription.
func update[T any](t *testing.T, s *Subscription[T]) T {
	t.Helper()
	select {
	case u, ok := <-s.Updates():
		require.True(t, ok, "closed")
		require.NoError(t, u.Err)
		return u.Value
	case <-time.After(24 * time.Hour):
		t.Fatal("no update")
		panic("unreachable")
	}
}

// nextUpdate returns the next update of a subscription, with its error.
func nextUpdate[T any](t *testing.T, s *Subscription[T]) Update[T] {
	t.Helper()
	select {
	case u, open := <-s.Updates():
		require.True(t, open)
		return u
	case <-time.After(24 * time.Hour):
		t.Fatal("no update")
		panic("unreachable")
	}
}

// The error of a notification is a string. It concerns one subscription, and the connection stays.
func TestErrorOfSubscription(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startForeignNode(t)
		var log lockedBuffer
		cfg := DefaultConfig("ws://node.test")
		cfg.Dial = n.wire.Dial
		cfg.BackoffBase, cfg.BackoffMax = time.Millisecond, 20*time.Millisecond
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c, err := Open(cfg)
		require.NoError(t, err)
		defer c.Close()
		best, err := c.SubscribeBestBlock(t.Context())
		require.NoError(t, err)
		final, err := c.SubscribeFinalizedBlock(t.Context())
		require.NoError(t, err)

		for i, x := range []struct{ sent, message string }{
			{`"block is not available"`, "block is not available"},
			{`{"code":1,"message":"an object","data":"x"}`, "an object"},
			{`{"code":"1","message":"a code that is text"}`, `{"code":"1","message":"a code that is text"}`},
			{`17`, `17`},
			{`["a","list"]`, `["a","list"]`},
			{`false`, `false`},
			{`""`, ``},
		} {
			n.notify(bestID, `"error":`+x.sent)
			u := nextUpdate(t, best)
			var refused *Error
			require.ErrorAs(t, u.Err, &refused, x.sent)
			require.Equal(t, x.message, refused.Message)
			n.notify(bestID, descriptor(i))
			u = nextUpdate(t, best)
			require.NoError(t, u.Err, "the subscription goes on after %s", x.sent)
			require.EqualValues(t, i, u.Value.Slot)
			n.notify(finalID, `"error":null,`+descriptor(i))
			u = nextUpdate(t, final)
			require.NoError(t, u.Err, "the other subscription sees nothing of %s", x.sent)
			require.EqualValues(t, i, u.Value.Slot)
		}
		for _, params := range []string{`["a","list"]`, `"text"`, `4`, `{"subscription":{"id":1},"error":"nobody's"}`, `{"subscription":99}`} {
			n.send <- fmt.Sprintf(`{"jsonrpc":"2.0","method":"subscribeBestBlock","params":%s}`, params)
		}
		n.notify(bestID, descriptor(77))
		require.EqualValues(t, 77, nextUpdate(t, best).Value.Slot)
		_, err = c.BestBlock(t.Context())
		var refused *Error
		require.ErrorAs(t, err, &refused, "an answer whose error is a string")
		require.Equal(t, "no block yet", refused.Message)

		require.EqualValues(t, 1, n.connections.Load())
		require.Contains(t, log.String(), "block is not available")
		require.NotContains(t, log.String(), "not connected")
	})
}

// lockedBuffer is a log that a test reads while the client writes.
type lockedBuffer struct {
	mu  sync.Mutex
	raw bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.raw.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.raw.String()
}
