package jip2

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/submit"
)

func TestMethods(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t, nil)
		c := n.client(nil)
		ctx := t.Context()
		u := n.step(4)
		p, err := c.Parameters(ctx)
		require.NoError(t, err)
		spec, err := p.Spec("tiny")
		require.NoError(t, err)
		require.Equal(t, jamq.Tiny(), spec)
		best, err := c.BestBlock(ctx)
		require.NoError(t, err)
		require.Equal(t, BlockDescriptor{Hash(u.Best), 4}, best)
		final, err := c.FinalizedBlock(ctx)
		require.NoError(t, err)
		require.Equal(t, Hash(u.Finalized), final.HeaderHash)
		parent, err := c.Parent(ctx, u.Best)
		require.NoError(t, err)
		require.Equal(t, jamq.Slot(3), parent.Slot)
		context := n.context(1)
		root, err := c.StateRoot(ctx, context.Anchor)
		require.NoError(t, err)
		require.Equal(t, Hash(context.StateRoot), root)
		root, err = c.BeefyRoot(ctx, context.Anchor)
		require.NoError(t, err)
		require.Equal(t, Hash(context.BeefyRoot), root)
		state, err := c.SyncState(ctx)
		require.NoError(t, err)
		require.Equal(t, "Completed", state.Status)

		_, err = c.Parent(ctx, jamq.HeaderHash{1})
		var e *Error
		require.ErrorAs(t, err, &e)
		missing, ok := e.Block()
		require.True(t, ok)
		require.Equal(t, Hash{1}, missing)

		raw, hash := encode(t, context, 1, "one")
		status, err := c.WorkPackageStatus(ctx, u.Best, hash, context.Anchor)
		require.NoError(t, err)
		require.Equal(t, uint32(7), status.Reportable.RemainingBlocks)
		require.NoError(t, c.SubmitWorkPackage(ctx, 1, raw, nil))
		u = n.step(2)
		status, err = c.WorkPackageStatus(ctx, u.Best, hash, context.Anchor)
		require.NoError(t, err)
		require.Equal(t, Hash(u.Best), status.Ready.ReadyIn.HeaderHash)
		require.Equal(t, jamq.CoreIndex(1), status.Ready.Core)
		value, err := c.ServiceValue(ctx, u.Best, 9, hash[:])
		require.NoError(t, err)
		require.Equal(t, []byte{6, 0, 0, 0}, value)
		value, err = c.ServiceValue(ctx, u.Best, 9, nil)
		require.NoError(t, err)
		require.Nil(t, value)

		context = n.context(1)
		raw, hash = encode(t, context, 1, "a bundle without extrinsics is its package")
		require.NoError(t, c.SubmitWorkPackageBundle(ctx, 0, raw))
		u = n.step(1)
		status, err = c.WorkPackageStatus(ctx, u.Best, hash, context.Anchor)
		require.NoError(t, err)
		require.NotNil(t, status.Reported)
	})
}

func TestSubscriptions(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t, nil)
		c := n.client(nil)
		ctx := t.Context()
		n.step(3)
		best, err := c.SubscribeBestBlock(ctx)
		require.NoError(t, err)
		final, err := c.SubscribeFinalizedBlock(ctx)
		require.NoError(t, err)
		require.Equal(t, jamq.Slot(3), update(t, best).Slot, "the first value comes by itself")
		context := n.context(1)
		raw, hash := encode(t, context, 1, "one")
		status, err := c.SubscribeWorkPackageStatus(ctx, hash, context.Anchor, false)
		require.NoError(t, err)
		value, err := c.SubscribeServiceValue(ctx, 9, hash[:], true)
		require.NoError(t, err)
		require.NotNil(t, update(t, status).Value.Reportable)
		require.NoError(t, c.SubmitWorkPackage(ctx, 0, raw, nil))
		n.step(1)
		until(t, status, func(u ChainSubUpdate[WorkPackageStatus]) bool { return u.Value.Reported != nil && u.Slot == 4 })
		n.step(3)
		until(t, status, func(u ChainSubUpdate[WorkPackageStatus]) bool { return u.Value.Ready != nil })
		taken := until(t, value, func(u ChainSubUpdate[*[]byte]) bool { return u.Value != nil })
		require.Equal(t, uint32(5), binary.LittleEndian.Uint32(*taken.Value))
		require.Equal(t, jamq.Slot(5), taken.Slot)
		until(t, final, func(d BlockDescriptor) bool { return d.Slot == 5 })
		until(t, best, func(d BlockDescriptor) bool { return d.Slot == 7 })

		status.Close()
		status.Close()
		_, open := <-status.Updates()
		for open {
			_, open = <-status.Updates()
		}
		bubble.Await(t, time.Millisecond, func() bool { return n.chain.Calls("unsubscribeWorkPackageStatus") == 1 }, "the node is told")
		_, err = Subscribe[int](ctx, c, "bestBlock")
		require.ErrorIs(t, err, ErrUnsupported)
		_, err = Subscribe[int](ctx, c, "subscribeNonsense")
		require.True(t, unknownMethod(err), "%v", err)
		c.Close()
		for range best.Updates() { // ends
		}
		best.Close()
	})
}

