package evmrollup

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
)

// TestInterval: a block is due when the interval since the last one has passed, also without
// transactions and without automine, and until the interval is 0.
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(Chain)
		due := func() (order, bool) { return c.production.due(7, demand{full: 5}) }
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
		c.production.made(1, nil)
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
	require.EqualValues(t, 2, r.Mine(1, 0))
	require.NoError(t, r.Apply(t.Context(), first))
	second := r.propose(t)
	require.Len(t, second.Body.Transactions(), 1)
	require.NoError(t, r.Apply(t.Context(), second))
	require.EqualValues(t, 3, r.Mine(1, 0), "none is being made")
}

// After blocks that were faster than one per second, IncreaseTime moves the next block as far
// from the newest one as after slow blocks.
func TestIncreaseTimeAfterFastBlocks(t *testing.T) {
	r := recovered(t, keepNothing)
	r.SetApart(1)
	mine := func(blocks uint64) (at uint64) {
		r.Mine(blocks, 0)
		for range blocks {
			b := r.propose(t)
			require.NoError(t, r.Apply(t.Context(), b))
			at = b.Body.Time()
		}
		return at
	}
	newest := mine(1000)
	_, err := r.IncreaseTime(60)
	require.NoError(t, err)
	require.GreaterOrEqual(t, mine(1), newest+60)
}

// Blocks of Mine with an interval are made without a call for each of them, also if some are
// undone. Calls at the same time do not mix their intervals.
func TestMineWithAnInterval(t *testing.T) {
	r := recovered(t, keepNothing)
	r.SetApart(1)
	require.EqualValues(t, 3, r.Mine(3, 60))
	require.EqualValues(t, 5, r.Mine(2, 7))
	times := []uint64{r.addBlock(t).Body.Time()}
	var made []builder.Block[*Block]
	for range 2 {
		made = append(made, r.addBlock(t))
	}
	require.NoError(t, r.Undo(t.Context(), made[1]))
	require.NoError(t, r.Undo(t.Context(), made[0]))
	for range 5 {
		if len(times) == 5 {
			r.Mine(1, 60)
		}
		times = append(times, r.addBlock(t).Body.Time())
	}
	for i, want := range []uint64{60, 60, 1, 7, 1} {
		require.Equal(t, want, times[i+1]-times[i], i)
	}
	r.production.final(4)
	require.Len(t, r.production.spaced, 1)
	r.production.final(5)
	require.Empty(t, r.production.spaced)
}
