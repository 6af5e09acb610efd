package txpool

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// TestI6Replacement: both caps, by an eighth, rounded up, at least 1 wei, and not much longer.
func TestI6Replacement(t *testing.T) {
	priced := func(tip, feeCap int64, zeros int) *types.Transaction {
		return sign(0, &types.DynamicFeeTx{ChainID: chainID, GasTipCap: big.NewInt(tip), GasFeeCap: big.NewInt(feeCap), Gas: 50_000, To: there, Data: make([]byte, zeros)})
	}
	for name, c := range map[string]struct {
		old, new *types.Transaction
		want     error
		text     string
	}{
		"enough":       {priced(2*gwei, 4*gwei, 0), priced(2.25*gwei, 4.5*gwei, 0), nil, ""},
		"tip too low":  {priced(2*gwei, 4*gwei, 0), priced(2.25*gwei-1, 5*gwei, 0), ErrReplaceUnderpriced, "replacement transaction underpriced: maxPriorityFeePerGas 2249999999, want ≥ 2250000000"},
		"cap too low":  {priced(2*gwei, 4*gwei, 0), priced(3*gwei, 4.5*gwei-1, 0), ErrReplaceUnderpriced, "maxFeePerGas 4499999999, want ≥ 4500000000"},
		"rounded up":   {priced(gwei+1, gwei+1, 0), priced(1_125_000_001, 1_125_000_002, 0), ErrReplaceUnderpriced, "want ≥ 1125000002"},
		"same":         {priced(2*gwei, 4*gwei, 0), priced(2*gwei, 4*gwei, 1), ErrReplaceUnderpriced, ""},
		"a bit longer": {priced(2*gwei, 4*gwei, 0), priced(3*gwei, 6*gwei, 20), nil, ""},
		"much longer":  {priced(2*gwei, 4*gwei, 0), priced(3*gwei, 6*gwei, 100), ErrReplaceOversized, "replacement transaction oversized"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.add(c.old)
			if c.want == nil {
				w.add(c.new)
				require.Nil(t, w.Get(c.old.Hash()))
				return
			}
			w.refuse(c.new, c.want, c.text)
			require.NotNil(t, w.Get(c.old.Hash()))
		})
	}
	t.Run("at least 1 wei", func(t *testing.T) {
		cfg := DefaultConfig(chainID)
		require.EqualValues(t, 1, cfg.bumped(0))
		require.EqualValues(t, 2, cfg.bumped(1))
		cfg.PriceBump = 0
		require.EqualValues(t, 101, cfg.bumped(100))
	})
	t.Run("no overflow", func(t *testing.T) { // prices above 2^64-1 wei are not distinguished
		cfg := DefaultConfig(chainID)
		cfg.PriceBump = maxShare
		require.EqualValues(t, int64(11<<59), cfg.bumped(1<<59))
		require.EqualValues(t, uint64(math.MaxUint64), cfg.bumped(math.MaxUint64))
		huge := func(tip int64) *entry { return &entry{feeCap: math.MaxUint64, tip: uint64(tip), tx: tx(0, 0, tip)} }
		require.ErrorIs(t, cfg.checkBump(huge(1), huge(100)), ErrReplaceUnderpriced)
	})
	t.Run("the chain stays affordable", func(t *testing.T) {
		w := newWorld(t)
		w.balance(0, 10*txGas*gwei)
		w.add(tx(0, 0, 2), tx(0, 1, 5))
		w.refuse(tx(0, 0, 6), ErrInsufficientFunds)
		w.add(tx(0, 0, 5))
	})
}

// With geth's rule a replacement pays a tenth more, rounded down, and at least 1 wei.
func TestBumpRoundedDown(t *testing.T) {
	cfg := DefaultConfig(chainID)
	cfg.PriceBump, cfg.RoundBumpDown = 100, true
	for old, want := range map[uint64]uint64{0: 1, 1: 2, 9: 10, 10: 11, 19: 20, 29: 31, 1_234_567_891: 1_358_024_680, math.MaxUint64: math.MaxUint64} {
		require.Equal(t, want, cfg.bumped(old), old)
	}
}

// A replacement pays at least 1 wei more, also without a bump.
func TestReplacementPaysMore(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.PriceBump = 0 })
	w.add(tx(0, 0, 2))
	w.refuse(heavy(0, 0, 2, 2, 1), ErrReplaceUnderpriced)
}

// A replacement may grow by a quarter.
func TestMaxSizeGrowth(t *testing.T) {
	sized := func(price int64, zeros int) *types.Transaction { return legacy(0, 0, gweis(price), 100_000, zeros) }
	old := sized(2, 100)
	largest := 100
	for sized(3, largest+1).Size() <= old.Size()+old.Size()/4 {
		largest++
	}
	w := newWorld(t)
	require.Equal(t, old.Size()+old.Size()/4, sized(3, largest).Size())
	w.add(old)
	w.refuse(sized(3, largest+1), ErrReplaceOversized)
	w.add(sized(3, largest))
}