// A subscription and calls survive the connection, cut by either side, and the node, killed and
// started again.
func TestReconnect(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t, nil)
		c := n.client(nil)
		n.step(3)
		best, err := c.SubscribeBestBlock(t.Context())
		require.NoError(t, err)
		update(t, best)
		for i := range 5 {
			if i%2 == 0 {
				n.chain.Cut()
			} else {
				n.down()
				n.step(2) // missed blocks
				n.up()
			}
			u := n.step(1)
			got := until(t, best, func(d BlockDescriptor) bool { return d.HeaderHash == Hash(u.Best) })
			require.Equal(t, u.Slot, got.Slot)
			answer, err := c.BestBlock(t.Context())
			require.NoError(t, err)
			require.Equal(t, got, answer)
		}
	})
}

// If the node refuses to renew a subscription, this subscription receives the
// error and the others continue.
func TestRefusedSubscription(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t, nil)
		c := n.client(nil)
		best, err := c.SubscribeBestBlock(t.Context())
		require.NoError(t, err)
		capped, err := c.SubscribeWorkPackageStatus(t.Context(), jamq.PackageHash{1}, jamq.HeaderHash{2}, false)
		require.NoError(t, err)
		update(t, capped)
		n.breaks("subscribeWorkPackageStatus", jip2server.Fault{Error: &jip2server.Error{Message: "too many subscriptions"}})
		n.chain.Cut()
		var refused *Error
		require.ErrorAs(t, (<-capped.Updates()).Err, &refused)
		slot := n.step(1).Slot
		until(t, best, func(d BlockDescriptor) bool { return d.Slot == slot })
		require.Equal(t, 2, n.chain.Calls("subscribeWorkPackageStatus"), "once for each connection")
		require.Equal(t, 1, n.chain.Connections())
		n.breaks("subscribeWorkPackageStatus", jip2server.Fault{})
		n.chain.Cut()
		update(t, capped)
	})
}

// If the connection breaks during a call, the call fails at once and does not
// wait for its deadline.
func TestCutInACall(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t, nil)
		c := n.client(func(cfg *Config) { cfg.CallTimeout = time.Minute })
		n.breaks("bestBlock", jip2server.Fault{Cut: true})
		_, err := c.BestBlock(t.Context())
		require.ErrorIs(t, err, ErrDisconnected)
		n.breaks("submitWorkPackage", jip2server.Fault{Cut: true, After: true})
		n.step(3)
		context := n.context(1)
		raw, hash := encode(t, context, 1, "did it arrive?")
		err = c.SubmitWorkPackage(t.Context(), 0, raw, nil)
		require.ErrorIs(t, err, ErrDisconnected)
		require.Equal(t, submit.Retryable, submit.ClassOf(err))
		u := n.step(1)
		status, err := c.WorkPackageStatus(t.Context(), u.Best, hash, context.Anchor)
		require.NoError(t, err, "the next call has another connection")
		require.NotNil(t, status.Reported, "it did")
	})
}

