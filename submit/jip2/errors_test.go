package jip2

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
)

// A node cannot make the text of an error long: hosts keep errors and log them.
func TestLongNumbersAreCut(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startForeignNode(t)
		n.answer = func(string, []json.RawMessage) string { return `"result":[` + strings.Repeat("7", 1<<20) + `]` }
		_, err := n.client(t).ListServices(t.Context(), jamq.HeaderHash{})
		require.ErrorIs(t, err, ErrMalformed)
		require.Less(t, len(err.Error()), 2048)
	})
	block := `{"header_hash":"` + base64.StdEncoding.EncodeToString(make([]byte, 32)) + `","slot":`
	var update ChainSubUpdate[uint32]
	for _, raw := range []string{block + strings.Repeat("7", 1<<20) + `}`, block + `7,"value":` + strings.Repeat("7", 1<<20) + `}`} {
		err := json.Unmarshal([]byte(raw), &update)
		require.ErrorIs(t, err, ErrMalformed)
		require.Less(t, len(err.Error()), 2048)
	}
}

// A text is cut between two characters.
func TestCutBetweenCharacters(t *testing.T) {
	for shift := range 4 {
		text := strings.Repeat("x", shift) + strings.Repeat("€", 1000)
		short := cut(text)
		require.True(t, utf8.ValidString(short))
		require.Greater(t, len(short), 1024-utf8.UTFMax)
		require.LessOrEqual(t, len(short), 1024)
	}
	require.Len(t, cut(strings.Repeat("\x80", 2000)), 1020, "text that is not UTF-8")
}

func TestError(t *testing.T) {
	var e Error
	require.NoError(t, json.Unmarshal([]byte(`{"code":1,"message":"no such block","data":"AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`), &e))
	block, ok := e.Block()
	require.True(t, ok)
	require.Equal(t, Hash{1, 2, 3}, block)
	wrapped := fmt.Errorf("asking: %w", &e)
	var again *Error
	require.True(t, errors.As(wrapped, &again))
	require.Contains(t, wrapped.Error(), "error 1: no such block")
	for _, raw := range []string{`{"code":0}`, `{"code":1}`, `{"code":1,"data":7}`, `{"code":1,"data":"AQID"}`, `{"code":2,"data":"AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`} {
		var e Error
		require.NoError(t, json.Unmarshal([]byte(raw), &e))
		_, ok := e.Block()
		require.False(t, ok, raw)
		require.Contains(t, e.Error(), "without a message")
	}
}
