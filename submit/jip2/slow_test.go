package jip2

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
)

// lateConn is a connection through a slow proxy: each byte can be read a delay after it was sent,
// however many there are.
type lateConn struct {
	net.Conn
	sent chan sentBytes
	rest []byte
}

type sentBytes struct {
	raw []byte
	at  time.Time
	err error
}

func late(conn net.Conn, delay time.Duration) net.Conn {
	l := &lateConn{Conn: conn, sent: make(chan sentBytes, 1<<16)}
	go func() {
		for {
			raw := make([]byte, 4096)
			n, err := conn.Read(raw)
			l.sent <- sentBytes{raw[:n], time.Now().Add(delay), err}
			if err != nil {
				return
			}
		}
	}()
	return l
}

// SetReadDeadline has no effect, because the bytes are read by another goroutine.
func (l *lateConn) SetReadDeadline(time.Time) error { return nil }

func (l *lateConn) Read(b []byte) (int, error) {
	if len(l.rest) == 0 {
		s := <-l.sent
		if s.err != nil {
			return 0, s.err
		}
		time.Sleep(time.Until(s.at))
		l.rest = s.raw
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// Behind a proxy that takes 20 s for each answer, while a slot lasts 6 s, a feed that watches
// packages delivers every block, with notifications of the node and without. The distance
// to the chain is bounded, and Health has it and its cause.
func TestSlowProxy(t *testing.T) {
	const slot, delay, finality, begin = 6 * time.Second, 20 * time.Second, 4, 9
	for _, x := range []struct {
		notified    bool
		first, most int // slots until the first block, and behind the chain later
	}{{true, 25, 16}, {false, 45, 16}} {
		t.Run(fmt.Sprint("with notifications: ", x.notified), func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				s := &straight{parameters: tinyParameters(t), head: 1 << 20, calls: map[string]int{}}
				n := startForeignNode(t)
				n.answer = s.answer
				began := time.Now()
				now := func() jamq.Slot { return begin + jamq.Slot(time.Since(began)/slot) }
				s.override = func(method string, _ []json.RawMessage) string {
					switch method {
					case "finalizedBlock":
						return `"result":` + lineBlock(now()-finality)
					case "bestBlock":
						return `"result":` + lineBlock(now())
					}
					return ""
				}
				cfg := DefaultConfig("ws://node.test")
				cfg.CallTimeout, cfg.DialTimeout = time.Minute, time.Minute
				cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := n.wire.Dial(ctx, network, addr)
					if err != nil {
						return nil, err
					}
					return late(conn, delay), nil
				}
				c, err := Open(cfg)
				require.NoError(t, err)
				defer c.Close()
				feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks, SlotDuration: slot})
				require.NoError(t, err)
				for i := range 8 {
					feed.Watch(jamq.PackageHash{byte(i + 1)}, jamq.RefineContext{Anchor: feed.Root().Hash, LookupAnchorSlot: 1 << 20})
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				sink := newViewSink(t, feed)
				go func() { ended <- feed.Follow(ctx, sink) }()
				root, largest := feed.Root(), jamq.Slot(0)
				for i := range 600 {
					if x.notified {
						n.notify(bestID, `"result":`+lineBlock(now()))
						n.notify(finalID, `"result":`+lineBlock(now()-finality))
					}
					time.Sleep(slot)
					h := feed.Health()
					require.NoError(t, h.LastError)
					require.Zero(t, h.Failures)
					if i < x.first {
						continue
					}
					require.Greater(t, h.Best, root.Slot, "no block in %d slots", i)
					if i < 4*x.first {
						continue
					}
					largest = max(largest, now()-h.Best)
					require.Equal(t, delay, h.AnswerTime)
					require.LessOrEqual(t, h.Behind, now()-h.Best)
					if h.Behind > 0 {
						require.Equal(t, fmt.Sprintf("behind by %d slots; each answer takes 20s", h.Behind), h.String())
					}
				}
				require.LessOrEqual(t, largest, jamq.Slot(x.most))
				best := sink.view.Best()
				require.EqualValues(t, best.Slot-root.Slot, best.Height, "every block was delivered")
				require.Greater(t, sink.view.Finalized().Slot, jamq.Slot(500))
				cancel()
				require.ErrorIs(t, <-ended, context.Canceled)
			})
		})
	}
}
