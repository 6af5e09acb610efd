package txpool

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// fees computes the price that a transaction must pay now. The price changes with each
// block, and for newcomers it also depends on how full the pool is.
type fees struct {
	cfg *Config
	prices
	window []sample // newest last
	// occupancy is how full the pool is, in per mille. It falls with a delay, so that
	// the price for newcomers does not jump up and down.
	occupancy uint64
}

// prices is the part of the fee market that survives a restart: the base fee of the
// next block, the floor, which is the lowest price of a pending transaction, and the
// average, which follows the median prices of recent blocks. The floor follows the
// average.
type prices struct{ base, floor, average uint64 }

func (p *prices) record() []byte { return encode(recordPrices, p.base, p.floor, p.average) }

// sample is the effect of one block on the prices: the median price that its
// transactions paid, and the average and the floor before the block. If the block is
// reverted, the pool restores this average and this floor.
type sample struct{ median, average, floor uint64 }

const (
	perMille = 1000
	// floorStep limits how fast prices change: floor and base fee move by at most 1/8
	// per block.
	floorStep = 8
	// hysteresis is how far the occupancy of the pool may fall, in per mille, before the
	// price for newcomers begins to fall too.
	hysteresis = 50
)

func newFees(cfg *Config) fees {
	return fees{cfg: cfg, prices: prices{floor: cfg.MinGasPrice, average: cfg.MinGasPrice}}
}

// tipless is the rank of a transaction that pays exactly the base fee. Ranks sort
// transactions by their worth to a builder: tipless plus the tip. If the fee cap is
// below the base fee, the rank is the fee cap alone, which is less than tipless.
const tipless = 1 << 63

// rank returns the worth of a transaction to a builder at the present base fee.
func (f *fees) rank(e *entry) uint64 { return rankAt(f.base, e) }

func rankAt(base uint64, e *entry) uint64 {
	if e.feeCap < base {
		return min(e.feeCap, tipless-1)
	}
	return tipless + min(e.tip, e.feeCap-base, tipless-2) // below noLead's rank
}

// next returns the highest possible base fee of the block after the next one.
func (f *fees) next() uint64 { return addSaturating(f.base, f.base/floorStep) }

// tipOf returns the effective tip of a rank.
func tipOf(rank uint64) uint64 { return max(rank, tipless) - tipless }

// price returns what a transaction pays per gas at the present base fee.
func (f *fees) price(e *entry) uint64 {
	// A rank below tipless is the fee cap of a transaction that does not pay the present base
	// fee. It pays its fee cap at most.
	if e.rank < tipless {
		return e.feeCap
	}
	return addSaturating(f.base, tipOf(e.rank))
}

// leastRank returns the lowest rank with which a transaction can run.
func (f *fees) leastRank() uint64 {
	// A transaction with this rank pays exactly the base fee or the floor, whichever is
	// higher.
	return tipless + min(f.floor-min(f.floor, f.base), tipless-2)
}

// surge returns how much the price for newcomers exceeds the floor, in per mille.
func (f *fees) surge() uint64 {
	over := f.occupancy - min(f.occupancy, surgeThreshold)
	// Unless the pool is nearly full, the factor is 1,000 per mille, and newcomers pay only
	// the floor.
	return perMille + f.cfg.SurgeSlope*over/perMille
}

// least returns the price that a newcomer must pay.
func (f *fees) least() uint64 { return scale(f.floor, f.surge(), perMille) }

// scale returns n·share/whole, or 2^64-1 if that is more.
func scale(n, share, whole uint64) uint64 {
	hi, lo := bits.Mul64(n, share)
	if hi >= whole {
		return math.MaxUint64
	}
	quotient, _ := bits.Div64(hi, lo, whole)
	return quotient
}

// updateOccupancy computes again how full the pool is.
func (f *fees) updateOccupancy(u usage) {
	now := max(permille(uint64(u.count), uint64(f.cfg.MaxPending)), permille(u.bytes, f.cfg.MaxBytes))
	f.occupancy = min(max(f.occupancy, now), addSaturating(now, hysteresis))
}

// permille returns part/whole in per mille, at most ten times the whole.
func permille(part, whole uint64) uint64 { return min(scale(part, perMille, whole), maxShare) }

// addBlock updates the floor after a new block with this median price.
func (f *fees) addBlock(median uint64) {
	if f.cfg.FloorWindow == 0 {
		return
	}
	f.window = append(f.window, sample{median, f.average, f.floor})
	if len(f.window) > f.cfg.FloorWindow {
		f.window = f.window[1:]
	}
	sorted := make([]uint64, len(f.window))
	for i, s := range f.window {
		sorted[i] = s.median
	}
	slices.Sort(sorted)
	target := sorted[len(sorted)/2]
	// The floor follows the median of the recent blocks' median prices, by at most an
	// eighth per block.
	f.average = approach(f.average, target, floorWeight)
	step := max(f.floor/floorStep, 1)
	f.floor = min(max(f.average, f.floor-min(step, f.floor)), addSaturating(f.floor, step))
	f.floor = min(max(f.floor, f.cfg.MinGasPrice), f.cfg.maxFloor())
}

// approach returns the average moved toward the target by a weight in per mille.
func approach(average, target, weight uint64) uint64 {
	up, down := target-min(target, average), average-min(target, average)
	if up+down <= max(target/perMille, (perMille+weight-1)/weight) {
		// Rounding would keep the average from ever reaching a target that is so close.
		return target
	}
	return average + scale(up, weight, perMille) - scale(down, weight, perMille)
}

// removeBlocks restores the floor as it was before the newest n blocks.
func (f *fees) removeBlocks(n int) {
	for ; n > 0 && len(f.window) > 0; n-- {
		last := len(f.window) - 1
		f.average, f.floor = f.window[last].average, f.window[last].floor
		f.window = f.window[:last]
	}
}

// pricePaid returns the price per gas that a transaction has paid in a block.
func pricePaid(feeCap, tip, base uint64) uint64 { return min(feeCap, addSaturating(base, tip)) }

// wei converts a price to 64 bits.
func wei(price *big.Int) uint64 {
	switch {
	case price == nil || price.Sign() <= 0:
		return 0
	case !price.IsUint64():
		// The pool need not distinguish higher prices: this is more than 18 ether per
		// gas.
		return math.MaxUint64
	}
	return price.Uint64()
}

// maxFloor returns the highest floor in wei per gas.
func (c *Config) maxFloor() uint64 { return scale(max(c.MinGasPrice, gwei), highestFloor, 1) }
