package txpool_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// A commit that the journal refused is repeated after the host has given a
// transaction back. The transaction is in the pool then, and after a restart.
func TestReturnedBetweenCommits(t *testing.T) {
	for name, sealed := range map[string]bool{"sealed": true, "not sealed": false} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, nil)
			kept, back := transfer(0, 0, 9, 0), transfer(1, 0, 5, 0)
			require.NoError(t, h.pool.Add(kept))
			require.NoError(t, h.pool.Add(back))
			s := h.pool.Build(context.Background(), txpool.Budget{})
			for s.Next() != nil {
			}
			l := s.Lease()
			if sealed {
				_, err := s.Seal()
				require.NoError(t, err)
			}
			h.tape.fail = true
			require.ErrorIs(t, s.Commit(), txpool.ErrJournal)
			h.tape.fail = false
			require.NoError(t, l.Return(back.Hash()))
			require.NoError(t, l.Commit())
			require.Equal(t, txpool.StatusPending, h.pool.Status(back.Hash()))
			h.restart()
			require.Equal(t, txpool.StatusPending, h.pool.Status(back.Hash()), "the restart lost it")
			require.Equal(t, txpool.StatusUnknown, h.pool.Status(kept.Hash()))
		})
	}
}

// A commit that is repeated and then torn opens the lease again with each
// transaction once.
func TestTornRepeatedCommit(t *testing.T) {
	h := newHost(t, nil)
	require.NoError(t, h.pool.Add(transfer(0, 0, 9, 0)))
	s := h.pool.Build(context.Background(), txpool.Budget{})
	require.NotNil(t, s.Next())
	h.tape.fail = true
	require.ErrorIs(t, s.Commit(), txpool.ErrJournal)
	h.tape.fail = false
	before := len(h.tape.records)
	require.NoError(t, s.Commit())
	h.tape.records = h.tape.records[:before+1] // the commit was begun
	h.restart()
	require.Len(t, h.pool.Leases(), 1)
	require.Len(t, h.pool.Leases()[0].Transactions(), 1)
}
