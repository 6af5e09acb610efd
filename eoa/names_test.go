package eoa_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// The JSON of a record has names. Records that earlier versions wrote have
// numbers, and are read.
func TestRecordInJSON(t *testing.T) {
	r := eoa.Record{Request: eoa.Request{Key: "a", Kind: eoa.Blob}, ID: 1, State: eoa.Mined, Attempts: []eoa.Attempt{{Result: eoa.Rejected}}}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	var fields struct {
		State, Kind string
		Attempts    []struct{ Result string }
	}
	require.NoError(t, json.Unmarshal(text, &fields))
	require.Equal(t, []string{"mined", "blob", "rejected"}, []string{fields.State, fields.Kind, fields.Attempts[0].Result})

	for _, text := range []string{string(text), `{"key":"a","id":1,"state":3,"kind":4,"attempts":[{"result":2}]}`} {
		var again eoa.Record
		require.NoError(t, json.Unmarshal([]byte(text), &again), text)
		require.Equal(t, r.State, again.State)
		require.Equal(t, r.Kind, again.Kind)
		require.Equal(t, r.Attempts[0].Result, again.Attempts[0].Result)
	}
	var kept eoa.Record
	require.NoError(t, json.Unmarshal([]byte(`{"state":null}`), &kept))
	for _, text := range []string{`{"state":"mine"}`, `{"state":""}`, `{"state":300}`, `{"kind":"Blob"}`, `{"kind":{}}`, `{"attempts":[{"result":"yes"}]}`} {
		require.Error(t, json.Unmarshal([]byte(text), new(eoa.Record)), text)
	}
}

// Each value of an enumeration has its own name, and is read from it.
func TestNamesInJSON(t *testing.T) {
	for n := range 256 {
		checkName(t, eoa.State(n))
		checkName(t, eoa.Kind(n))
		checkName(t, eoa.SendResult(n))
		checkName(t, eoa.EventKind(n))
	}
}

func checkName[T ~uint8](t *testing.T, value T) {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	require.Equal(t, byte('"'), text[0])
	var again T
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, value, again)
}
