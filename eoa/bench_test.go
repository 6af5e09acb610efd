package eoa_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// BenchmarkExecutor measures the executor alone, from submit to final, with a
// store in memory and a chain that takes everything. It also counts calls to
// the store.
func BenchmarkExecutor(b *testing.B) {
	const batch = 500
	w := newWorld(b, 1, 0)
	w.cfg.Batch, w.cfg.MaxInFlight, w.cfg.MaxUnsure, w.cfg.Confirmations = batch, 4*batch, 4*batch, 1
	trips := 0
	w.cfg.Observe = func(r eoa.Report) { trips += r.Commits + r.Reads }
	e := w.executor(b, w.store, w.chain)
	n := 0
	for b.Loop() {
		var q []eoa.Request
		for range batch {
			n++
			q = append(q, eoa.Request{Key: fmt.Sprint(n), Noop: true})
		}
		_, err := e.Submit(context.Background(), q...)
		require.NoError(b, err)
		trips++
		_, err = e.Step(context.Background())
		require.NoError(b, err)
		w.chain.Mine()
		w.now = w.now.Add(w.cfg.Poll)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "transactions/s")
	b.ReportMetric(float64(trips)*batch/float64(n), "trips/batch")
}

// An idle account makes no call to the store or the chain, with or without new
// heads.
func TestIdleCostsNothing(t *testing.T) {
	w := newWorld(t, 1, 3)
	reports := []eoa.Report{}
	w.cfg.Observe = func(r eoa.Report) { reports = append(reports, r) }
	e := w.executor(t, w.store, w.chain)
	require.NoError(t, w.submitAll(e))
	w.finish(t, e)
	for range 20 {
		if next, err := e.Step(context.Background()); err == nil && next.IsZero() {
			break
		}
		w.tick(0)
	}
	require.False(t, e.Stats().Held)
	before := len(reports)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- e.Run(ctx) }()
	for range 100 {
		e.NewHead()
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.LessOrEqual(t, len(reports)-before, 1, "one look at the store when it begins, and none with a head")
}

// One request at a time: from Submit to the call that sends it.
func BenchmarkLatency(b *testing.B) {
	w := newWorld(b, 1, 0)
	w.cfg.MaxInFlight, w.cfg.MaxUnsure = 1<<20, 1<<20
	e := w.executor(b, w.store, w.chain)
	var took []time.Duration
	n := 0
	for b.Loop() {
		n++
		began := time.Now()
		_, err := e.Submit(context.Background(), eoa.Request{Key: fmt.Sprint(n), To: &w.account.Address, Gas: 21_000})
		require.NoError(b, err)
		_, err = e.Step(context.Background())
		require.NoError(b, err)
		took = append(took, time.Since(began))
		if n%50 == 0 {
			w.chain.Mine()
			w.now = w.now.Add(w.cfg.Poll)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// A batch of any number of requests costs three round trips to the store. The
// executor reads the requests, writes their signatures together with earlier
// outcomes, and writes the node's answers.
func TestThreeRoundTripsPerBatch(t *testing.T) {
	for _, k := range []int{1, 10, 50} {
		w := newWorld(t, 1, 0)
		w.cfg.Batch, w.cfg.MaxInFlight, w.cfg.MaxUnsure, w.cfg.LeaseFor = 50, 500, 500, 24*time.Hour
		var last eoa.Report
		w.cfg.Observe = func(r eoa.Report) { last = r }
		e := w.executor(t, w.store, w.chain)
		for i := range 30 {
			var q []eoa.Request
			for n := range k {
				q = append(q, request(fmt.Sprint(i, "/", n)))
			}
			_, err := e.Submit(context.Background(), q...)
			require.NoError(t, err)
			w.step(t, e)
			w.chain.Mine()
			require.Equal(t, k, last.Sent)
			if i > 0 { // the first one takes the account and loads it
				require.LessOrEqual(t, last.Commits+last.Reads, 3)
			}
		}
		require.Positive(t, last.Ended)
	}
}
