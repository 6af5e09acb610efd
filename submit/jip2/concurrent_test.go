package jip2

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/bubble"
)

// slowValue is a result whose decoding lasts until the test receives from it.
type slowValue chan struct{}

func (v slowValue) UnmarshalJSON([]byte) error {
	v <- struct{}{}
	return nil
}

// While a call decodes a large answer, the client reads no other one, so that any number of
// calls at once take no more memory than a flood. Small answers do not wait.
func TestLargeAnswersOneAtATime(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startForeignNode(t)
		n.answer = func(string, []json.RawMessage) string { return noAnswer }
		c := n.client(t)
		for _, x := range []struct{ size, together int }{{10, 3}, {maxShape + 1, 1}} {
			value := make(slowValue)
			var calls sync.WaitGroup
			for range 3 {
				calls.Go(func() {
					if err := c.Call(t.Context(), &value, "serviceValue"); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			conn, err := c.await(t.Context())
			require.NoError(t, err)
			conn.mu.Lock()
			last := conn.lastID
			conn.mu.Unlock()
			waiting := func() int {
				conn.mu.Lock()
				defer conn.mu.Unlock()
				return len(conn.pending)
			}
			require.Equal(t, 3, waiting())
			var sending sync.WaitGroup
			sending.Go(func() {
				for id := last - 2; id <= last; id++ {
					n.send <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"%s"}`, id, strings.Repeat("A", x.size))
				}
			})
			synctest.Wait()
			require.Equal(t, 3-x.together, waiting(), "answers that were not read, of %d bytes", x.size)
			for range 3 {
				<-value
			}
			calls.Wait()
			sending.Wait()
		}
	})
}

// A call that was given up holds no other one up.
func TestLargeAnswerToACallThatWasGivenUp(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startForeignNode(t)
		n.answer = func(string, []json.RawMessage) string { return noAnswer }
		c := n.client(t)
		require.Error(t, c.Call(t.Context(), nil, "serviceValue"), "no answer")
		for range 2 {
			n.send <- fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":"%s"}`, strings.Repeat("A", maxShape+1))
		}
		n.answer = nil
		_, err := c.SubscribeBestBlock(t.Context())
		require.NoError(t, err)
	})
}
