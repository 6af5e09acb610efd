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

// statusSink records in which slots packages were reported and accumulated.
type statusSink struct {
	*viewSink
	reported, accumulated map[jamq.PackageHash]jamq.Slot
}

func (s statusSink) Import(ctx context.Context, b jamq.Block, best jamq.HeaderHash) error {
	for _, r := range b.Reported {
		s.reported[r.Package] = b.Slot
	}
	for _, pkg := range b.Accumulated {
		s.accumulated[pkg] = b.Slot
	}
	return s.viewSink.Import(ctx, b, best)
}

// The statuses of many packages arrive in time although each takes 20 s, also if all other answers
// are quick or calls of the host fail at once. The feed delivers every report and accumulation in
// its block.
func TestSlowStatuses(t *testing.T) {
	const slot, delay, finality, begin, packages, slots, most = 6 * time.Second, 20 * time.Second, 4, 9, 60, 100, 20
	reportedIn := func(i int) jamq.Slot { return jamq.Slot(begin + 8 + i) }
	for name, slow := range map[string]func(method string) bool{
		"all answers": func(string) bool { return true }, "only statuses": func(m string) bool { return m == "workPackageStatus" },
		"only values": func(m string) bool { return m == "serviceValue" },
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				s := &straight{parameters: tinyParameters(t), head: 1 << 20, calls: map[string]int{}}
				n := startForeignNode(t)
				n.answer = s.answer
				began := time.Now()
				now := func() jamq.Slot { return begin + jamq.Slot(time.Since(began)/slot) }
				s.override = func(method string, params []json.RawMessage) string {
					var at Hash
					var raw []byte
					if len(params) > 2 {
						_, _ = json.Unmarshal(params[0], &at), json.Unmarshal(params[len(params)-1], &raw)
					}
					switch method {
					case "finalizedBlock":
						return `"result":` + lineBlock(now()-finality)
					case "bestBlock":
						return `"result":` + lineBlock(now())
					case "serviceValue":
						if len(raw) == 32 && lineSlot(at) >= reportedIn(int(raw[0]))+2 {
							return `"result":"AQ=="`
						}
					case "workPackageStatus":
						var pkg Hash
						if _ = json.Unmarshal(params[1], &pkg); pkg[1] == 0 {
							return ""
						}
						in := reportedIn(int(pkg[0]))
						report := fmt.Sprintf(`"reported_in":%s,"core":%d,"report_hash":%s`, lineBlock(in), in%2, quoted(pkg))
						switch {
						case lineSlot(at) == in:
							return `"result":{"Reported":{` + report + `}}`
						case lineSlot(at) > in:
							return `"result":{"Ready":{` + report + `,"ready_in":` + lineBlock(in+1) + `}}`
						}
					}
					return ""
				}
				cfg := DefaultConfig("ws://node.test")
				cfg.CallTimeout, cfg.MaxRequest, cfg.Dial = time.Minute, minMessage, n.wire.Dial
				c, err := Open(cfg)
				require.NoError(t, err)
				defer c.Close()
				service := Service{ID: 9, Key: func(pkg jamq.PackageHash) []byte { return pkg[:] }, Taken: marks.Taken}
				feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: service, SlotDuration: slot})
				require.NoError(t, err)
				n.late = func(method string) time.Duration {
					if slow(method) {
						return delay
					}
					return 0
				}
				for i := range packages {
					at := reportedIn(i) - 2
					feed.Watch(jamq.PackageHash{byte(i), 1}, jamq.RefineContext{Anchor: jamq.HeaderHash(lineHash(at)), AnchorSlot: at, LookupAnchorSlot: 1 << 20})
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				sink := statusSink{newViewSink(t, feed), map[jamq.PackageHash]jamq.Slot{}, map[jamq.PackageHash]jamq.Slot{}}
				go func() { ended <- feed.Follow(ctx, sink) }()
				for i := range jamq.Slot(slots) {
					n.notify(bestID, `"result":`+lineBlock(now()))
					time.Sleep(slot)
					require.Error(t, c.SubmitPreimage(ctx, 1, make([]byte, cfg.MaxRequest)), "too large")
					h := feed.Health()
					require.NoError(t, h.LastError)
					require.Zero(t, h.Contradictions)
					if i > 2*most {
						require.LessOrEqual(t, now()-h.Best, jamq.Slot(most), "in slot %d", i)
						require.GreaterOrEqual(t, h.AnswerTime, delay)
					}
				}
				cancel()
				require.ErrorIs(t, <-ended, context.Canceled)
				for i := range packages {
					pkg := jamq.PackageHash{byte(i), 1}
					require.Equal(t, reportedIn(i), sink.reported[pkg], "package %d", i)
					require.Equal(t, reportedIn(i)+2, sink.accumulated[pkg], "package %d", i)
				}
			})
		})
	}
}
