package txpool_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// A lease that the host closes ends its session. Otherwise the session would
// put more transactions into a lease that nothing closes.
func TestClosedLeaseEndsSession(t *testing.T) {
	for name, closeLease := range map[string]func(*txpool.Lease) error{
		"commit": (*txpool.Lease).Commit, "release": (*txpool.Lease).Release,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, nil)
			first, second := transfer(0, 0, 9, 0), transfer(1, 0, 5, 0)
			require.NoError(t, h.pool.Add(first))
			require.NoError(t, h.pool.Add(second))
			s := h.pool.Build(context.Background(), txpool.Budget{})
			require.Equal(t, first.Hash(), s.Next().Hash())
			require.NoError(t, closeLease(s.Lease()))
			require.Nil(t, s.Next())
			require.Equal(t, txpool.StatusPending, h.pool.Status(second.Hash()))
			require.Zero(t, h.pool.Stats().Leased)
			require.NoError(t, h.pool.Check())
		})
	}
}

// A session whose context is done ends when its lease expires, and its sender's
// other transactions get their places again.
func TestExpiredLeaseEndsSession(t *testing.T) {
	h := newHost(t, nil)
	poor, rich := transfer(0, 0, 2, 0), transfer(0, 1, 20, 0)
	require.NoError(t, h.pool.Add(poor))
	require.NoError(t, h.pool.Add(rich))
	ctx, cancel := context.WithCancel(context.Background())
	s := h.pool.Build(ctx, txpool.Budget{})
	require.Equal(t, poor.Hash(), s.Next().Hash())
	cancel()
	h.now = h.now.Add(2 * h.cfg.LeaseLifetime)
	h.pool.CleanupExpired()
	require.Zero(t, h.pool.Stats().Leases)
	require.ErrorIs(t, s.Cancel(), txpool.ErrLeaseClosed, "the session has ended")
	require.NoError(t, h.pool.Check())
}

// A transaction that the host returns from the lease of a running session is
// not taken again: it would be in the block twice.
func TestReturnedDuringSession(t *testing.T) {
	h := newHost(t, nil)
	back, child := transfer(0, 0, 9, 0), transfer(0, 1, 9, 0)
	require.NoError(t, h.pool.Add(back))
	require.NoError(t, h.pool.Add(child))
	s := h.pool.Build(context.Background(), txpool.Budget{})
	require.Equal(t, back.Hash(), s.Next().Hash())
	require.NoError(t, s.Lease().Return(back.Hash()))
	require.Nil(t, s.Next())
	require.Empty(t, s.Lease().Transactions())
	require.Equal(t, txpool.SkipLater, s.Skipped()[0].Reason)
	require.Equal(t, txpool.SkipAncestor, s.Skipped()[1].Reason)
}

// Transactions after one that the host rejected from the lease are invalid, and
// one that takes its place would come after them.
func TestRejectedDuringSession(t *testing.T) {
	for name, reject := range map[string]func(*txpool.Pool, *txpool.Session) error{
		"lease": func(_ *txpool.Pool, s *txpool.Session) error {
			return s.Lease().Reject(s.Lease().Transactions()[0].Hash(), context.Canceled)
		},
		"pool": func(p *txpool.Pool, s *txpool.Session) error {
			return p.Reject(s.Lease().Transactions()[0].Hash(), context.Canceled)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, nil)
			for _, tx := range chain(0, 0, 3, 9, 0) {
				require.NoError(t, h.pool.Add(tx))
			}
			s := h.pool.Build(context.Background(), txpool.Budget{})
			require.NotNil(t, s.Next())
			require.NotNil(t, s.Next())
			require.NoError(t, reject(h.pool, s))
			require.NoError(t, h.pool.Add(transfer(0, 0, 20, 0)))
			require.Nil(t, s.Next(), "nonce 0 after nonce 1")
		})
	}
}
