package jip2

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/submit"
)

// The envelopes in which nodes have been seen to send an update. All reach the subscription, and
// none costs the connection.
func TestEnvelopes(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startForeignNode(t)
		c := n.client(t)
		best, err := c.SubscribeBestBlock(t.Context())
		require.NoError(t, err)
		for i, x := range []string{
			`{"jsonrpc":"2.0","method":"subscribeBestBlock","params":{"subscription":7,%s}}`,
			`{"jsonrpc":"2.0","method":"x","params":{"subscriptionId":7,%s}}`,
			`{"jsonrpc":"2.0","method":"x","params":[{"subscription":7,%s}]}`,
			`{"jsonrpc":"2.0","id":null,"method":"x","params":{"subscription":7,%s}}`,
			`[{"jsonrpc":"2.0","method":"x","params":{"subscription":7,%s}}]`,
			`[{"jsonrpc":"2.0","method":"x","params":{"subscription":99,"result":1}},{"jsonrpc":"2.0","method":"x","params":{"subscription":7,%s}}]`,
		} {
			n.send <- fmt.Sprintf(x, descriptor(i))
			u := nextUpdate(t, best)
			require.NoError(t, u.Err, x)
			require.EqualValues(t, i, u.Value.Slot, x)
		}
		n.send <- `{"jsonrpc":"2.0","method":"x","params":[7,{"header_hash":"AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","slot":60}]}`
		require.EqualValues(t, 60, nextUpdate(t, best).Value.Slot, "the parameters by position")
		for _, text := range []string{`[7]`, `[null,[]]`, `[{"jsonrpc":"2.0","id":55,"result":1}]`, `{"jsonrpc":"2.0","method":"x","params":[]}`} {
			n.send <- text
		}
		n.notify(bestID, descriptor(61))
		require.EqualValues(t, 61, nextUpdate(t, best).Value.Slot)
		require.EqualValues(t, 1, n.connections.Load())
	})
}

// A batch of many small messages ends the connection and costs no more memory than the message.
func TestFloodInABatch(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startForeignNode(t)
		c := n.client(t)
		best, err := c.SubscribeBestBlock(t.Context())
		require.NoError(t, err)
		flood := "[" + strings.Repeat("1,", 1<<22) + "1]"
		raw := []byte(flood)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, isArray := elements(raw, maxBatch)
		require.True(t, isArray)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(len(raw)/8))
		n.send <- flood
		bubble.Await(t, time.Millisecond, func() bool { return n.connections.Load() == 2 }, "a new connection")
		n.send <- "[" + strings.Repeat("1,", maxBatch-2) + "1," + fmt.Sprintf(`{"jsonrpc":"2.0","method":"x","params":{"subscription":7,%s}}]`, descriptor(3))
		require.EqualValues(t, 3, nextUpdate(t, best).Value.Slot, "as many as are allowed")
		require.EqualValues(t, 2, n.connections.Load())
	})
}

