package txpool

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// No sender can keep the room behind gaps: the sender with most transactions
// there gives way.
func TestQueueIsShared(t *testing.T) {
	p := newPool(t, newWorld(), tiny(16, 16))
	for n := uint64(1); n <= 16; n++ {
		_ = p.Add(tx(60, n, 2)) // runs never
	}
	require.Equal(t, 16, p.Stats().Queued)
	for i := range 8 {
		add(t, p, tx(i, 1, 2))
		require.Equal(t, 16, p.Stats().Queued)
	}
	require.Equal(t, "-qqqqqqqq--------", statuses(p, 60, 17))
	add(t, p, tx(0, 2, 2))
	refuse(t, p, tx(60, 8, 2), ErrPoolFull)
}

// Transactions that a failure puts behind a gap stay, and those of a sender
// with more there go.
func TestDemotionKeepsTheModest(t *testing.T) {
	p := newPool(t, newWorld(), tiny(16, 16))
	for n := uint64(1); n <= 16; n++ {
		_ = p.Add(tx(60, n, 2))
	}
	for n := range uint64(8) {
		add(t, p, tx(0, n, 50))
	}
	l := p.Drain(Budget{Count: 1})
	require.NoError(t, l.Reject(tx(0, 0, 50).Hash(), errTest))
	require.NoError(t, p.CheckAll())
	require.Equal(t, "-qqqqqqq", statuses(p, 0, 8))
	add(t, p, tx(0, 0, 60))
	require.Equal(t, "pppppppp", statuses(p, 0, 8))
}

// A large newcomer behind a gap cannot clear the room of many small ones.
func TestQueueVictimsAreFew(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) {
		tiny(64, 64)(c)
		c.MaxTxSize, c.MaxQueuedBytes = 20_000, 55_000
	})
	for i := range 50 {
		add(t, p, tx(i, 1, 2))
	}
	refuse(t, p, padded(60, 1, 15_000), ErrPoolFull)
	add(t, p, padded(60, 1, 500))
}
