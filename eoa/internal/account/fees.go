package account

import (
	"errors"
	"fmt"

	"github.com/holiman/uint256"
)

// errFeeCap is returned if a replacement would exceed a price limit.
var errFeeCap = errors.New("eoa: fee cap reached")

// Fees are the prices of a transaction, in wei per gas and per blob gas.
type Fees struct {
	// Cap is the highest total price per gas, tip included.
	Cap uint256.Int `json:"cap"`
	// Tip is the part of the price that goes to the block's author. It is at
	// most Cap.
	Tip uint256.Int `json:"tip"`
	// Blob is the highest price of blob gas (EIP-4844); 0 means no blobs.
	Blob uint256.Int `json:"blob,omitzero"`
}

// limits are the highest prices that may be offered for a transaction.
type limits struct {
	// Fee is the limit per gas, in wei; nil means no limit.
	Fee *uint256.Int
	// BlobFee is the limit per blob gas, in wei; nil means no limit.
	BlobFee *uint256.Int
}

// lower returns the lower of each pair of limits.
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

// bump returns fees that can replace f. Each price is the higher of the
// market's and the old price raised by percent, rounded up, by at least 1 wei.
// percent is raised to minBumpPercent if it is lower, or to minBlobBumpPercent
// if f has a blob price. A nil market counts as zero. A price that would exceed
// its limit becomes the limit. It returns an error that wraps errFeeCap if the
// limit is less than the old price raised by that minimum.
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
		if overflow || x.limit != nil && x.limit.Lt(needed) {
			return Fees{}, fmt.Errorf("%w: %v wei plus %d %% is above the limit of %v", errFeeCap, x.old, least, x.limit)
		}
		raised, overflow := raise(x.old, max(percent, least))
		if overflow {
			raised = needed
		}
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

// raise returns old plus percent, rounded up, and at least old plus 1. It also
// reports overflow.
func raise(old *uint256.Int, percent uint64) (*uint256.Int, bool) {
	const whole = 100
	more, over := new(uint256.Int).MulDivOverflow(old, uint256.NewInt(percent), uint256.NewInt(whole))
	rest := new(uint256.Int).MulMod(old, uint256.NewInt(percent), uint256.NewInt(whole))
	if !rest.IsZero() || more.IsZero() {
		more.AddUint64(more, 1)
	}
	sum, overSum := new(uint256.Int).AddOverflow(old, more)
	return sum, over || overSum
}
