package eoa_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
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

// A report says how long each request took to a node and to its confirmation.
func TestReportsTimes(t *testing.T) {
	w := newWorld(t, 1, 10)
	var submitted, confirmed []time.Duration
	w.cfg.Observe = func(r eoa.Report) {
		require.Equal(t, w.account, r.Account)
		submitted, confirmed = append(submitted, r.ToSubmitted...), append(confirmed, r.ToConfirmed...)
	}
	e := w.executor(t, w.store, w.chain)
	require.NoError(t, w.submitAll(e))
	w.finish(t, e)
	require.Len(t, submitted, 10)
	require.Len(t, confirmed, 10)
	for i := range submitted {
		require.Zero(t, submitted[i])
		require.Greater(t, confirmed[i], time.Second)
		require.Less(t, confirmed[i], time.Minute)
	}
}
