package txpool

import (
	"context"
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

// Transactions that a failure puts behind a gap stay. A sender with more than its
// share there makes way.
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
	require.NoError(t, p.Check())
	require.Equal(t, "-qqqqqqq", statuses(p, 0, 8))
	add(t, p, tx(0, 0, 60))
	require.Equal(t, "pppppppp", statuses(p, 0, 8))
}

// A large newcomer behind a gap cannot clear the room of many small ones.
func TestQueueVictimsAreFew(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) {
		tiny(64, 64)(c)
		c.MaxTxSize, c.MaxBytes, c.MaxPerSender = 20_000, 55_000, 64
	})
	for n := range uint64(50) {
		add(t, p, tx(60, n+1, 2))
	}
	refuse(t, p, padded(0, 1, 15_000), ErrPoolFull)
	add(t, p, padded(0, 1, 500))
}

// Junk behind gaps costs nothing and takes no room from others: not from
// transactions behind gaps, and not from those that a failure puts there (T5).
func TestJunkBehindGapsDisplacesNothing(t *testing.T) {
	p := newPool(t, newWorld(), tiny(40, 16))
	for n := range uint64(16) {
		add(t, p, tx(0, n, 50))
	}
	for i := range 16 {
		add(t, p, tx(1+i, 1, 50))
	}
	for i := range 40 {
		refuse(t, p, tx(20+i, 1, 1000), ErrPoolFull)
	}
	s := p.Build(context.Background(), Budget{})
	require.Equal(t, tx(0, 0, 50).Hash(), s.Next().Hash())
	s.Fail(errTest)
	require.NoError(t, s.Cancel())
	require.Equal(t, "-qqqqqqqqqqqqqqq", statuses(p, 0, 16))
	for i := range 16 {
		require.Equal(t, "-q", statuses(p, 1+i, 2))
	}
	require.NoError(t, p.Check())
}

// Transactions that kept their room make way in a full pool for newcomers that
// run.
func TestIdleMakeWayForThoseThatRun(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, tiny(6, 2))
	for i := range 10 { // more than all caps together
		add(t, p, tx(i, 0, 5), tx(i, 1, 5))
		l := p.Drain(Budget{})
		require.NoError(t, l.Reject(tx(i, 0, 5).Hash(), errTest))
		require.NoError(t, l.Return(tx(i, 1, 5).Hash()))
		require.NoError(t, l.Release())
	}
	require.Equal(t, 9, p.Stats().Queued, "one had to make way already")
	for i := range 6 {
		add(t, p, tx(20+i, 0, 2))
	}
	require.Equal(t, 6, p.Stats().Pending)
	require.Equal(t, 4, p.Stats().Queued)
	require.NoError(t, p.Check())
}
