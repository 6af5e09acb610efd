package jip2

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
)

// TestVaryingDelay follows an honest node behind a proxy in which each request waits for another
// time before the node sees it. All answers are then true although no two of them name the same
// head. The feed keeps up, and takes the node for honest.
func TestVaryingDelay(t *testing.T) {
	const slot, finality, begin = 6 * time.Second, 4, 9
	// A head needs up to three rounds of answers about each of the two heads, some parents, and the
	// states of the blocks, and the next head waits until then.
	const answers = 12
	for _, x := range []struct{ from, to time.Duration }{{2 * time.Second, 12 * time.Second}, {0, 20 * time.Second}, {10 * time.Second, 30 * time.Second}} {
		t.Run(fmt.Sprint(x.from, " to ", x.to), func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				s := &straight{parameters: tinyParameters(t), head: 1 << 20, calls: map[string]int{}}
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
				n := startForeignNode(t)
				n.queued = true
				var mu sync.Mutex
				n.answer = func(method string, params []json.RawMessage) string {
					mu.Lock()
					defer mu.Unlock()
					return s.answer(method, params)
				}
				cfg := DefaultConfig("ws://node.test")
				cfg.CallTimeout, cfg.DialTimeout = time.Minute, time.Minute
				cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					return n.wire.Dial(ctx, network, addr)
				}
				c, err := Open(cfg)
				require.NoError(t, err)
				defer c.Close()
				feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks, SlotDuration: slot})
				require.NoError(t, err)
				random := rand.New(rand.NewPCG(1, 2))
				n.late = func(string) time.Duration { return x.from + time.Duration(random.Int64N(int64(x.to-x.from))) }
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- feed.Follow(ctx, newViewSink(t, feed)) }()
				for i := range 300 {
					n.notify(bestID, `"result":`+lineBlock(now()))
					time.Sleep(slot)
					h := feed.Health()
					require.NoError(t, h.LastError)
					require.Zero(t, h.Contradictions)
					if i > 50 {
						require.LessOrEqual(t, now()-h.Best, jamq.Slot(answers*x.to/slot))
					}
				}
				cancel()
				require.ErrorIs(t, <-ended, context.Canceled)
			})
		})
	}
}
