package jip2

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
)

// A node that invents a new head for each question, whose chain ends before the delivered
// blocks, takes no more memory than one such chain.
func TestInventedHeadsAreForgotten(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		s, c := startStraight(t, 9, 5)
		feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks, MaxGap: 20})
		require.NoError(t, err)
		sink := newViewSink(t, feed)
		require.NoError(t, feed.catchUp(t.Context(), sink))
		heads := uint32(0)
		s.override = func(method string, params []json.RawMessage) string {
			var h Hash
			switch {
			case method == "bestBlock":
				heads++
				return fmt.Sprintf(`"result":{"header_hash":%s,"slot":40}`, quoted(invented(heads, 10)))
			case method == "parent" && json.Unmarshal(params[0], &h) == nil && h[31] > 1:
				h[31]--
				return fmt.Sprintf(`"result":{"header_hash":%s,"slot":%d}`, quoted(h), 30+h[31])
			case method == "parent":
				return `"error":{"code":1,"message":"unknown block"}`
			}
			return ""
		}
		for range 100 {
			require.Error(t, feed.catchUp(t.Context(), sink))
		}
		require.LessOrEqual(t, len(feed.learned), 2*20)
		s.override, s.head = nil, 11
		require.NoError(t, feed.catchUp(t.Context(), sink))
		require.EqualValues(t, 11, sink.view.Best().Slot)
	})
}

// invented is the hash of a block of an invented chain; the last byte is its height.
func invented(chain uint32, height byte) (h Hash) {
	h[0], h[1], h[31] = 0xff, byte(chain), height
	return h
}

// The reason for which a node calls a package failed is not kept for each block of a gap.
func TestReasonsAreNotKept(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		s, c := startStraight(t, 9, 5)
		feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks})
		require.NoError(t, err)
		sink := newViewSink(t, feed)
		require.NoError(t, feed.catchUp(t.Context(), sink))
		feed.Watch(jamq.PackageHash{1}, jamq.RefineContext{Anchor: jamq.HeaderHash(lineHash(9))})
		s.override = func(method string, params []json.RawMessage) string {
			switch {
			case method == "workPackageStatus" && string(params[0]) == quoted(lineHash(19)):
				return noAnswer
			case method == "workPackageStatus":
				return `"result":{"Failed":"` + strings.Repeat("x", maxShape-20) + `"}`
			}
			return ""
		}
		s.head = 19
		require.Error(t, feed.catchUp(t.Context(), sink))
		kept, answers := 0, 0
		for _, l := range feed.learned {
			for _, a := range l.answers {
				answers++
				kept += len(*a.status.Failed)
			}
		}
		require.Equal(t, 9, answers)
		require.Zero(t, kept)
	})
}

// A node without finality that calls the block of zeros final does not stop the feed.
func TestFinalBlockOfZeros(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		s, c := startStraight(t, 9, 5)
		feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks, Root: jamq.Block{Hash: jamq.HeaderHash(lineHash(5)), Slot: 5}})
		require.NoError(t, err)
		sink := newViewSink(t, feed)
		s.override = func(method string, _ []json.RawMessage) string {
			if method == "finalizedBlock" {
				return fmt.Sprintf(`"result":{"header_hash":%s,"slot":0}`, quoted(Hash{}))
			}
			return ""
		}
		require.NoError(t, feed.catchUp(t.Context(), sink))
		require.EqualValues(t, 9, sink.view.Best().Slot)
		require.EqualValues(t, 5, sink.view.Finalized().Slot)
	})
}

// A result without an id is for no call, not even for one that waits alone: some nodes
// answer an unsubscription, whose id is 0, with an id of null.
func TestResultWithoutAnID(t *testing.T) {
	for _, answer := range []string{`{"jsonrpc":"2.0","id":null,"result":true}`, `{"jsonrpc":"2.0","id":null}`} {
		bubble.Run(t, func(t *testing.T) {
			n := startForeignNode(t)
			reached := make(chan struct{})
			n.answer = func(method string, _ []json.RawMessage) string {
				reached <- struct{}{}
				return noAnswer
			}
			c := n.client(t)
			ended := make(chan error, 1)
			go func() { ended <- c.SubmitWorkPackage(t.Context(), 0, []byte{1}, nil) }()
			<-reached
			n.send <- answer
			require.Error(t, <-ended, "no answer has come for the submission, so that it is not accepted")
		})
	}
}