func TestSlowAnswers(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t, nil)
		c := n.client(nil)
		_, err := c.BestBlock(t.Context())
		require.NoError(t, err)
		hold := make(chan struct{})
		n.breaks("bestBlock", jip2server.Fault{Hold: hold})
		require.ErrorIs(t, soon(c), context.DeadlineExceeded)
		_, err = n.client(func(cfg *Config) { cfg.CallTimeout = 50 * time.Millisecond }).BestBlock(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = c.FinalizedBlock(canceled)
		require.ErrorIs(t, err, context.Canceled)
		n.breaks("bestBlock", jip2server.Fault{})
		close(hold)
		_, err = c.BestBlock(t.Context())
		require.NoError(t, err, "a late answer belongs to no other call")
	})
}

// soon asks for the best block, and does not wait long.
func soon(c *Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := c.BestBlock(ctx)
	return err
}

// A caller that reaches its deadline does not affect other callers on the same
// connection.
func TestDeadlineOfOneCaller(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t, nil)
		c := n.client(nil)
		_, err := c.BestBlock(t.Context())
		require.NoError(t, err)
		hold := make(chan struct{})
		n.breaks("bestBlock", jip2server.Fault{Hold: hold})
		other := make(chan error, 1)
		go func() {
			_, err := c.BestBlock(t.Context())
			other <- err
		}()
		bubble.Await(t, time.Millisecond, func() bool { return n.chain.Calls("bestBlock") == 2 }, "the call is under way")
		over, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		_, err = c.FinalizedBlock(over)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		close(hold)
		require.NoError(t, <-other)
	})
}

// A connection over which nothing comes any more, not even answers to pings, is given up, and
// another one made.
func TestHalfOpenConnection(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		deaf := make(chan struct{})
		var connections atomic.Int32
		upgrader := websocket.Upgrader{}
		node := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ws, err := upgrader.Upgrade(w, r, nil)
			if err != nil {
				return
			}
			connections.Add(1)
			<-deaf // reads nothing, so no ping is answered
			_ = ws.Close()
		})}
		var wire bubble.Wire
		listener := wire.Listen()
		go func() { _ = node.Serve(listener) }()
		defer func() { _ = node.Close() }()
		defer close(deaf)
		cfg := DefaultConfig("ws://node.test")
		cfg.Dial = wire.Dial
		cfg.BackoffBase, cfg.BackoffMax = time.Millisecond, 20*time.Millisecond
		c, err := Open(cfg)
		require.NoError(t, err)
		defer c.Close()
		lost := make(chan error, 1)
		go func() {
			_, err := c.BestBlock(t.Context())
			lost <- err
		}()
		require.ErrorIs(t, <-lost, ErrDisconnected)
		bubble.Await(t, time.Millisecond, func() bool { return connections.Load() > 2 }, "more connections")
	})
}

func TestGarbage(t *testing.T) {
	for name, raw := range map[string]string{
		"no JSON": "hello", "an array": "[]", "a number": "7", "binary": "\xff\xfe", "half": `{"jsonrpc":"2.0","id":1,`,
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				n := startNode(t, nil)
				c := n.client(nil)
				n.breaks("bestBlock", jip2server.Fault{Raw: []byte(raw)})
				_, err := c.BestBlock(t.Context())
				require.ErrorIs(t, err, ErrDisconnected)
				_, err = c.FinalizedBlock(t.Context())
				require.NoError(t, err)
			})
		})
	}
	for name, raw := range map[string]string{
		"another id": `{"jsonrpc":"2.0","id":999,"result":1}`, "no id": `{"jsonrpc":"2.0","result":1}`, "id of a string": `{"jsonrpc":"2.0","id":"1","result":1}`,
		"a subscription that is not": `{"jsonrpc":"2.0","method":"subscribeBestBlock","params":{"subscription":7,"result":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				n := startNode(t, nil)
				c := n.client(nil)
				_, err := c.BestBlock(t.Context())
				require.NoError(t, err)
				n.breaks("bestBlock", jip2server.Fault{Raw: []byte(raw)})
				require.ErrorIs(t, soon(c), context.DeadlineExceeded, "ignored")
				require.Equal(t, 1, n.chain.Connections())
			})
		})
	}
}

// Results that are JSON, but not what JIP-2 says, are malformed.
func TestMalformedResults(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t, nil)
		c := n.client(nil)
		for _, result := range []string{"null", "7", "{}", `{"header_hash":"AA==","slot":1}`, `{"slot":1}`, `[]`, `""`} {
			n.faults.Lock()
			n.fault["bestBlock"] = jip2server.Fault{Raw: nil}
			n.faults.Unlock()
			n.chain.Cut() // ids restart
			bubble.Await(t, time.Millisecond, func() bool {
				n.breaks("bestBlock", jip2server.Fault{Raw: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"result":%s}`, result)})
				_, err := c.BestBlock(t.Context())
				return errors.Is(err, ErrMalformed)
			}, result)
		}
	})
}

