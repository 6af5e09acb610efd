package txpool_test

import (
	"math"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// All room is leased: no price makes room.
func TestWatermarkWhenAllLeased(t *testing.T) {
	s := newSiege(t, 4, func(c *txpool.Config) { c.SurgeSlope = 0 })
	for i := range 4 {
		s.honour(transfer(i, 0, 5, 0))
	}
	s.pool.Drain(txpool.Budget{})
	require.EqualValues(t, uint64(math.MaxUint64), s.pool.Stats().Watermark)
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
