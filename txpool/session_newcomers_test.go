package txpool_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/txpool"
)

// A running session takes a replacement at its new price.
func TestSessionReplacement(t *testing.T) {
	s := newSiege(t, 100, roomy)
	for i := range 4 {
		s.honour(transfer(i, 0, int64(10-i), 0))
	}
	b := s.pool.Build(context.Background(), txpool.Budget{})
	require.NotNil(t, b.Next())
	dear := transfer(3, 0, 50, 0)
	require.NoError(t, s.pool.Add(dear))
	require.Equal(t, dear.Hash(), b.Next().Hash(), "the session does not see the new price")
}

// A session that has taken everything goes on with newcomers.
func TestNewcomersAfterTheLast(t *testing.T) {
	s := newSiege(t, 100, roomy)
	addAll(s, chain(0, 0, 3, 50, 0)...)
	b := s.pool.Build(context.Background(), txpool.Budget{})
	for range 3 {
		require.NotNil(t, b.Next())
	}
	require.Nil(t, b.Next())
	other := transfer(1, 0, 5, 0)
	require.NoError(t, s.pool.Add(other))
	require.Equal(t, other.Hash(), b.Next().Hash())
}

// Transactions that request as much gas as is allowed evict honest ones. In each
// block, one newcomer that pays more goes first. If MaxTxGas is below the
// block's limit, they start behind it, and pay.
func TestSiegeSessionHogsBehindNewcomers(t *testing.T) {
	const slots, block, most = 50, 16_000_000, 8_000_000
	s := besieged(t, slots, func(cfg *txpool.Config) { roomy(cfg); cfg.BlockGasLimit, cfg.MaxTxGas = block, most })
	for i := range slots {
		addAll(s, hungry(s.rogue(i, rich), 0, 8, most))
	}
	lost := 0.0
	for hash, tx := range s.honest {
		if s.pool.Get(hash) == nil {
			lost += fee(tx, 0)
		}
	}
	require.Positive(t, lost, "the attack does nothing")
	for n := range slots {
		s.honour(transfer(500+n, 0, 10, 0))
		s.session(txpool.Budget{Gas: block}, nil, nil)
	}
	require.GreaterOrEqual(t, s.paid, lambda*lost, "in %d blocks the attacker pays %.0f gwei; it displaced %.0f, and fills the pool", slots, s.paid, lost)
}

// A base fee falls, and there is room for some of the transactions that pay it
// now. The best ones come in, and the earliest of equal ones. The others wait
// on, because none of them has to give way.
func TestBaseFeePromotesBest(t *testing.T) {
	for _, first := range []int64{9, 5} {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			s := newSiege(t, 1000, func(c *txpool.Config) { roomy(c); c.MaxPending = 5 })
			s.setBaseFee(50)
			s.honour(transfer(100, 0, 1000, 0))
			var waiting []*types.Transaction
			for i := range 8 {
				price := int64(5)
				if i < 4 {
					price = first
				}
				waiting = append(waiting, transfer(i, 0, price, 0))
				s.honour(waiting[i])
			}
			require.Equal(t, 8, s.pool.Stats().Parked)
			s.setBaseFee(1)
			for i, tx := range waiting {
				want := txpool.StatusParked
				if i < 4 {
					want = txpool.StatusPending
				}
				require.Equal(t, want, s.pool.Status(tx.Hash()), "transaction %d of %v", i, tx.GasPrice())
			}
		})
	}
}