func TestMessageLimits(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t, nil)
		c := n.client(func(cfg *Config) { cfg.MaxRequest = 4 << 10 })
		err := c.SubmitWorkPackage(t.Context(), 0, make([]byte, 4<<10), nil)
		require.ErrorIs(t, err, ErrTooLarge)
		require.Equal(t, submit.Rebuild, submit.ClassOf(err))
		n.breaks("bestBlock", jip2server.Fault{Raw: bytes.Repeat([]byte{'7'}, 5<<10)})
		_, err = c.BestBlock(t.Context())
		require.ErrorIs(t, err, ErrDisconnected)
		_, err = c.FinalizedBlock(t.Context())
		require.NoError(t, err)
	})
}

// The client keeps the id of each subscription, so that a node cannot make it long.
func TestLongSubscriptionID(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startForeignNode(t)
		n.answer = func(string, []json.RawMessage) string { return `"result":"` + strings.Repeat("7", 1<<20) + `"` }
		c := n.client(t)
		_, err := c.SubscribeBestBlock(t.Context())
		require.ErrorIs(t, err, ErrMalformed)
		require.Less(t, len(err.Error()), 2048)
		n.answer = func(string, []json.RawMessage) string { return `"result":"` + strings.Repeat("7", 254) + `"` }
		_, err = c.SubscribeBestBlock(t.Context())
		require.NoError(t, err)
	})
}

func TestClasses(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t, func(cfg *jip2server.Config) { cfg.Missing = []string{"submitWorkPackageBundle"} })
		c := n.client(nil)
		ctx := t.Context()
		err := c.SubmitWorkPackageBundle(ctx, 0, nil)
		require.ErrorIs(t, err, ErrUnsupported)
		require.Equal(t, submit.Fatal, submit.ClassOf(err))
		require.ErrorIs(t, c.SubmitWorkPackageBundle(ctx, 0, nil), ErrUnsupported)
		require.Equal(t, 1, n.chain.Calls("submitWorkPackageBundle"), "asked once")
		err = c.SubmitWorkPackage(ctx, 0, []byte("no package"), nil)
		require.Equal(t, submit.OtherGuarantor, submit.ClassOf(err), "%v", err)
		for code, want := range map[int]submit.Class{0: submit.OtherGuarantor, 1: submit.Retryable, -32601: submit.Fatal, -32602: submit.Fatal, -32603: submit.Retryable} {
			n.breaks("submitWorkPackage", jip2server.Fault{Error: &jip2server.Error{Code: code}})
			require.Equal(t, want, submit.ClassOf(c.SubmitWorkPackage(ctx, 0, nil, nil)), code)
		}
		n.breaks("submitWorkPackage", jip2server.Fault{Error: &jip2server.Error{Code: 0, Message: "Unknown method"}})
		require.Equal(t, submit.Fatal, submit.ClassOf(c.SubmitWorkPackage(ctx, 0, nil, nil)))
		c.Close()
		require.Equal(t, submit.Fatal, submit.ClassOf(c.SubmitWorkPackage(ctx, 0, nil, nil)))
	})
}

