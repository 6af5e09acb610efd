package txpool

import (
	"math"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// paying returns a full block whose transactions paid the given prices in gwei.
func paying(prices ...int64) Block {
	b := Block{GasUsed: 30_000_000}
	for _, price := range prices {
		b.Transactions = append(b.Transactions, plain(0, 0, txGas, price))
	}
	return b
}

// The floor follows the median price included, smoothed, an eighth per block at most, and only with
// blocks.
func TestFloor(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.FloorWindow = 3 })
	w.add(tx(0, 0, 50))
	require.EqualValues(t, gwei, w.Stats().Floor, "a transaction moves nothing")
	w.tell(paying(1, 5, 100))
	require.EqualValues(t, 1.125*gwei, w.Stats().Floor, "the median is 5, the average 1.8")
	for range 200 {
		w.tell(paying(5000))
	}
	require.EqualValues(t, int64(1000*gwei), w.Stats().Floor, "the highest floor")
	w.refuse(tx(1, 0, 1), ErrUnderpriced, "pays 1000000000 wei per gas, want ≥ 1000000000000 (floor 1000000000000, base fee 0)")
	for range 200 {
		w.tell(Block{})
	}
	require.EqualValues(t, gwei, w.Stats().Floor, "empty blocks bring it down")
}

// The prices in blocks that are nearly empty do not raise the floor, because
// these blocks had room at any price.
func TestFloorNeedsFullBlocks(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.FloorWindow = 3 })
	used := func(gas, limit uint64) Block {
		return Block{Transactions: paying(100).Transactions, GasUsed: gas, GasLimit: limit}
	}
	for range 20 {
		w.tell(used(0, 0), used(5_000_000, 10_000_000))
	}
	require.EqualValues(t, gwei, w.Stats().Floor)
	for range 20 {
		w.tell(used(5_000_001, 10_000_000))
	}
	require.Greater(t, w.Stats().Floor, uint64(5*gwei))
}

// Property: the floor stays in its range and changes by at most an eighth per
// block; reverting blocks restores it.
func TestFloorIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig(chainID)
		cfg.MinGasPrice = rapid.Uint64().Draw(t, "min")
		cfg.FloorWindow = rapid.IntRange(0, 5).Draw(t, "window")
		f := newFees(&cfg)
		for range 30 {
			if rapid.Bool().Draw(t, "revert") {
				f.removeBlocks(rapid.IntRange(0, 3).Draw(t, "blocks"))
			}
			was := f.floor
			before := f.prices
			f.addBlock(rapid.Uint64().Draw(t, "median"))
			if cfg.FloorWindow > 0 {
				f.removeBlocks(1)
				if f.prices != before {
					t.Fatalf("a block taken back leaves %v, want %v", f.prices, before)
				}
				f.addBlock(rapid.Uint64().Draw(t, "another median"))
			}
			step := max(was/8, 1)
			if f.floor < cfg.MinGasPrice || f.floor > cfg.maxFloor() || f.floor > was && f.floor-was > step || was > f.floor && was-f.floor > step {
				t.Fatalf("floor went from %d to %d, range %d to %d", was, f.floor, cfg.MinGasPrice, cfg.maxFloor())
			}
			f.updateOccupancy(usage{rapid.IntRange(0, 5000).Draw(t, "count"), rapid.Uint64().Draw(t, "bytes")})
			if least := f.least(); least < f.floor {
				t.Fatalf("surge lowers the floor from %d to %d", f.floor, least)
			}
		}
	})
}

// Failed blocks reset the floor to its value before them.
func TestFloorGoesBack(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.FloorWindow, c.BlockGasLimit = 2, txGas })
	full := blockOf(tx(0, 0, 100))
	w.tell(full)
	require.Greater(t, w.Stats().Floor, uint64(gwei))
	w.reset(Head{Reverted: []Block{full}})
	require.EqualValues(t, gwei, w.Stats().Floor)
}