// An error without an id that answers an unsubscription is not for the submission that waits
// alone; with code -32601 it would end bundles until the client is opened again.
func TestErrorWithoutAnIDForAnUnsubscription(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startForeignNode(t)
		reached := make(chan string, 10)
		n.answer = func(method string, _ []json.RawMessage) string {
			reached <- method
			if strings.HasPrefix(method, "submit") {
				return noAnswer
			}
			return ""
		}
		c := n.client(t)
		s, err := c.SubscribeBestBlock(t.Context())
		require.NoError(t, err)
		require.Equal(t, "subscribeBestBlock", <-reached)
		ended := make(chan error, 1)
		go func() { ended <- c.SubmitWorkPackageBundle(t.Context(), 0, []byte{1}) }()
		require.Equal(t, "submitWorkPackageBundle", <-reached)
		s.Close()
		require.Equal(t, "unsubscribeBestBlock", <-reached)
		n.send <- `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`
		err = <-ended
		require.NotErrorIs(t, err, ErrUnsupported)
		require.False(t, c.bundles.missing.Load(), "the node lacks the unsubscription, not bundles")
	})
}

// The error of a call that was given up does not end the next call.
func TestLateErrorWithoutAnID(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startForeignNode(t)
		reached := make(chan struct{})
		n.answer = func(string, []json.RawMessage) string {
			reached <- struct{}{}
			return noAnswer
		}
		c := n.client(t)
		ctx, cancel := context.WithCancel(t.Context())
		given := make(chan error, 1)
		go func() { given <- c.SubmitPreimage(ctx, 1, []byte{1}) }()
		<-reached
		cancel()
		require.ErrorIs(t, <-given, context.Canceled)
		ended := make(chan error, 1)
		go func() {
			_, err := c.BestBlock(t.Context())
			ended <- err
		}()
		<-reached
		n.send <- `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the first is too large"}}`
		n.send <- `{"jsonrpc":"2.0","id":2,` + descriptor(7) + `}`
		require.NoError(t, <-ended)
	})
}

// A node that ends each connection after a malformed message logs each text at most once per
// minute.
func TestLogIsLimitedAcrossConnections(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		var wire bubble.Wire
		var serving sync.WaitGroup // the server does not wait for connections of WebSockets
		defer serving.Wait()
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			serving.Add(1)
			defer serving.Done()
			ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
			if err != nil {
				return
			}
			_ = ws.WriteMessage(websocket.TextMessage, []byte(`{"method":"x","params":[]}`))
			_ = ws.WriteMessage(websocket.TextMessage, []byte(`{"error":"x"}`))
			time.Sleep(time.Second / 2)
			_ = ws.Close()
		})}
		listener := wire.Listen()
		go func() { _ = server.Serve(listener) }()
		defer server.Close()
		var log lockedBuffer
		cfg := DefaultConfig("ws://node.test")
		cfg.Dial, cfg.Logger = wire.Dial, slog.New(slog.NewTextHandler(&log, nil))
		c, err := Open(cfg)
		require.NoError(t, err)
		const minutes = 10
		time.Sleep(minutes * time.Minute)
		c.Close()
		for _, text := range []string{"malformed notification", "not connected"} {
			require.LessOrEqual(t, strings.Count(log.String(), text), minutes+1, text)
		}
	})
}

// The answer of a node to the WebSocket handshake is bounded, in memory and in the log.
func TestEndlessHandshake(t *testing.T) {
	for name, answer := range map[string]struct{ begin, end string }{
		"status": {"HTTP/1.1 403 ", "\r\n\r\n"},
		"header": {"HTTP/1.1 403 Forbidden\r\nA: ", "\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				for size, whole := range map[int]bool{maxHandshake / 2: true, 2 * maxHandshake: false} {
					sent, longest := make(chan int, 1), make(chan int, 10)
					cfg := DefaultConfig("ws://node.test")
					cfg.BackoffBase, cfg.BackoffMax = time.Hour, time.Hour
					cfg.Logger = slog.New(slog.NewTextHandler(lengths(longest), nil))
					cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
						client, node := net.Pipe()
						go func() {
							_, _ = node.Read(make([]byte, 4096)) // the request
							n, _ := node.Write([]byte(answer.begin + strings.Repeat("a", size) + answer.end))
							sent <- n
						}()
						return client, nil
					}
					c, err := Open(cfg)
					require.NoError(t, err)
					n, line := <-sent, <-longest
					c.Close()
					require.Equal(t, whole, n > size, "%d of %d bytes", n, size)
					require.LessOrEqual(t, n, maxHandshake)
					require.Less(t, line, 4096)
				}
			})
		})
	}
}

// lengths receives the length of each line of a log.
type lengths chan int

func (l lengths) Write(p []byte) (int, error) {
	l <- len(p)
	return len(p), nil
}

// headsSink counts the best blocks.
type headsSink struct {
	*viewSink
	n *int
}

func (s headsSink) Import(ctx context.Context, b jamq.Block, best jamq.HeaderHash) error {
	*s.n++
	return s.viewSink.Import(ctx, b, best)
}

