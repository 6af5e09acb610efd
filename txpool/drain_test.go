package txpool_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// While a block takes everything that is pending, newcomers find room.
func TestRoomWhenAllLeased(t *testing.T) {
	s := newSiege(t, 4, func(c *txpool.Config) { c.SurgeSlope = 0 })
	for i := range 4 {
		s.honour(transfer(i, 0, 5, 0))
	}
	lease := s.pool.Drain(txpool.Budget{})
	require.Len(t, lease.Transactions(), 4)
	require.EqualValues(t, gwei, s.pool.Stats().Watermark)
	for i := range 4 {
		s.honour(transfer(4+i, 0, 2, 0))
	}
	require.NoError(t, lease.Release())
	require.Equal(t, 8, s.pool.Stats().Pending, "none is dropped by count")
}

// Each transaction that a drain drops or cannot fit is listed once.
func TestSkippedOnce(t *testing.T) {
	s := newSiege(t, 16, nil)
	s.honour(transfer(0, 0, 9, 0))
	s.honour(hungry(1, 0, 8, 1_000_000))
	s.mu.Lock()
	s.chain[address(0)] = txpool.Account{} // drifted
	s.mu.Unlock()
	l := s.pool.Drain(txpool.Budget{Gas: 100_000})
	require.Empty(t, l.Transactions())
	seen := map[common.Hash]int{}
	for _, k := range l.Skipped() {
		seen[k.Tx.Hash()]++
		require.Equal(t, 1, seen[k.Tx.Hash()], "%v twice among the skipped: %v", k.Reason, l.Skipped())
	}
}
