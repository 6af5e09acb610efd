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
		b.Transactions = append(b.Transactions, types.NewTx(&types.LegacyTx{GasPrice: big.NewInt(price * gwei), Gas: txGas}))
	}
	return b
}

// The floor follows the median price included, smoothed, an eighth per block at most, and only with
// blocks.
func TestFloor(t *testing.T) {
	var floors []uint64
	p := newPool(t, newWorld(), func(c *Config) {
		c.FloorWindow, c.MinGasPrice = 3, gwei
		c.Observe = func(e Event) {
			if e.Kind == FloorChanged {
				floors = append(floors, e.Floor)
			}
		}
	})
	add(t, p, tx(0, 0, 50))
	require.EqualValues(t, gwei, p.Stats().Floor, "a transaction moves nothing")
	p.Reset(Head{Included: []Block{paying(1, 5, 100)}})
	require.EqualValues(t, 1.125*gwei, p.Stats().Floor, "the median is 5, the average 1.8")
	require.Equal(t, []uint64{1.125 * gwei}, floors)
	for range 200 {
		p.Reset(Head{Included: []Block{paying(5000)}})
	}
	require.EqualValues(t, 1000*gwei, p.Stats().Floor, "the highest floor")
	refuse(t, p, tx(1, 0, 1), ErrUnderpriced, "pays 1000000000 wei per gas, want ≥ 1000000000000 (floor 1000000000000, base fee 0)")
	for range 200 {
		p.Reset(Head{Included: []Block{{}}})
	}
	require.EqualValues(t, gwei, p.Stats().Floor, "empty blocks bring it down")
}

// The prices in blocks that are nearly empty do not raise the floor, because
// these blocks had room at any price.
func TestFloorNeedsFullBlocks(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.FloorWindow = 3 })
	for range 20 {
		p.Reset(Head{Included: []Block{{Transactions: paying(100).Transactions}, {Transactions: paying(100).Transactions, GasUsed: 5_000_000, GasLimit: 10_000_000}}})
	}
	require.EqualValues(t, gwei, p.Stats().Floor)
	for range 20 {
		p.Reset(Head{Included: []Block{{Transactions: paying(100).Transactions, GasUsed: 5_000_001, GasLimit: 10_000_000}}})
	}
	require.Greater(t, p.Stats().Floor, uint64(5*gwei))
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
				f.unblock(rapid.IntRange(0, 3).Draw(t, "blocks"))
			}
			was := f.floor
			before := f.prices
			f.block(rapid.Uint64().Draw(t, "median"))
			if cfg.FloorWindow > 0 {
				f.unblock(1)
				if f.prices != before {
					t.Fatalf("a block taken back leaves %v, want %v", f.prices, before)
				}
				f.block(rapid.Uint64().Draw(t, "another median"))
			}
			step := max(was/8, 1)
			if f.floor < cfg.MinGasPrice || f.floor > cfg.maxFloor() || f.floor > was && f.floor-was > step || was > f.floor && was-f.floor > step {
				t.Fatalf("floor went from %d to %d, range %d to %d", was, f.floor, cfg.MinGasPrice, cfg.maxFloor())
			}
			f.occupy(usage{rapid.IntRange(0, 5000).Draw(t, "count"), rapid.Uint64().Draw(t, "bytes")})
			if least := f.least(); least < f.floor {
				t.Fatalf("surge lowers the floor from %d to %d", f.floor, least)
			}
		}
	})
}

// A transaction below the floor is parked, with all behind it. It returns when the floor falls.
func TestParking(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.FloorWindow = 1 })
	add(t, p, tx(0, 0, 1), tx(0, 1, 50), tx(1, 0, 3), tx(1, 1, 1))
	p.Reset(Head{Included: []Block{paying(10)}})
	require.Equal(t, "kk", statuses(p, 0, 2))
	require.Equal(t, "pk", statuses(p, 1, 2))
	require.Equal(t, 3, p.Stats().Parked)
	require.Len(t, p.Drain(Budget{}).Transactions(), 1)
	for range 50 {
		p.Reset(Head{Included: []Block{{}}})
	}
	require.Equal(t, "pp", statuses(p, 0, 2))
	require.Equal(t, "lp", statuses(p, 1, 2))
	require.NoError(t, p.Check())
}