// A node whose best block is now one delivered block and then another does not cause a reorg
// for each of its updates: at most 64 in each of ten slots.
func TestBestBlockThatAlternates(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		s := &straight{parameters: tinyParameters(t), head: 9, final: 5, calls: map[string]int{}}
		n := startForeignNode(t)
		n.answer = s.answer
		feed, err := OpenFeed(t.Context(), n.client(t), FeedConfig{Service: marks})
		require.NoError(t, err)
		asked := jamq.Slot(0)
		s.override = func(method string, _ []json.RawMessage) string {
			switch method {
			case "bestBlock":
				asked++
				return fmt.Sprintf(`"result":%s`, lineBlock(8+asked%2))
			case "subscribeBestBlock", "subscribeFinalizedBlock":
				return usual(method)
			}
			return ""
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended, imports := make(chan error, 1), 0
		go func() { ended <- feed.Follow(ctx, headsSink{newViewSink(t, feed), &imports}) }()
		for i := range 50 * 60 {
			n.notify(bestID, descriptor(i))
			time.Sleep(time.Second / 50)
		}
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.LessOrEqual(t, imports, 64*(10+1))
	})
}

// A node that names a new invented head all the time, each with a long chain, takes no more memory
// than the gap that the feed may close, and does not hold up the real chain.
func TestInventedHeadsInNotifications(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const most = 20
		s := &straight{parameters: tinyParameters(t), head: 9, final: 5, calls: map[string]int{}}
		n := startForeignNode(t)
		n.answer = s.answer
		feed, err := OpenFeed(t.Context(), n.client(t), FeedConfig{Service: marks, MaxGap: most})
		require.NoError(t, err)
		s.override = func(method string, params []json.RawMessage) string {
			var h Hash
			switch {
			case method == "subscribeBestBlock", method == "subscribeFinalizedBlock":
				return usual(method)
			case method == "parent" && json.Unmarshal(params[0], &h) == nil && h[0] == 0xff && h[31] > 1:
				h[31]--
				return fmt.Sprintf(`"result":{"header_hash":%s,"slot":%d}`, quoted(h), 10+h[31])
			}
			return ""
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended, sink := make(chan error, 1), newViewSink(t, feed)
		go func() { ended <- feed.Follow(ctx, sink) }()
		for i := range uint32(200) {
			head := invented(i, 80)
			n.notify(bestID, fmt.Sprintf(`"result":{"header_hash":%s,"slot":90}`, quoted(head)))
			time.Sleep(time.Second / 10)
			feed.mu.Lock()
			require.LessOrEqual(t, len(feed.learned), 2*most+maxWalks)
			feed.mu.Unlock()
		}
		require.NoError(t, feed.Health().LastError)
		require.EqualValues(t, 9, feed.Health().Best)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// A node that names the block of zeros as its best block, as its final block of a later slot, or as
// a parent, is a failure for as long as it lasts. It ends nothing.
func TestBlockOfZeros(t *testing.T) {
	const slotDuration, zeros = 6 * time.Second, 40
	for _, wrong := range []string{"bestBlock", "finalizedBlock", "parent"} {
		for _, parent := range []string{`"error":{"code":1,"message":"unknown block"}`, `"result":` + lineBlock(9)} {
			bubble.Run(t, func(t *testing.T) {
				s, c := startStraight(t, 9, 5)
				lostAfter := 0
				if wrong == "parent" { // the node seems to have pruned its blocks
					lostAfter = 2 * zeros
				}
				feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks, SlotDuration: slotDuration, LostAfter: lostAfter})
				require.NoError(t, err)
				sink, began := newViewSink(t, feed), time.Now()
				s.override = func(method string, params []json.RawMessage) string {
					now := jamq.Slot(time.Since(began) / slotDuration)
					s.head, s.final = 9+now, 5+now
					switch {
					case method == "parent" && string(params[0]) == quoted(Hash{}):
						return parent
					case method == wrong && now > 1 && now < zeros:
						return `"result":` + block(Hash{}, 10+now)
					}
					return ""
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- feed.Follow(ctx, sink) }()
				time.Sleep(zeros * slotDuration / 2)
				require.Equal(t, wrong == "finalizedBlock", feed.Health().LastError == nil, "%v", feed.Health().LastError)
				time.Sleep((zeros/2 + 3) * slotDuration)
				h := feed.Health()
				require.True(t, h.Following, "%v", h.LastError)
				require.NoError(t, h.LastError)
				now := jamq.Slot(time.Since(began) / slotDuration)
				require.GreaterOrEqual(t, h.Best+1, 9+now)
				require.GreaterOrEqual(t, h.Finalized+1, 5+now)
				cancel()
				require.ErrorIs(t, <-ended, context.Canceled)
			})
		}
	}
}