// A floor from the log is moved into the range of the new configuration.
func TestRestoredFloorIsInRange(t *testing.T) {
	for _, floor := range []uint64{1, 9000 * gwei} {
		w := newWorld(t, func(c *Config) { c.MinGasPrice = 2 * gwei })
		w.tape.records = [][]byte{(&prices{base: 1, floor: floor, average: floor}).record()}
		w.restart()
		require.Equal(t, min(max(floor, 2*gwei), 2000*gwei), w.Stats().Floor)
	}
}

// A transaction below the floor is parked, with all behind it. It returns when the floor falls.
func TestParking(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.FloorWindow = 1 })
	w.add(tx(0, 0, 1), tx(0, 1, 50), tx(1, 0, 3), tx(1, 1, 1))
	w.tell(paying(10))
	w.stands(0, "kk")
	w.stands(1, "pk")
	require.Equal(t, 3, w.Stats().Parked)
	require.Len(t, w.drain(Budget{}).Transactions(), 1)
	for range 50 {
		w.tell(Block{})
	}
	w.stands(0, "pp")
	w.stands(1, "pp")
}

// The base fee parks too, and changes what a transaction with a fee cap is worth.
func TestBaseFee(t *testing.T) {
	w := newWorld(t)
	w.add(capped(0, 0, 5, 10), capped(1, 0, 4, 30), capped(2, 0, 9, 9))
	w.offers(capped(2, 0, 9, 9), capped(0, 0, 5, 10), capped(1, 0, 4, 30))
	w.baseFee(8)
	w.offers(capped(1, 0, 4, 30), capped(0, 0, 5, 10), capped(2, 0, 9, 9)) // 4, 2 and 1
	w.baseFee(10)
	w.offers(capped(1, 0, 4, 30), capped(0, 0, 5, 10))
	w.has(StatusParked, capped(2, 0, 9, 9))
	w.add(capped(3, 0, 5, 9)) // under the base fee, over the floor
	w.has(StatusParked, capped(3, 0, 5, 9))
	w.baseFee(0)
	require.Zero(t, w.Stats().Parked)
}

// A fuller pool asks more of newcomers: 1 + 2·(occupancy − 0.7), and it takes a while to forget.
func TestSurge(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxPending, c.SurgeSlope = 10, 2000 })
	for i := range 8 {
		w.add(tx(i, 0, 2))
	}
	require.EqualValues(t, 1200, w.Stats().Surge)
	w.refuse(tx(8, 0, 1), ErrUnderpriced, "want ≥ 1200000000 (floor 1000000000")
	w.add(tx(8, 0, 2))
	require.EqualValues(t, 1400, w.Stats().Surge)
	w.remove(tx(8, 0, 2))
	require.EqualValues(t, 1300, w.Stats().Surge, "80 %, and the 5 % of hysteresis")
	w.remove(tx(7, 0, 2))
	require.EqualValues(t, 1100, w.Stats().Surge)
	require.Equal(t, 7, w.Stats().Pending, "who is in stays in: surge is for newcomers")
}

// Prices beyond 64 bits are as good as 2^64-1.
func TestHugePrices(t *testing.T) {
	w := newWorld(t)
	w.set(0, func(a *Account) { a.Balance.SetAllOne() })
	w.set(1, func(a *Account) { a.Balance.SetAllOne() })
	huge := new(big.Int).Lsh(big.NewInt(1), 200)
	want := []*types.Transaction{legacy(0, 0, huge, txGas, 0), legacy(1, 0, new(big.Int).SetUint64(math.MaxUint64), txGas, 0), tx(2, 0, 3)}
	w.add(want...)
	w.offers(want...)
	w.refuse(legacy(0, 0, new(big.Int).Add(huge, big.NewInt(1)), txGas, 0), ErrReplaceUnderpriced)
	w.reset(Head{BaseFee: huge, Touched: []common.Address{}})
}
