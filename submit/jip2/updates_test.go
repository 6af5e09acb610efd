package jip2

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/bubble"
)

// A node sends updates before the answer that has the id of their subscription. The newest one
// reaches the subscription, and those of other subscriptions do not.
func TestUpdatesBeforeTheAnswer(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startForeignNode(t)
		notify := func(method string, id int, text string) {
			n.send <- fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"subscription":%d,%s}}`, method, id, text)
		}
		const method = "subscribeSyncStatus"
		opened := 0
		n.answer = func(called string, _ []json.RawMessage) string {
			if called != method {
				return ""
			}
			switch opened++; opened {
			case 2:
				notify(method, 72, `"error":"not synchronized"`)
				return `"result":72`
			case 3:
				notify("73", 73, `"result":"Completed"`) // the id in the place of the method
				return `"result":73`
			}
			notify(method, 70, `"result":"InProgress"`)
			notify(method, 70, `"result":"Completed"`)
			notify(method, 71, `"result":"of another subscription"`)
			notify("subscribeBestBlock", 70, `"result":"of another method"`)
			return `"result":"70"`
		}
		c := n.client(t)
		s, err := c.SubscribeSyncStatus(t.Context())
		require.NoError(t, err)
		require.Equal(t, "Completed", nextUpdate(t, s).Value)
		notify(method, 70, `"result":"InProgress"`)
		require.Equal(t, "InProgress", nextUpdate(t, s).Value)
		s.Close()

		s, err = c.SubscribeSyncStatus(t.Context())
		require.NoError(t, err)
		require.ErrorContains(t, nextUpdate(t, s).Err, "not synchronized")
		s, err = c.SubscribeSyncStatus(t.Context())
		require.NoError(t, err)
		require.Equal(t, "Completed", nextUpdate(t, s).Value)
		require.EqualValues(t, 1, n.connections.Load())
	})
}

// Updates without a subscription are held only while a call may open it, and few of them.
func TestFloodOfUpdatesBeforeTheAnswer(t *testing.T) {
	const method = "subscribeSyncStatus"
	c := &conn{pending: map[uint64]*request{}}
	hold := func(id int, result string) {
		c.holdEarly(method, &notification{Subscription: fmt.Append(nil, id), Result: part(result)})
	}
	hold(0, `""`)
	require.Empty(t, c.early, "no call waits")
	c.pending[1] = &request{stream: &stream{method: method}}
	hold(0, strings.Repeat(" ", maxShape+1))
	require.Empty(t, c.early)
	for id := range 3 * maxEarly {
		hold(id, `"old"`)
		hold(id, `"new"`)
	}
	require.Len(t, c.early, maxEarly)
	require.Equal(t, `"new"`, string(c.takeEarly(method, part(`"3"`)).Result))
	require.Len(t, c.early, maxEarly-1, "the call waits still")
	require.Nil(t, c.takeEarly("subscribeBestBlock", part(`4`)), "of another method")
	delete(c.pending, 1)
	require.Nil(t, c.takeEarly(method, part(`99`)))
	require.Empty(t, c.early)
}
