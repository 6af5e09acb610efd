package jip2

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/bubble"
)

// A message that never ends costs the node its connection, although it arrives in small
// parts and the node answers pings in between.
func TestMessageThatNeverEnds(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		var wire bubble.Wire
		var connections atomic.Int32
		var talking sync.WaitGroup
		defer talking.Wait()
		upgrader := websocket.Upgrader{WriteBufferSize: 64}
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			talking.Add(1)
			defer talking.Done()
			ws, err := upgrader.Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer ws.Close()
			connections.Add(1)
			go func() {
				for _, _, err := ws.ReadMessage(); err == nil; _, _, err = ws.ReadMessage() {
					continue
				}
			}()
			m, err := ws.NextWriter(websocket.TextMessage)
			for part := strings.Repeat(" ", 64); err == nil; _, err = m.Write([]byte(part)) {
				time.Sleep(time.Second)
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
		time.Sleep(5 * cfg.PingInterval)
		require.EqualValues(t, 2, connections.Load())
	})
}
