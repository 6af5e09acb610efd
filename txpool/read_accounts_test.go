package txpool

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/bubble"
)

// distant is a State that takes 20 ms for each account.
type distant struct{ *world }

func (d distant) Account(a common.Address) (Account, error) {
	<-time.After(20 * time.Millisecond)
	return d.world.Account(a)
}

// If State is slow, sessions and Reset read many accounts at a time.
func TestSlowStateIsReadConcurrently(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const n = 64
		w := newWorld()
		p, err := New(DefaultConfig(chainID), distant{w})
		require.NoError(t, err)
		for i := range n {
			require.NoError(t, p.Add(tx(i, 0, 5)))
		}
		began := time.Now()
		require.Len(t, p.Drain(Budget{}).Transactions(), n)
		require.Equal(t, 2*n/readers*20*time.Millisecond, time.Since(began), "the first account of each group, and then the others")
		began = time.Now()
		p.Reset(Head{})
		require.Less(t, time.Since(began), n/8*20*time.Millisecond)
	})
}

// A panic of State is that of the caller.
func TestSlowStatePanics(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld()
		d := distant{w}
		broken := false
		p, err := New(DefaultConfig(chainID), StateFunc(func(a common.Address) (Account, error) {
			if broken && a == addr(5) {
				panic("no disk")
			}
			return d.Account(a)
		}))
		require.NoError(t, err)
		for i := range 10 {
			require.NoError(t, p.Add(tx(i, 0, 5)))
		}
		broken = true
		require.PanicsWithValue(t, "no disk", func() { p.Reset(Head{}) })
		broken = false
		p.Reset(Head{})
		require.NoError(t, p.Check())
	})
}
