package jip2

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/bubble"
)

// A node that sends the largest messages, one after the other, costs less than 64 MiB
// of memory, as Config.MaxAnswer says: a message and its garbage take at most half of
// that, and the garbage collector lets it double.
func TestMemoryUnderFloods(t *testing.T) {
	const mebi, messages = 1 << 20, 8
	for name, flood := range map[string]struct{ head, tail string }{
		"update":  {`{"jsonrpc":"2.0","method":"x","params":{"subscription":7,"result":"`, `"}}`},
		"error":   {`{"jsonrpc":"2.0","method":"x","params":{"subscription":7,"error":"`, `"}}`},
		"answer":  {`{"jsonrpc":"2.0","id":2,"result":"`, `"}`},
		"array":   {`{"jsonrpc":"2.0","method":"x","params":[7,"`, `"]}`},
		"batch":   {`[{"jsonrpc":"2.0","method":"x","params":{"subscription":7,"result":"`, `"}}]`},
		"request": {`{"jsonrpc":"2.0","method":"ping","id":"`, `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				var wire bubble.Wire
				sent, over := make(chan struct{}), make(chan struct{})
				defer close(over)
				most := int(DefaultConfig("").MaxAnswer)
				server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
					if err != nil {
						return
					}
					defer ws.Close()
					go func() {
						for _, _, err := ws.ReadMessage(); err == nil; _, _, err = ws.ReadMessage() {
							continue
						}
					}()
					_ = ws.WriteMessage(websocket.TextMessage, []byte(`{"jsonrpc":"2.0","id":1,"result":7}`))
					chunk := []byte(strings.Repeat("A", mebi))
					for {
						m, err := ws.NextWriter(websocket.TextMessage)
						if err != nil {
							return
						}
						_, err = m.Write([]byte(flood.head))
						for left := most - len(flood.head) - len(flood.tail); err == nil && left > 0; left -= len(chunk) {
							_, err = m.Write(chunk[:min(len(chunk), left)])
						}
						_, _ = m.Write([]byte(flood.tail))
						select {
						case sent <- struct{}{}:
						case <-over:
							return
						}
						if err != nil || m.Close() != nil {
							return
						}
					}
				})}
				listener := wire.Listen()
				go func() { _ = server.Serve(listener) }()
				defer server.Close()
				cfg := DefaultConfig("ws://node")
				cfg.Dial = wire.Dial
				c, err := Open(cfg)
				require.NoError(t, err)
				defer c.Close()
				go func() { _, _ = c.SubscribeBestBlock(t.Context()) }()
				<-sent
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for range messages {
					<-sent
				}
				runtime.ReadMemStats(&after)
				each := (after.TotalAlloc - before.TotalAlloc) / messages
				t.Logf("%.1f MiB for each message", float64(each)/mebi)
				require.Less(t, each, uint64(32*mebi))
			})
		})
	}
}
