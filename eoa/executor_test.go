package eoa_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExecutorSendsAll(t *testing.T) {
	w := newWorld(t, 1, 30)
	e := w.executor(t, w.store, w.chain)
	require.NoError(t, w.submitAll(e))
	w.finish(t, e)
	w.exactlyOnce(t)
	next, err := e.Step(context.Background())
	require.NoError(t, err)
	require.True(t, next.IsZero(), "nothing is left, so nothing is due")
	require.False(t, e.Stats().Held)
}
