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

// slowConn delivers what it receives after a delay, which does not depend on how much
// there is.
type slowConn struct {
	net.Conn
	arrived chan delayed
	rest    []byte
}

type delayed struct {
	raw []byte
	due time.Time
	err error
}

func slow(conn net.Conn, delay time.Duration) net.Conn {
	s := &slowConn{Conn: conn, arrived: make(chan delayed, 1<<16)}
	go func() {
		for {
			raw := make([]byte, 4096)
			n, err := conn.Read(raw)
			s.arrived <- delayed{raw[:n], time.Now().Add(delay), err}
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *slowConn) SetReadDeadline(time.Time) error { return nil }

func (s *slowConn) Read(b []byte) (int, error) {
	if len(s.rest) == 0 {
		d := <-s.arrived
		if d.err != nil {
			return 0, d.err
		}
		time.Sleep(time.Until(d.due))
		s.rest = d.raw
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Behind a proxy that takes 20 s for each answer, with slots of 6 s, a feed with a package
// under watch follows the chain, with notifications and without. Health has no failures;
// Behind and AnswerTime have the distance and its cause.
func TestSlowProxy(t *testing.T) {
	const notified = "with notifications"
	for name, most := range map[string]jamq.Slot{notified: 20, "without notifications": 60} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				const slot, delay = 6 * time.Second, 20 * time.Second
				s := &straight{parameters: tinyParameters(t), head: 1 << 20, calls: map[string]int{}}
				n := startForeignNode(t)
				n.answer = s.answer
				began := time.Now()
				now := func() jamq.Slot { return 9 + jamq.Slot(time.Since(began)/slot) }
				s.override = func(method string, _ []json.RawMessage) string {
					switch method {
					case "finalizedBlock":
						return `"result":` + lineBlock(now()-4)
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
					return slow(conn, delay), nil
				}
				c, err := Open(cfg)
				require.NoError(t, err)
				defer c.Close()
				feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks, SlotDuration: slot})
				require.NoError(t, err)
				feed.Watch(jamq.PackageHash{1}, jamq.RefineContext{Anchor: feed.Root().Hash, LookupAnchorSlot: 1 << 20})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				sink := newViewSink(t, feed)
				go func() { ended <- feed.Follow(ctx, sink) }()
				first := feed.Health().Best
				for i := range 300 {
					if name == notified {
						n.notify(bestID, `"result":`+lineBlock(now()))
					}
					time.Sleep(slot)
					h := feed.Health()
					if i == 150/6 {
						require.Greater(t, h.Best, first, "no block in 150 s")
					}
					if i > 200 {
						require.Zero(t, h.Failures)
						require.LessOrEqual(t, h.Behind, most)
						require.Equal(t, delay, h.AnswerTime)
						require.Equal(t, fmt.Sprintf("behind by %d slots, because each answer takes 20s", h.Behind), h.String())
						require.LessOrEqual(t, now()-h.Best, most+10)
					}
				}
				cancel()
				require.ErrorIs(t, <-ended, context.Canceled)
			})
		})
	}
}
