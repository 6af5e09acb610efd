package riverjobs_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/jobs/riverjobs"
)

// counted is a store that counts what it is asked.
type counted struct {
	eoa.Store
	due, leases atomic.Int64
}

func (s *counted) Due(ctx context.Context, now time.Time, limit int) ([]eoa.Account, error) {
	s.due.Add(1)
	return s.Store.Due(ctx, now, limit)
}

func (s *counted) Acquire(ctx context.Context, a eoa.Account, owner string, now time.Time, ttl time.Duration) (eoa.Lease, error) {
	s.leases.Add(1)
	return s.Store.Acquire(ctx, a, owner, now, ttl)
}

// Idle accounts have no job and no lease, and cause no more queries in PostgreSQL than a
// process without accounts. The time is counted in sweeps, which ask the store.
func TestIdle(t *testing.T) {
	const accounts, sweeps = 100, 4
	w := newWorld(t, accounts)
	store := &counted{Store: w.store}
	w.store = store
	w.cfg.Poll, w.cfg.Sweep = riverjobs.DefaultConfig().Poll, 500*time.Millisecond
	w.mine()
	e, _ := w.running()
	sweep := func() {
		until := store.due.Load() + sweeps
		w.until(func() bool { return store.due.Load() >= until }, "some sweeps")
	}
	measured := func() int64 {
		before := w.queries.Load()
		sweep()
		return w.queries.Load() - before
	}
	sweep()
	empty := measured()
	for _, a := range w.accounts {
		_, err := e.Submit(t.Context(), a, request(a.Address.Hex()))
		require.NoError(t, err)
	}
	w.land(accounts)
	w.idle()
	sweep()
	leases := store.leases.Load()
	idle := measured()
	t.Logf("queries in %d sweeps: %d without accounts, %d with %d idle ones", sweeps, empty, idle, accounts)
	require.Equal(t, leases, store.leases.Load(), "no process looked at an idle account")
	require.Less(t, idle, empty+accounts, "less than one query for each account")
}