// The base fee parks too, and changes what a transaction with a fee cap is worth.
func TestBaseFee(t *testing.T) {
	p := newPool(t, newWorld(), nil)
	add(t, p, capped(0, 0, 5, 10), capped(1, 0, 4, 30), capped(2, 0, 9, 9))
	order := func(txs ...*types.Transaction) {
		t.Helper()
		require.NoError(t, p.Check())
		require.Equal(t, hashes(txs), hashes(p.Candidates()))
	}
	order(capped(2, 0, 9, 9), capped(0, 0, 5, 10), capped(1, 0, 4, 30))
	p.Reset(Head{BaseFee: big.NewInt(8 * gwei), Touched: []common.Address{}})
	order(capped(1, 0, 4, 30), capped(0, 0, 5, 10), capped(2, 0, 9, 9)) // 4, 2 and 1
	p.Reset(Head{BaseFee: big.NewInt(10 * gwei), Touched: []common.Address{}})
	order(capped(1, 0, 4, 30), capped(0, 0, 5, 10))
	require.Equal(t, StatusParked, p.Status(capped(2, 0, 9, 9).Hash()))
	add(t, p, capped(3, 0, 5, 9)) // under the base fee, over the floor: held
	require.Equal(t, StatusParked, p.Status(capped(3, 0, 5, 9).Hash()))
	p.Reset(Head{BaseFee: new(big.Int), Touched: []common.Address{}})
	require.Zero(t, p.Stats().Parked)
}

// Parked ones have their own cap. Those that a base fee has parked keep their room;
// of those that never paid it, the worst leave first.
func TestParkedCap(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { tiny(10, 2)(c); c.FloorWindow = 1; c.MinGasPrice = gwei })
	for i := range 4 {
		add(t, p, sign(i, &types.LegacyTx{GasPrice: big.NewInt(gwei + int64(i)), Gas: txGas, To: &common.Address{1}}))
	}
	p.Reset(Head{Included: []Block{paying(50)}})
	require.Equal(t, 4, p.Stats().Parked)
	require.NoError(t, p.Check())

	p = newPool(t, newWorld(), tiny(10, 2))
	p.Reset(Head{BaseFee: weiOf(8)})
	add(t, p, capped(0, 0, 2, 3), capped(1, 0, 3, 3), capped(2, 0, 3, 4))
	require.Equal(t, []string{"k", "-", "k"}, []string{statuses(p, 0, 1), statuses(p, 1, 1), statuses(p, 2, 1)})
	refuse(t, p, capped(3, 0, 1, 7), ErrPoolFull) // it pays others' base fee, and the builder less
}

// A fuller pool asks more of newcomers: 1 + 2·(occupancy − 0.7), and it takes a while to forget.
func TestSurge(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) { c.MaxPending, c.SurgeSlope = 10, 2000 })
	for i := range 8 {
		add(t, p, tx(i, 0, 2))
	}
	require.EqualValues(t, 1200, p.Stats().Surge)
	refuse(t, p, tx(8, 0, 1), ErrUnderpriced, "want ≥ 1200000000 (floor 1000000000")
	add(t, p, tx(8, 0, 2))
	require.EqualValues(t, 1400, p.Stats().Surge)
	require.NoError(t, p.Remove(tx(8, 0, 2).Hash()))
	require.EqualValues(t, 1300, p.Stats().Surge, "80 %, and the 5 % of hysteresis")
	require.NoError(t, p.Remove(tx(7, 0, 2).Hash()))
	require.EqualValues(t, 1100, p.Stats().Surge)
	require.Equal(t, 7, p.Stats().Pending, "who is in stays in: surge is for newcomers")
}

// Prices beyond 64 bits are as good as 2^64-1.
func TestHugePrices(t *testing.T) {
	w := newWorld()
	w.set(0, func(a *Account) { a.Balance.SetAllOne() })
	w.set(1, func(a *Account) { a.Balance.SetAllOne() })
	p := newPool(t, w, nil)
	huge := new(big.Int).Lsh(big.NewInt(1), 200)
	legacy := func(i int, price *big.Int) *types.Transaction {
		return sign(i, &types.LegacyTx{GasPrice: price, Gas: txGas, To: &common.Address{1}})
	}
	add(t, p, legacy(0, huge), legacy(1, new(big.Int).SetUint64(math.MaxUint64)), tx(2, 0, 3))
	require.Equal(t, hashes([]*types.Transaction{legacy(0, huge), legacy(1, new(big.Int).SetUint64(math.MaxUint64)), tx(2, 0, 3)}), hashes(p.Candidates()))
	refuse(t, p, legacy(0, new(big.Int).Add(huge, big.NewInt(1))), ErrReplaceUnderpriced)
	p.Reset(Head{BaseFee: huge, Touched: []common.Address{}})
	require.NoError(t, p.Check())
}

// A surge applies to newcomers only: a transaction in the pool can always be
// replaced at the floor.
func TestSurgeSparesReplacements(t *testing.T) {
	p := newPool(t, newWorld(), func(c *Config) {
		tiny(10, 10)(c)
		c.SurgeSlope = 2000
	})
	for i := range 7 {
		add(t, p, tx(i, 0, 1))
	}
	add(t, p, tx(10, 0, 5), tx(11, 0, 5), tx(12, 0, 5))
	require.Greater(t, p.Stats().Surge, uint64(1000))
	dearer := sign(0, &types.LegacyTx{GasPrice: big.NewInt(1.2 * gwei), Gas: txGas, To: &common.Address{1}})
	add(t, p, dearer)
}
