package jip2

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
)

// silentNode returns a node that answers no call but subscriptions.
func silentNode(t *testing.T) (*foreignNode, *Client, chan string) {
	t.Helper()
	n := startForeignNode(t)
	reached := make(chan string, 100)
	n.answer = func(method string, _ []json.RawMessage) string {
		reached <- method
		if strings.HasPrefix(method, "subscribe") {
			return ""
		}
		return noAnswer
	}
	return n, n.client(t), reached
}

// A node that takes the client's refusal for a request, which it cannot read, does not end the
// submission that waits alone.
func TestErrorWithoutAnIDForARefusal(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n, c, reached := silentNode(t)
		ended := make(chan error, 1)
		go func() { ended <- c.SubmitWorkPackageBundle(t.Context(), 0, []byte{1}) }()
		<-reached
		n.send <- `{"jsonrpc":"2.0","id":"p","method":"ping"}`
		<-n.heard
		n.send <- `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`
		n.send <- `{"jsonrpc":"2.0","id":1,"result":null}`
		err := <-ended
		require.NoError(t, err)
		require.False(t, c.bundles.missing.Load())
	})
}

// A server that refuses a request because of its size has no id for it; jsonrpsee's code for
// this is -32007. The error ends the call that waits alone.
func TestErrorWithoutAnIDForATooLargeRequest(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n, c, reached := silentNode(t)
		ended := make(chan error, 1)
		go func() { ended <- c.SubmitWorkPackage(t.Context(), 0, []byte{1}, nil) }()
		<-reached
		begun := time.Now()
		n.send <- `{"jsonrpc":"2.0","id":null,"error":{"code":-32007,"message":"Request is too big"}}`
		err := <-ended
		require.Zero(t, time.Since(begun), "%v", err)
	})
}

// A status line that is no HTTP is bounded in the log.
func TestHandshakeThatIsNotHTTP(t *testing.T) {
	for name, text := range map[string]string{
		"status": strings.Repeat("a", maxHandshake/2) + "\r\n\r\n",
		"code":   "HTTP/1.1 " + strings.Repeat("4", maxHandshake/2) + "\r\n\r\n",
		"header": "HTTP/1.1 403 Forbidden\r\n" + strings.Repeat("a", maxHandshake/2) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				longest := make(chan int, 10)
				cfg := DefaultConfig("ws://node.test")
				cfg.BackoffBase, cfg.BackoffMax = time.Hour, time.Hour
				cfg.Logger = slog.New(slog.NewTextHandler(lengths(longest), nil))
				cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
					client, node := net.Pipe()
					go func() {
						_, _ = node.Read(make([]byte, 4096)) // the request
						_, _ = node.Write([]byte(text))
					}()
					return client, nil
				}
				c, err := Open(cfg)
				require.NoError(t, err)
				line := <-longest
				c.Close()
				require.Less(t, line, 4096)
			})
		})
	}
}

// A package that a host watches with more prerequisites than a report can have does not let the
// node end Follow.
func TestWatchedPackageWithTooManyPrerequisites(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		s, c := startStraight(t, 9, 5)
		feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks})
		require.NoError(t, err)
		sink := newViewSink(t, feed)
		require.NoError(t, feed.catchUp(t.Context(), sink))
		needs := make([]jamq.PackageHash, feed.spec.MaxDependencies+1)
		for i := range needs {
			needs[i] = jamq.PackageHash{1, byte(i)}
		}
		feed.Watch(jamq.PackageHash{1}, jamq.RefineContext{Anchor: jamq.HeaderHash(lineHash(9)), Prerequisites: needs})
		s.override = func(method string, _ []json.RawMessage) string {
			if method == "workPackageStatus" {
				return `"result":{"Reported":{"reported_in":` + lineBlock(10) + `,"core":0,"report_hash":` + quoted(Hash{1}) + `}}`
			}
			return ""
		}
		s.head = 10
		require.ErrorIs(t, feed.catchUp(t.Context(), sink), ErrMalformed, "the node contradicts the rules")
	})
}
