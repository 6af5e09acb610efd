package jip2server_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/jamtest/jip2server"
)

// Several requests in an array are answered in an array. Only requests with an id are.
func TestBatchesOfRequests(t *testing.T) {
	s, c := start(t, nil)
	step(t, s, 3)
	write := func(text string) {
		require.NoError(t, c.ws.WriteMessage(websocket.TextMessage, []byte(text)))
	}
	write(`[{"jsonrpc":"2.0","id":1,"method":"bestBlock"},{"jsonrpc":"2.0","method":"bestBlock"},7,
		{"jsonrpc":"2.0","id":"two","method":"subscribeBestBlock","params":[]},{"jsonrpc":"2.0","id":3,"method":"nonsense"}]`)
	var answers []map[string]any
	require.NoError(t, c.ws.ReadJSON(&answers))
	require.Len(t, answers, 4)
	require.EqualValues(t, 3, answers[0]["result"].(map[string]any)["slot"])
	require.Nil(t, answers[1]["id"], "what is no request has no id")
	require.EqualValues(t, -32600, answers[1]["error"].(map[string]any)["code"])
	require.Equal(t, "two", answers[2]["id"])
	require.EqualValues(t, -32601, answers[3]["error"].(map[string]any)["code"])
	require.EqualValues(t, 3, c.told()["result"].(map[string]any)["slot"], "the first value comes after the answer")

	write(`{"jsonrpc":"2.0","method":"bestBlock"}`)
	write(`[{"jsonrpc":"2.0","method":"bestBlock"}]`)
	write(`[]`)
	require.EqualValues(t, -32600, c.next()["error"].(map[string]any)["code"], "requests without an id get no answer")
	require.Equal(t, 4, s.Calls("bestBlock"))
	require.Equal(t, 1, s.Connections())
}

// JIP-2 passes parameters by position. Parameters by name are invalid, and the connection stays.
func TestParametersByName(t *testing.T) {
	_, c := start(t, nil)
	require.NoError(t, c.ws.WriteMessage(websocket.TextMessage, []byte(`{"jsonrpc":"2.0","id":9,"method":"parent","params":{"header_hash":""}}`)))
	answer := c.next()
	require.EqualValues(t, 9, answer["id"])
	require.EqualValues(t, -32602, answer["error"].(map[string]any)["code"])
	require.NotNil(t, c.result("bestBlock"))
}

// The update of a subscription to the status of synchronization is a text, and the answer of the
// method an object.
func TestSyncStatus(t *testing.T) {
	_, c := start(t, nil)
	c.result("subscribeSyncStatus")
	require.Equal(t, "Completed", c.told()["result"])
	require.Equal(t, "Completed", c.result("syncState").(map[string]any)["status"])
}

// Each profile sends what its facts say, as JSON.
func TestProfiles(t *testing.T) {
	zero := base(make([]byte, 32))
	for _, p := range jip2server.Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			s, c := start(t, func(cfg *jip2server.Config) { cfg.Deviations = p.Deviations })
			u := step(t, s, 6)
			best := base(u.Best[:])
			for _, method := range p.Deviations.Missing {
				answer := c.ask(method, best)["error"].(map[string]any)
				require.EqualValues(t, p.Deviations.UnknownCode, answer["code"])
			}
			for _, method := range p.Deviations.Rejected {
				require.EqualValues(t, -32602, c.ask(method, best)["error"].(map[string]any)["code"])
			}
			for method, result := range p.Deviations.Stubs {
				want, err := json.Marshal(result)
				require.NoError(t, err)
				have, err := json.Marshal(c.result(method, zero, zero, zero))
				require.NoError(t, err)
				require.JSONEq(t, string(want), string(have))
			}
			final := c.result("finalizedBlock").(map[string]any)["header_hash"]
			require.Equal(t, p.Deviations.FinalIsBest, final == best)

			id := c.result("subscribeBestBlock")
			message := c.message(p.Deviations.Notify.Batches)
			field, method := "subscription", "subscribeBestBlock"
			if p.Deviations.Notify.IDField != "" {
				field = p.Deviations.Notify.IDField
			}
			if p.Deviations.Notify.MethodIsID {
				method = fmt.Sprint(id)
			}
			require.Equal(t, id, message["params"].(map[string]any)[field])
			require.Equal(t, method, message["method"])
			if p.Deviations.Notify.TextIDs {
				require.IsType(t, "", id)
			}
			require.Equal(t, true, c.result("unsubscribeBestBlock", id))
		})
	}
}

// message returns the next notification, whole.
func (s *socket) message(batch bool) (m map[string]any) {
	s.t.Helper()
	if !batch {
		return s.next()
	}
	var all []map[string]any
	require.NoError(s.t, s.ws.ReadJSON(&all))
	require.Len(s.t, all, 1)
	return all[0]
}
