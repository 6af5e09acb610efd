package guard

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/bubble"
)

// slow is a service with a large answer and one that does not come.
type slow struct{ release chan struct{} }

func (s *slow) Big() string { return strings.Repeat("0123456789", 1000) }

func (s *slow) Wait() { <-s.release }

// A client has the whole answer to a batch that has timed out while a call of it still runs.
func TestTimeoutOfABatch(t *testing.T) {
	for name, stack := range map[string]func(http.Handler) http.Handler{
		"geth": func(h http.Handler) http.Handler { return node.NewHTTPHandlerStack(h, nil, []string{"*"}, nil, false) },
		"mine": func(h http.Handler) http.Handler { return Compressed(Hosts([]string{"*"}, h)) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				s := &slow{make(chan struct{})}
				calls := rpc.NewServer()
				require.NoError(t, calls.RegisterName("slow", s))
				h := stack(calls)
				server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx, cancel := context.WithTimeout(r.Context(), time.Second)
					defer cancel()
					h.ServeHTTP(w, r.WithContext(ctx))
				})}
				var wire bubble.Wire
				listener := wire.Listen()
				go func() { _ = server.Serve(listener) }()
				defer server.Close()
				defer close(s.release)
				transport := &http.Transport{DialContext: wire.Dial}
				defer transport.CloseIdleConnections()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://node.test", strings.NewReader(
					`[{"jsonrpc":"2.0","id":1,"method":"slow_big"},{"jsonrpc":"2.0","id":2,"method":"slow_wait"}]`))
				require.NoError(t, err)
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept-Encoding", "gzip")
				answer, err := transport.RoundTrip(r)
				require.NoError(t, err)
				defer answer.Body.Close()
				body := io.Reader(answer.Body)
				if answer.Header.Get("Content-Encoding") == "gzip" {
					body, err = gzip.NewReader(body)
					require.NoError(t, err)
				}
				raw, err := io.ReadAll(body)
				require.NoError(t, err)
				require.True(t, json.Valid(raw))
			})
		})
	}
}

// A connection stays usable after an answer that is too large.
func TestConnectionAfterALargeError(t *testing.T) {
	for name, stack := range map[string]func(http.Handler) http.Handler{
		"geth": func(h http.Handler) http.Handler { return node.NewHTTPHandlerStack(h, nil, []string{"*"}, nil, false) },
		"mine": func(h http.Handler) http.Handler { return Compressed(Hosts([]string{"*"}, h)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := &slow{make(chan struct{})}
			server := rpc.NewServer()
			server.SetBatchLimits(100, 15_000)
			require.NoError(t, server.RegisterName("slow", s))
			ts := httptest.NewServer(stack(server))
			defer ts.Close()
			r, err := http.NewRequest(http.MethodPost, ts.URL, strings.NewReader(
				`[{"jsonrpc":"2.0","id":1,"method":"slow_big"},{"jsonrpc":"2.0","id":2,"method":"slow_big"},{"jsonrpc":"2.0","id":3,"method":"slow_big"}]`))
			require.NoError(t, err)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept-Encoding", "gzip")
			resp, err := http.DefaultTransport.RoundTrip(r)
			require.NoError(t, err)
			_, err = io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.False(t, resp.Close, "keep-alive")
		})
	}
}