// A nonce can be replaced so often within a while; the replaced one does not come back.
func TestReplacementLimitAndTombstone(t *testing.T) {
	w := newWorld(t)
	first, next := tx(0, 0, 20), tx(0, 0, 999)
	w.add(first)
	price := int64(20)
	for range maxReplacements {
		price += price/8 + 1
		w.add(tx(0, 0, price))
	}
	w.refuse(next, ErrReplaceTooOften, "nonce 0 was replaced 10 times, try again in 1m0s")
	w.advance(time.Minute)
	w.add(next)
	w.remove(next)
	w.advance(8 * time.Minute)
	w.refuse(first, ErrReplaced, "try again in 1m0s")
	w.advance(time.Minute)
	w.add(first)
}

// The window of replacements begins with the first one. Later ones do not
// prolong it.
func TestReplacementWindowBeginsOnce(t *testing.T) {
	w := newWorld(t)
	price := int64(20)
	replace := func() {
		price += price/8 + 1
		w.add(tx(0, 0, price))
	}
	w.add(tx(0, 0, price))
	replace()
	w.advance(40 * time.Second)
	for range maxReplacements - 1 {
		replace()
	}
	w.refuse(tx(0, 0, 999), ErrReplaceTooOften)
	w.advance(20 * time.Second)
	replace()
}

// The replacement of a transaction that came back needs no room in the caps. It
// evicts nothing, also if it makes the transaction run.
func TestReplacementOfReturned(t *testing.T) {
	w := newWorld(t, tiny(2, 2))
	w.returned(capped(0, 0, 2, 2))
	w.baseFee(3)
	w.add(tx(1, 0, 8), tx(2, 0, 8))
	w.add(capped(0, 0, 4, 6))
	w.firsts("ppp")
	require.Equal(t, 1, w.Stats().Exempt)
}

// A replacement that runs, of a transaction that was parked, needs the room of a
// newcomer.
func TestReplacementThatUnparksNeedsRoom(t *testing.T) {
	w := newWorld(t, tiny(1, 2))
	w.baseFee(3)
	w.add(capped(0, 0, 2, 2), tx(1, 0, 20))
	w.refuse(capped(0, 0, 4, 8), ErrPoolFull)
	w.firsts("kp")
	w.add(capped(0, 0, 30, 40))
	w.firsts("p-")
}

// A pool that is above its bound after a restart with smaller caps takes
// replacements of the same size: they make it no larger.
func TestReplacementAboveTheBound(t *testing.T) {
	for name, smaller := range map[string]func(*Config){
		"count": tiny(1, 1),
		"bytes": narrow(150, 150),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for i := range 8 {
				w.add(tx(i, 0, 2))
			}
			w.restart(smaller)
			require.Equal(t, 8, w.Size())
			w.refuse(tx(8, 0, 9), ErrPoolFull)
			require.Equal(t, weigh(tx(7, 0, 2)), weigh(tx(7, 0, 3)))
			w.add(tx(7, 0, 3))
			require.Equal(t, 8, w.Size())
		})
	}
}

// A replacement displaces no later transaction of the same sender.
func TestReplacementKeepsItsSuccessors(t *testing.T) {
	first, second := padded(0, 0, 2, 100), padded(0, 1, 2, 100)
	w := newWorld(t, narrow(300, weigh(first, second)))
	w.add(first, second)
	w.refuse(padded(0, 0, 9, 120), ErrPoolFull, "none of 2 transactions can be displaced")
}

// A replacement that grew, and displaces another transaction, must add more than
// that one is worth.
func TestGrownReplacementAddsMore(t *testing.T) {
	const small, grown = 100, 120
	first, second := priced(0, 2*gwei, small), priced(1, 2*gwei, small)
	w := newWorld(t, narrow(300, weigh(first, second)))
	w.add(first, second)
	sum := 2 * 2 * gwei * work(small) // of the replaced one and the victim
	enough := sum/work(grown) + 1
	w.refuse(priced(0, enough-1, grown), ErrPoolFull, "to displace 1 transactions")
	w.add(priced(0, enough, grown))
	w.firsts("p-")
}

// A surge applies to newcomers only: a transaction in the pool can always be
// replaced at the floor.
func TestSurgeSparesReplacements(t *testing.T) {
	w := newWorld(t, tiny(10, 10), func(c *Config) { c.SurgeSlope = 2000 })
	for i := range 7 {
		w.add(tx(i, 0, 1))
	}
	w.add(tx(10, 0, 5), tx(11, 0, 5), tx(12, 0, 5))
	require.Greater(t, w.Stats().Surge, uint64(1000))
	w.add(legacy(0, 0, big.NewInt(1.2*gwei), txGas, 0))
}
