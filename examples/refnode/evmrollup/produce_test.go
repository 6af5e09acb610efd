package evmrollup

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestInterval: a block is due when the interval since the last one has passed, also without
// transactions and without automine, and until the interval is 0.
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(Chain)
		due := func() (order, bool) { return c.production.due(7, 0, 5) }
		never := func(times int) {
			t.Helper()
			for range times {
				time.Sleep(time.Second)
				_, due := due()
				require.False(t, due)
			}
		}
		never(3)
		c.SetAutomine(false)
		c.SetInterval(3 * time.Second)
		never(2)
		time.Sleep(time.Second)
		for range 2 { // until there is a block
			o, due := due()
			require.True(t, due)
			require.Equal(t, order{empty: true}, o)
		}
		c.production.made(1)
		never(2)
		c.SetInterval(0)
		never(3)
	})
}

// TestMineBeginsABlock: the last block of Mine begins after the call. One that is being made
// already does not count, because it does not have what came before the call.
func TestMineBeginsABlock(t *testing.T) {
	r := recovered(t, keepNothing)
	require.NoError(t, r.SendTransaction(pay(0, 0, 1)))
	first := r.propose(t)
	require.NoError(t, r.SendTransaction(pay(1, 0, 1)))
	require.EqualValues(t, 2, r.Mine(1))
	require.NoError(t, r.Apply(t.Context(), first))
	second := r.propose(t)
	require.Len(t, second.Body.Transactions(), 1)
	require.NoError(t, r.Apply(t.Context(), second))
	require.EqualValues(t, 3, r.Mine(1), "none is being made")
}
