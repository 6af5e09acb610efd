package account

import (
	"errors"
	"fmt"

	"github.com/holiman/uint256"
)

// errFeeCap is returned if the price of a replacement would exceed a limit.
var errFeeCap = errors.New("eoa: fee cap reached")

// Fees are the prices that a transaction offers, in wei per gas and per blob gas.
type Fees struct {
	// Cap is the highest price per gas that may be paid, tip included.
	Cap uint256.Int `json:"cap"`
	// Tip is the part of the price that goes to the block's author. It is at
	// most Cap.
	Tip uint256.Int `json:"tip"`
	// Blob is the highest price of blob gas (EIP-4844); 0 means no blobs.
	Blob uint256.Int `json:"blob,omitzero"`
}

// raiseTo raises each of the three prices to that of g if it is lower.
func (f *Fees) raiseTo(g *Fees) {
	for _, x := range [][2]*uint256.Int{{&f.Cap, &g.Cap}, {&f.Tip, &g.Tip}, {&f.Blob, &g.Blob}} {
		if x[0].Lt(x[1]) {
			x[0].Set(x[1])
		}
	}
}

// limits are the highest prices that may be offered for a transaction.
type limits struct {
	// Fee is the limit per gas, in wei; nil means no limit.
	Fee *uint256.Int
	// BlobFee is the limit per blob gas, in wei; nil means no limit.
	BlobFee *uint256.Int
}

// lower returns the lower of l and o for each of the two limits.
func (l limits) lower(o limits) limits {
	least := func(x, y *uint256.Int) *uint256.Int {
		if x == nil || y != nil && y.Lt(x) {
			return y
		}
		return x
	}
	return limits{least(l.Fee, o.Fee), least(l.BlobFee, o.BlobFee)}
}

// minBumpPercent is the minimum price increase that go-ethereum's pool accepts
// for a replacement, in percent.
const minBumpPercent = 10

// bump returns the prices at which nodes accept a replacement for prices f.
func (f *Fees) bump(market *Fees, percent uint64, limits limits) (Fees, error) {
	if market == nil {
		market = new(Fees)
	}
	least := uint64(minBumpPercent)
	var out Fees
	prices := []struct{ old, market, out, limit *uint256.Int }{{&f.Cap, &market.Cap, &out.Cap, limits.Fee}, {&f.Tip, &market.Tip, &out.Tip, limits.Fee}}
	if !f.Blob.IsZero() {
		least = minBlobBumpPercent
		prices = append(prices, struct{ old, market, out, limit *uint256.Int }{&f.Blob, &market.Blob, &out.Blob, limits.BlobFee})
	}
	for _, x := range prices {
		needed, overflow := raise(x.old, least)
		// If even the minimum increase exceeds the limit, nodes would refuse any
		// allowed price.
		if overflow || x.limit != nil && x.limit.Lt(needed) {
			return Fees{}, fmt.Errorf("%w: %v wei plus %d %% is above the limit of %v", errFeeCap, x.old, least, x.limit)
		}
		// A percent below the minimum that nodes demand counts as the minimum.
		raised, overflow := raise(x.old, max(percent, least))
		if overflow {
			raised = needed
		}
		// Offer at least the market's price, and at most the limit.
		if raised.Lt(x.market) {
			raised = x.market
		}
		if x.limit != nil && x.limit.Lt(raised) {
			raised = x.limit
		}
		x.out.Set(raised)
	}
	if out.Cap.Lt(&out.Tip) {
		out.Cap.Set(&out.Tip)
	}
	return out, nil
}

// raise returns old plus percent, rounded up, and true if that overflows 256 bits.
func raise(old *uint256.Int, percent uint64) (*uint256.Int, bool) {
	const whole = 100
	more, over := new(uint256.Int).MulDivOverflow(old, uint256.NewInt(percent), uint256.NewInt(whole))
	rest := new(uint256.Int).MulMod(old, uint256.NewInt(percent), uint256.NewInt(whole))
	// Round up, and raise by at least 1.
	if !rest.IsZero() || more.IsZero() {
		more.AddUint64(more, 1)
	}
	sum, overSum := new(uint256.Int).AddOverflow(old, more)
	return sum, over || overSum
}
