package txpool

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// fees is the fee market: what a transaction must pay now. It moves with blocks and, as for newcomers, with the pool's occupancy.
type fees struct {
	cfg *Config
	// base is the base fee of the block to come; floor the least price that runs.
	base, floor uint64
	// average follows the median of the blocks in window, the newest last; smoothed exponentially.
	average uint64
	window  []sample
	// occupancy, in per mille, follows the pool up at once and down with a delay.
	occupancy uint64
}

// sample is a block's median, and what average and floor were before it.
type sample struct{ median, average, floor uint64 }

const (
	perMille = 1000
	// smoothing is 1/α of the exponential average, α = 0.2.
	smoothing = 5
	// floorStep is 1/12.5 %, by which the floor and the base fee can move with a block at most.
	floorStep = 8
	// hysteresis, in per mille, is by how much the occupancy must fall before the surge follows.
	hysteresis = 50
)

// prices is what a restart must know of the fee market.
type prices struct{ base, floor, average uint64 }

func (f *fees) prices() prices { return prices{f.base, f.floor, f.average} }

func newFees(cfg *Config) fees {
	return fees{cfg: cfg, floor: cfg.MinGasPrice, average: cfg.MinGasPrice}
}

// tipless is the rank of a transaction that pays the base fee and no tip. Greater ones stand for tips, smaller ones for fee caps below the
// base fee: those that it shuts out last were the best of those that it shuts out.
const tipless = 1 << 63

// rank returns what a transaction is worth to a builder.
func (f *fees) rank(e *entry) uint64 { return rankAt(f.base, e) }

func rankAt(base uint64, e *entry) uint64 {
	if e.feeCap < base {
		return min(e.feeCap, tipless-1)
	}
	return tipless + min(e.tip, e.feeCap-base, tipless-2) // less than that of noLead
}

// next is the greatest base fee that the block after the next can have.
func (f *fees) next() uint64 { return addSaturating(f.base, f.base/floorStep) }

// tipOf is the effective tip that a rank stands for.
func tipOf(rank uint64) uint64 { return max(rank, tipless) - tipless }

// price returns what a transaction pays per gas, given its rank.
func (f *fees) price(e *entry) uint64 {
	if e.rank < tipless {
		return e.feeCap
	}
	return addSaturating(f.base, tipOf(e.rank))
}

// leastRank is the rank from which on transactions run.
func (f *fees) leastRank() uint64 {
	return tipless + min(f.floor-min(f.floor, f.base), tipless-2)
}

// surge is by how much newcomers pay more than the floor, in per mille.
func (f *fees) surge() uint64 {
	over := f.occupancy - min(f.occupancy, f.cfg.SurgeThreshold)
	return perMille + f.cfg.SurgeSlope*over/perMille
}

// least is the price that a newcomer must pay: the floor, with surge.
func (f *fees) least() uint64 {
	surge := f.surge()
	if surge == perMille {
		return f.floor
	}
	hi, lo := bits.Mul64(f.floor, surge)
	if hi >= perMille {
		return math.MaxUint64
	}
	quotient, _ := bits.Div64(hi, lo, perMille)
	return quotient
}

// occupy tells how full the pool is.
func (f *fees) occupy(u usage) {
	now := max(permille(uint64(u.count), uint64(f.cfg.SoftPending)), permille(u.bytes, f.cfg.SoftPendingBytes))
	f.occupancy = min(max(f.occupancy, now), addSaturating(now, hysteresis))
}

// permille returns part/whole in per mille, at most ten times the whole.
func permille(part, whole uint64) uint64 {
	hi, lo := bits.Mul64(part, perMille)
	if hi >= whole {
		return maxShare
	}
	quotient, _ := bits.Div64(hi, lo, whole)
	return min(quotient, maxShare)
}

// block tells the median price of a new block.
func (f *fees) block(median uint64) {
	if f.cfg.FloorWindow == 0 {
		return
	}
	if f.window = append(f.window, sample{median, f.average, f.floor}); len(f.window) > f.cfg.FloorWindow {
		f.window = f.window[1:]
	}
	sorted := make([]uint64, len(f.window))
	for i, s := range f.window {
		sorted[i] = s.median
	}
	slices.Sort(sorted)
	target := sorted[len(sorted)/2]
	f.average = approach(f.average, target)
	step := max(f.floor/floorStep, 1)
	f.floor = min(max(f.average, f.floor-min(step, f.floor)), addSaturating(f.floor, step))
	f.floor = min(max(f.floor, f.cfg.MinGasPrice), f.cfg.MaxFloor)
}

// approach is a step of the exponential average. The last per mille goes at once, so that it arrives.
func approach(average, target uint64) uint64 {
	up, down := target-min(target, average), average-min(target, average)
	if up+down <= max(target/perMille, smoothing) {
		return target
	}
	return average + up/smoothing - down/smoothing
}

// unblock takes the newest blocks back: they were reverted.
func (f *fees) unblock(n int) {
	for ; n > 0 && len(f.window) > 0; n-- {
		last := len(f.window) - 1
		f.average, f.floor = f.window[last].average, f.window[last].floor
		f.window = f.window[:last]
	}
}

// paid returns what a transaction paid per gas in a block.
func paid(feeCap, tip, base uint64) uint64 { return min(feeCap, addSaturating(base, tip)) }

// wei returns a price as 64 bits, as saturate does; nil is 0.
func wei(price *big.Int) uint64 {
	switch {
	case price == nil || price.Sign() <= 0:
		return 0
	case !price.IsUint64():
		return math.MaxUint64
	}
	return price.Uint64()
}