func TestCloseEndsEverything(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t, nil)
		c := n.client(nil)
		hold := make(chan struct{})
		defer close(hold)
		n.breaks("bestBlock", jip2server.Fault{Hold: hold})
		result := make(chan error)
		go func() {
			_, err := c.BestBlock(context.Background())
			result <- err
		}()
		bubble.Await(t, time.Millisecond, func() bool { return n.chain.Calls("bestBlock") == 1 }, "the call is under way")
		c.Close()
		c.Close()
		require.Error(t, <-result)
		_, err := c.FinalizedBlock(t.Context())
		require.ErrorIs(t, err, ErrClosed)
		_, err = c.SubscribeBestBlock(t.Context())
		require.ErrorIs(t, err, ErrClosed)
		n.chain.Cut()
	})
}

func TestNobodyThere(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t, nil)
		n.down()
		c := n.client(func(cfg *Config) { cfg.CallTimeout = 30 * time.Millisecond })
		_, err := c.BestBlock(t.Context())
		require.ErrorIs(t, err, ErrDisconnected)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		err = c.SubmitWorkPackage(t.Context(), 0, nil, nil)
		require.Equal(t, submit.Retryable, submit.ClassOf(err))
	})
}

func TestConfigValidate(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"URL":         func(c *Config) { c.URL = "http://127.0.0.1" },
		"DialTimeout": func(c *Config) { c.DialTimeout = 0 },
		"CallTimeout": func(c *Config) { c.CallTimeout = -1 },
		"Ping":        func(c *Config) { c.PingInterval = 0 },
		"BackoffMax":  func(c *Config) { c.BackoffMax = 1 },
		"MaxRequest":  func(c *Config) { c.MaxRequest = 7 },
		"MaxAnswer":   func(c *Config) { c.MaxAnswer = 7 },
	} {
		cfg := DefaultConfig("ws://127.0.0.1:1")
		change(&cfg)
		_, err := Open(cfg)
		require.ErrorIs(t, err, ErrInvalidConfig, name)
		require.ErrorContains(t, err, name)
	}
	require.ErrorIs(t, (&FeedConfig{}).Validate(), ErrInvalidConfig)
}

// The wait doubles up to its bound, and half of it is chance.
func TestBackoff(t *testing.T) {
	c := &Client{cfg: Config{BackoffBase: 100 * time.Millisecond, BackoffMax: time.Second}}
	for failures, most := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 4: 800 * time.Millisecond, 5: time.Second, 1000: time.Second} {
		seen := map[time.Duration]bool{}
		for range 100 {
			wait := c.backoff(failures)
			require.LessOrEqual(t, wait, most)
			require.GreaterOrEqual(t, wait, most/2)
			seen[wait] = true
		}
		require.Greater(t, len(seen), 1)
	}
}

// No message of a node causes a panic, and a message that is not JSON-RPC ends
// the connection.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"header_hash":"AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","slot":7}}`, `{"id":1,"error":{"code":0}}`, `{"id":2,"result":5}`,
		`{"method":"subscribeBestBlock","params":{"subscription":5,"result":{"slot":1}}}`, `{"params":{"subscription":5,"error":{"code":1,"data":"x"}}}`, `null`, `[]`, `{"id":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		cfg := DefaultConfig("ws://127.0.0.1:1")
		c := &conn{cfg: &cfg, log: slog.New(slog.DiscardHandler), closed: make(chan struct{}), pending: map[uint64]*request{}, streams: map[string]*stream{}}
		updates := make(chan Update[BlockDescriptor], 8)
		s := &stream{close: func() {}, offer: func(raw part, err error) {
			u := Update[BlockDescriptor]{Err: err}
			if err == nil {
				u.Err = json.Unmarshal(raw, &u.Value)
			}
			updates <- u
		}}
		c.pending[1] = &request{answer: make(chan answered, 1)}
		c.pending[2] = &request{answer: make(chan answered, 1), stream: s}
		c.streams["5"] = s
		if err := c.take(raw); err != nil && !errors.Is(err, ErrMalformed) {
			t.Fatal(err)
		}
	})
}
