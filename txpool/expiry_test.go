package txpool_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// Events of transactions that Add finds expired are delivered before it
// returns.
func TestExpiredInAddIsDelivered(t *testing.T) {
	var dropped []*types.Transaction
	h := newHost(t, func(c *txpool.Config) {
		c.Observe = func(e txpool.Event) {
			if e.Kind == txpool.Dropped {
				dropped = append(dropped, e.Tx)
			}
		}
	})
	old := transfer(0, 0, 5, 0)
	require.NoError(t, h.pool.Add(old))
	h.now = h.now.Add(h.cfg.Lifetime + time.Minute)
	require.NoError(t, h.pool.Add(transfer(1, 0, 5, 0)))
	require.Equal(t, txpool.StatusUnknown, h.pool.Status(old.Hash()))
	require.Len(t, dropped, 1)
}