// A request of the node is answered, and is no answer to a call of the client with the same id.
func TestRequestsOfTheNode(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startForeignNode(t)
		reached := make(chan struct{})
		n.answer = func(string, []json.RawMessage) string {
			close(reached)
			return noAnswer
		}
		c := n.client(t)
		done := make(chan BlockDescriptor, 1)
		go func() {
			best, err := c.BestBlock(t.Context())
			if err != nil {
				t.Error(err)
			}
			done <- best
		}()
		<-reached
		for _, text := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`,
			`{"jsonrpc":"2.0","id":"one","method":"ping","params":{"a":1}}`,
		} {
			n.send <- text
			var refusal struct {
				Version string `json:"jsonrpc"`
				ID      json.RawMessage
				Error   Error
			}
			require.NoError(t, json.Unmarshal([]byte(<-n.heard), &refusal))
			require.Equal(t, CodeMethodNotFound, refusal.Error.Code)
			require.Equal(t, "2.0", refusal.Version)
			require.Contains(t, text, `"id":`+string(refusal.ID))
		}
		n.send <- `{"jsonrpc":"2.0","id":1,` + descriptor(5) + `}`
		require.EqualValues(t, 5, (<-done).Slot)
		require.EqualValues(t, 1, n.connections.Load())
	})
}

// The ways in which nodes write the id of an answer, and an error for a request that the
// node could not read, which has no id.
func TestIDsOfAnswers(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startForeignNode(t)
		reached := make(chan struct{})
		n.answer = func(string, []json.RawMessage) string {
			reached <- struct{}{}
			return noAnswer
		}
		c := n.client(t)
		type result struct {
			block BlockDescriptor
			err   error
		}
		ask := func() <-chan result {
			done := make(chan result, 1)
			go func() {
				block, err := c.BestBlock(t.Context())
				done <- result{block, err}
			}()
			<-reached
			return done
		}
		for i, id := range []string{`%d`, `"%d"`, `%d.0`, `%de0`, `"%d.0"`} {
			done := ask()
			n.send <- `{"jsonrpc":"2.0","id":` + fmt.Sprintf(id, i+1) + `,` + descriptor(i) + `}`
			r := <-done
			require.NoError(t, r.err, id)
			require.EqualValues(t, i, r.block.Slot, id)
		}
		for _, id := range []string{`"id":null,`, ``} {
			done := ask()
			n.send <- `{"jsonrpc":"2.0",` + id + `"error":{"code":-32700,"message":"cannot read it"}}`
			var refused *Error
			require.ErrorAs(t, (<-done).err, &refused)
			require.Equal(t, -32700, refused.Code)
		}

		a, b := ask(), ask()
		n.send <- `{"jsonrpc":"2.0","id":null,"error":"one of them"}`
		for i, id := range []string{"7.5", "-8", "1e300", "[8]", "8", "9"} {
			n.send <- `{"jsonrpc":"2.0","id":` + id + `,` + descriptor(i) + `}`
		}
		require.EqualValues(t, 4+5, (<-a).block.Slot+(<-b).block.Slot, "an error without an id is for none of two calls")
	})
}

// A node that sends many updates while the feed cannot follow it causes one attempt per
// second and one log message per minute.
func TestUpdatesDuringAFailure(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		s := &straight{parameters: tinyParameters(t), head: 9, final: 5, calls: map[string]int{}}
		n := startForeignNode(t)
		n.answer = s.answer
		var log lockedBuffer
		feed, err := OpenFeed(t.Context(), n.client(t), FeedConfig{Service: marks, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		attempts := 0
		s.override = func(method string, _ []json.RawMessage) string {
			switch method {
			case "finalizedBlock":
				attempts++
				return fmt.Sprintf(`"error":"failure %d"`, attempts)
			case "subscribeBestBlock", "subscribeFinalizedBlock":
				return usual(method)
			}
			return ""
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- feed.Follow(ctx, newViewSink(t, feed)) }()
		for i := range 50 * 110 { // 110 s
			n.notify(bestID, descriptor(i))
			time.Sleep(time.Second / 50)
		}
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.InDelta(t, 2*105, attempts, 2*10, "two requests in each attempt")
		require.Equal(t, 2, strings.Count(log.String(), "cannot follow"), log.String())
	})
}

// lines is a chain that a foreign node invents: the hash of a block is its slot.
func lineHash(slot jamq.Slot) (h Hash) {
	binary.BigEndian.PutUint32(h[:], uint32(slot)+1)
	return h
}

func quoted(h Hash) string { return `"` + base64.StdEncoding.EncodeToString(h[:]) + `"` }

func lineBlock(slot jamq.Slot) string {
	return fmt.Sprintf(`{"header_hash":%s,"slot":%d}`, quoted(lineHash(slot)), slot)
}

// tinyParameters are the constants of the tiny chain, as a node returns them.
func tinyParameters(t *testing.T) string {
	t.Helper()
	var raw rawJSON
	require.NoError(t, startNode(t, nil).client(nil).Call(t.Context(), &raw, "parameters"))
	return string(raw)
}

const canBeReported = `"result":{"Reportable":{"remaining_blocks":8}}`

// straight is a node with a chain of one block per slot, from slot 0 to the head, whose block in
// slot final is final. It answers that a package can be reported if its anchor is on the chain.
type straight struct {
	parameters  string
	head, final jamq.Slot
	// override, if not nil, answers first; "" leaves the call to the node.
	override func(method string, params []json.RawMessage) string
	calls    map[string]int
}

func (s *straight) answer(method string, params []json.RawMessage) string {
	s.calls[method]++
	if s.override != nil {
		if result := s.override(method, params); result != "" {
			return result
		}
	}
	block := func(param int) (slot jamq.Slot, known bool) {
		var h Hash
		if json.Unmarshal(params[param], &h) != nil || bytes.Equal(h[:4], make([]byte, 4)) {
			return 0, false
		}
		slot = jamq.Slot(binary.BigEndian.Uint32(h[:]) - 1)
		return slot, slot <= s.head
	}
	switch method {
	case "parameters":
		return `"result":` + s.parameters
	case "bestBlock":
		return `"result":` + lineBlock(s.head)
	case "finalizedBlock":
		return `"result":` + lineBlock(s.final)
	case "parent":
		if slot, known := block(0); known && slot > 0 {
			return `"result":` + lineBlock(slot-1)
		}
		return `"error":{"code":1,"message":"unknown block","data":` + string(params[0]) + `}`
	case "workPackageStatus":
		if _, known := block(2); known {
			return canBeReported
		}
		return `"result":{"Failed":"the anchor is on no fork"}`
	case "serviceValue":
		return `"result":null`
	case "stateRoot", "beefyRoot":
		return `"result":` + quoted(Hash{7})
	}
	return ""
}

func startStraight(t *testing.T, head, final jamq.Slot) (*straight, *Client) {
	t.Helper()
	s := &straight{parameters: tinyParameters(t), head: head, final: final, calls: map[string]int{}}
	n := startForeignNode(t)
	n.answer = s.answer
	return s, n.client(t)
}

// A node without the method workPackageStatus is refused, in whatever way the node lacks it. The
// error names the method. A node that answers without knowledge lacks it as well: one that calls
// every package lost would make live packages dead, and one that calls each of them reportable
// would hide reports.
func TestNodeWithoutStatus(t *testing.T) {
	for _, answer := range []string{
		`"error":{"code":-32601,"message":"Method not found"}`,
		`"error":{"code":-32601}`,
		`"error":{"code":0,"message":"Method not implemented"}`,
		`"error":{"code":0,"message":"not supported"}`,
		`"error":{"code":0}`,
		`"error":{"code":-32602,"message":"Invalid params"}`,
		`"error":{"code":-32603,"message":"Internal error"}`,
		`"error":{"code":-32600}`,
		`"error":{"code":-32000,"message":"no handler"}`,
		`"error":{"code":1,"message":"block unavailable"}`,
		`"error":"not implemented"`,
		`"result":null`, `"result":{}`, `"result":true`, `"result":""`, `"result":[]`,
		`"result":{"Failed":"not implemented"}`,
		canBeReported,
		`"result":{"Reportable":{"remaining_blocks":0}}`,
		`"result":{"Reported":{"reported_in":` + lineBlock(4) + `,"core":0,"report_hash":` + quoted(Hash{1}) + `}}`,
	} {
		bubble.Run(t, func(t *testing.T) {
			s, c := startStraight(t, 9, 5)
			s.override = func(method string, _ []json.RawMessage) string {
				if method == "workPackageStatus" {
					return answer
				}
				return ""
			}
			_, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks})
			require.ErrorIs(t, err, ErrUnsupported, answer)
			require.ErrorContains(t, err, "workPackageStatus", answer)
		})
	}
	bubble.Run(t, func(t *testing.T) {
		s, c := startStraight(t, 9, 5)
		_, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks})
		require.NoError(t, err, "the node has it")
		s.override = func(method string, params []json.RawMessage) string {
			if method == "workPackageStatus" && string(params[2]) == quoted(Hash{}) {
				return `"error":{"code":0,"message":"the anchor is too old"}`
			}
			return ""
		}
		_, err = OpenFeed(t.Context(), c, FeedConfig{Service: marks})
		require.NoError(t, err, "an error about an anchor that does not exist is allowed")
	})
}

// A bundle that the node does not take goes as a package with its extrinsics.
func TestBundleFallsBack(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		for code, want := range map[int]int{-32601: 1, -32602: 1, -32600: 1, 0: 0, -32603: 0} {
			f := follow(t, nil)
			f.step(4)
			f.catchUp()
			f.breaks("submitWorkPackageBundle", jip2server.Fault{Error: &jip2server.Error{Code: code, Message: "no"}})
			context, err := f.feed.Context(t.Context(), f.sink.view.Finalized().Hash, nil)
			require.NoError(t, err)
			raw, hash := encode(t, context, 1, "as a bundle")
			err = f.feed.Submit(t.Context(), Submission{Core: 0, Hash: hash, Context: context, Package: raw, Bundle: raw})
			require.Equal(t, want, f.chain.Calls("submitWorkPackage"), code)
			if want == 1 {
				require.NoError(t, err, code)
			} else {
				require.Error(t, err, code)
				require.NotEqual(t, submit.Fatal, submit.ClassOf(err))
			}
		}
	})
}

// A head that is far ahead of the clock is not followed back to its invented beginning.
func TestHeadAheadOfTheClock(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		s, c := startStraight(t, 9, 5)
		feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks})
		require.NoError(t, err)
		sink := newViewSink(t, feed)
		require.NoError(t, feed.catchUp(t.Context(), sink))
		s.calls["parent"] = 0
		s.head = 1 << 24
		err = feed.catchUp(t.Context(), sink)
		require.ErrorIs(t, err, ErrMalformed)
		require.ErrorContains(t, err, "clock")
		require.Less(t, s.calls["parent"], 10)
		s.head = 10
		require.NoError(t, feed.catchUp(t.Context(), sink))
		require.EqualValues(t, 10, sink.view.Best().Slot)
	})
}

// A feed does not begin at a final block that is far ahead of the clock, because it could
// not follow the real ones then.
func TestFinalAheadOfTheClock(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		s, c := startStraight(t, 9, 5)
		s.override = func(method string, _ []json.RawMessage) string {
			if method == "finalizedBlock" {
				return descriptor(uint32(math.MaxUint32))
			}
			return ""
		}
		_, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks})
		require.ErrorIs(t, err, ErrMalformed)
		require.ErrorContains(t, err, "clock")
		s.override = nil
		_, err = OpenFeed(t.Context(), c, FeedConfig{Service: marks})
		require.NoError(t, err)
	})
}

// Blocks in a circle, however it is made, delay the feed and do not end Follow.
func TestBlocksInACircle(t *testing.T) {
	own := func(slot jamq.Slot) string {
		return fmt.Sprintf(`"result":{"header_hash":%s,"slot":%d}`, quoted(lineHash(8)), slot)
	}
	for name, parent := range map[string]func(Hash) string{
		"its own parent":               func(Hash) string { return own(8) },
		"its own parent, a slot older": func(Hash) string { return own(7) },
		"two blocks": func(h Hash) string {
			if h == lineHash(8) {
				return `"result":` + lineBlock(7)
			}
			return own(6)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				s, c := startStraight(t, 5, 5)
				feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks})
				require.NoError(t, err)
				sink := newViewSink(t, feed)
				s.override = func(method string, params []json.RawMessage) string {
					var h Hash
					if method == "parent" && json.Unmarshal(params[0], &h) == nil && h != lineHash(6) {
						return parent(h)
					}
					return ""
				}
				s.head = 8
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				require.ErrorIs(t, feed.Follow(ctx, sink), context.DeadlineExceeded, "Follow goes on")
				synctest.Wait() // for the answer to its last call
				require.Less(t, s.calls["parent"], 1000)
				s.override, s.head = nil, 9
				ctx, cancel = context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				require.ErrorIs(t, feed.Follow(ctx, sink), context.DeadlineExceeded)
				require.EqualValues(t, 9, sink.view.Best().Slot)
			})
		})
	}
}

// A node that answers code 0 for a state that it has pruned does not stall the feed.
func TestPrunedStateWithAnotherCode(t *testing.T) {
	for _, code := range []int{CodeOther, CodeBlockUnavailable, -32603} {
		bubble.Run(t, func(t *testing.T) {
			f := follow(t, func(c *jip2server.Config) { c.KeepStates, c.PrunedCode = 1, code })
			f.step(6)
			f.catchUp()
			pkg := f.send(1, 0, "in a gap")
			f.step(20)
			f.catchUp()
			require.False(t, f.status(pkg).Accumulated.IsZero())
		})
	}
}
