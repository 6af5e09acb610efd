package jip2

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

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
