package txpool

import (
	"math/big"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// idle returns a pool with the machine's clock.
func idle(t *testing.T, change func(*Config)) *Pool {
	cfg := DefaultConfig(chainID)
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg, StateFunc(func(common.Address) (Account, error) {
		return Account{Balance: *uint256.NewInt(1e18)}, nil
	}))
	require.NoError(t, err)
	return p
}

// A pool that is not called drops expired transactions and releases expired
// leases by itself.
func TestTimerExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := idle(t, nil)
		add(t, p, tx(0, 0, 2), tx(1, 0, 2))
		p.Drain(Budget{Count: 1})
		require.Equal(t, 1, p.Stats().Leased)
		time.Sleep(2*p.cfg.LeaseLifetime + time.Second)
		require.Zero(t, p.Stats().Leased)
		time.Sleep(p.cfg.Lifetime + p.cfg.Lifetime/8)
		require.Zero(t, p.Size())
		d, known := p.Departure(tx(0, 0, 2).Hash())
		require.True(t, known)
		require.ErrorIs(t, d.Reason, ErrExpired)
		p.Close()
	})
}

// After Close the pool calls no function of the host by itself.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refuse atomic.Bool
		var calls atomic.Int64
		p := idle(t, func(c *Config) {
			c.Precheck = func(*types.Transaction) error {
				if calls.Add(1); refuse.Load() {
					return errTest
				}
				return nil
			}
		})
		add(t, p, tx(0, 0, 2))
		l := p.Drain(Budget{})
		block := blockOf(l.Transactions()...)
		require.NoError(t, l.Commit())
		refuse.Store(true)
		require.Len(t, p.Reset(Head{Reverted: []Block{block}, BaseFee: big.NewInt(1)}), 1, "it is held aside, and tried again")
		before := calls.Load()
		time.Sleep(10 * time.Minute)
		require.Greater(t, calls.Load(), before)
		p.Close()
		before = calls.Load()
		time.Sleep(10 * time.Minute)
		require.Equal(t, before, calls.Load())
	})
}

// A function of the host that panics does not end the process from the pool's
// timer.
func TestTimerSurvivesPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := idle(t, func(c *Config) {
			c.Observe = func(e Event) {
				if e.Kind == Dropped {
					panic("observer")
				}
			}
		})
		require.NoError(t, p.Add(tx(0, 0, 2)))
		time.Sleep(2 * p.cfg.Lifetime)
		require.Zero(t, p.Size())
		p.Close()
	})
}
