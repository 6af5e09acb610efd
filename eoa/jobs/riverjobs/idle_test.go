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

// Idle accounts have no job and no lease, and cause no more transactions in
// PostgreSQL than a process without accounts.
func TestIdle(t *testing.T) {
	const accounts, span = 100, 4 * time.Second
	w := newWorld(t, accounts)
	store := &counted{Store: w.store}
	w.store = store
	w.cfg.Poll, w.cfg.Sweep = riverjobs.DefaultConfig().Poll, riverjobs.DefaultConfig().Sweep
	w.mine()
	e, _ := w.running()
	rate := func() float64 { // the server's counts lag by a second
		before := w.transactions()
		time.Sleep(span)
		return float64(w.transactions()-before) / span.Seconds()
	}
	time.Sleep(span / 2)
	empty := rate()
	for _, a := range w.accounts {
		_, err := e.Submit(t.Context(), a, request(a.Address.Hex()))
		require.NoError(t, err)
	}
	w.land(accounts)
	w.idle()
	time.Sleep(span / 2)
	due, leases := store.due.Load(), store.leases.Load()
	idle := rate()
	due, leases = store.due.Load()-due, store.leases.Load()-leases
	t.Logf("transactions in PostgreSQL each second: %.1f without accounts, %.1f with %d idle ones; Due was asked %d times in %v", empty, idle, accounts, due, span)
	require.Zero(t, leases, "nobody looked at an idle account")
	require.LessOrEqual(t, due, int64(span/w.cfg.Sweep)+1)
	require.Less(t, idle, empty+5, "one transaction a second for a twentieth of the accounts")
}

// transactions is how many the server has counted.
func (w *world) transactions() (n int64) {
	require.NoError(w.t, w.pool.QueryRow(context.Background(), "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()").Scan(&n))
	return n
}
