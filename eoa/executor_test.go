package eoa_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holiman/uint256"
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

// A report has the time of each request until a node had it and until it was
// confirmed.
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

// Suspend releases an account only if nothing arrived since the last step. The
// next step acquires it again.
func TestSuspend(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, 1, 2)
	e := w.executor(t, w.store, w.chain)
	_, err := e.Submit(ctx, request(w.keys[0]))
	require.NoError(t, err)
	next, err := e.Step(ctx)
	require.NoError(t, err)
	require.NotZero(t, next, "it is in flight")

	_, err = w.store.Submit(ctx, w.account, w.now, request(w.keys[1])) // through another process
	require.NoError(t, err)
	_, err = e.Suspend(ctx, next)
	require.ErrorIs(t, err, eoa.ErrWoken)
	require.True(t, e.Stats().Held)
	next, err = e.Step(ctx)
	require.NoError(t, err)
	require.Equal(t, 2, w.chain.Pooled())

	wake, err := e.Suspend(ctx, next)
	require.NoError(t, err)
	inbox, err := w.store.Inbox(ctx, w.account, 1)
	require.NoError(t, err)
	require.Equal(t, inbox.Wake, wake)
	require.False(t, e.Stats().Held)
	again, err := e.Suspend(ctx, next)
	require.NoError(t, err, "given back already")
	require.Equal(t, wake, again)
	for at, due := range map[time.Time]int{next.Add(-1): 0, next: 1} {
		accounts, err := w.store.Due(ctx, at, 10)
		require.NoError(t, err)
		require.Len(t, accounts, due)
	}
	w.finish(t, w.executor(t, w.store, w.chain))
	w.exactlyOnce(t)

	_, err = e.Submit(ctx, request("another"))
	require.NoError(t, err)
	next, err = e.Step(ctx)
	require.NoError(t, err)
	require.NoError(t, w.store.Break(ctx, w.account))
	_, err = e.Suspend(ctx, next)
	require.ErrorIs(t, err, eoa.ErrFenced)
	require.False(t, e.Stats().Held)
}

// Requests that are too large to be read at once are all sent.
func TestLargeRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 4)
	w.request = func(key string) eoa.Request {
		q := request(key)
		q.Metadata = make([]byte, eoa.MaxInboxBytes*3/8)
		return q
	}
	most := 0
	w.cfg.Observe = func(r eoa.Report) { most = max(most, r.Signed) }
	e := w.executor(t, w.store, w.chain)
	require.NoError(t, w.submitAll(e))
	inbox, err := w.store.Inbox(context.Background(), w.account, 4)
	require.NoError(t, err)
	require.Len(t, inbox.Pending, 2)
	w.finish(t, e)
	w.exactlyOnce(t)
	require.Equal(t, 4, most, "the next are read as soon as there is room for them")
}

// Requests of MaxInboxBytes that must all wait hold up those behind them, but none
// of higher priority.
func TestLargeRequestsThatWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 0)
	e := w.executor(t, w.store, w.chain)
	for i := range 3 {
		q := request(fmt.Sprint("large", i))
		q.Metadata, q.MaxFee = make([]byte, eoa.MaxInboxBytes*3/8), uint256.NewInt(1)
		w.submit(t, e, q)
	}
	w.submit(t, e, request("behind"))
	urgent := request("urgent")
	urgent.Priority = 1
	w.submit(t, e, urgent)
	w.steps(t, e, 40)
	require.Equal(t, eoa.Final, w.get(t, "urgent").State)
	require.Equal(t, eoa.Pending, w.get(t, "behind").State)
	w.chain.SetBaseFee(1)
	w.steps(t, e, 60)
	require.Equal(t, eoa.Final, w.get(t, "behind").State)
}

// Wait notices soon that another process has done the work.
func TestWaitForAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 0)
		w.cfg.Now = nil
		e, other := w.executor(t, w.store, w.chain), w.executor(t, w.store, w.chain)
		w.submit(t, e, request("a"))
		go func() {
			time.Sleep(150 * time.Millisecond)
			_, _ = other.Step(t.Context())
		}()
		began := time.Now()
		_, err := e.Wait(t.Context(), "a", eoa.Broadcast)
		require.NoError(t, err)
		require.Less(t, time.Since(began), time.Second)
	})
}
