package eoa

import (
	"errors"
	"fmt"

	"github.com/holiman/uint256"
)

var (
	// ErrFeeCap: a bump would pass the user's cap.
	ErrFeeCap = errors.New("eoa: fee cap reached")
	// ErrInvalidFees: fees that no node takes.
	ErrInvalidFees = errors.New("eoa: invalid fees")
)

// Fees are the prices of a transaction, in wei per gas and per blob gas.
type Fees struct {
	// Cap is the greatest price, tip included; Tip goes to the block's author. Tip is at most Cap.
	Cap uint256.Int `json:"cap"`
	Tip uint256.Int `json:"tip"`
	// Blob is the greatest price of blob gas (EIP-4844); 0 means that there are no blobs.
	Blob uint256.Int `json:"blob,omitzero"`
}

// Limits are the greatest prices that may be offered, in wei per gas and per blob gas; nil means no limit.
type Limits struct{ Fee, BlobFee *uint256.Int }

// lower takes the lower one of each limit.
func (l Limits) lower(o Limits) Limits {
	least := func(x, y *uint256.Int) *uint256.Int {
		if x == nil || y != nil && y.Lt(x) {
			return y
		}
		return x
	}
	return Limits{least(l.Fee, o.Fee), least(l.BlobFee, o.BlobFee)}
}

// Validate reports a tip above the cap, wrapping ErrInvalidFees.
func (f *Fees) Validate() error {
	if f.Cap.Lt(&f.Tip) {
		return fmt.Errorf("%w: tip %v above cap %v", ErrInvalidFees, &f.Tip, &f.Cap)
	}
	return nil
}

// MinBumpPercent is the least bump that go-ethereum's pool takes for a replacement.
const MinBumpPercent = 10

// Bump returns fees that replace f: each price the greatest of the market's and the old one plus percent, rounded up, by at least 1 wei.
// percent is at least MinBumpPercent, and MinBlobBumpPercent where there are blobs; below it counts as that. A nil market counts as zero.
// If any would pass its limit, the error wraps ErrFeeCap and the caller waits.
func (f *Fees) Bump(market *Fees, percent uint64, limits Limits) (Fees, error) {
	if market == nil {
		market = new(Fees)
	}
	percent = max(percent, MinBumpPercent)
	var out Fees
	prices := []struct{ old, market, out, limit *uint256.Int }{{&f.Cap, &market.Cap, &out.Cap, limits.Fee}, {&f.Tip, &market.Tip, &out.Tip, limits.Fee}}
	if !f.Blob.IsZero() {
		percent = max(percent, MinBlobBumpPercent)
		prices = append(prices, struct{ old, market, out, limit *uint256.Int }{&f.Blob, &market.Blob, &out.Blob, limits.BlobFee})
	}
	for _, x := range prices {
		raised, overflow := raise(x.old, percent)
		if raised.Lt(x.market) {
			raised = x.market
		}
		if overflow || x.limit != nil && x.limit.Lt(raised) {
			return Fees{}, fmt.Errorf("%w: %v wei plus %d %% is above the limit of %v", ErrFeeCap, x.old, percent, x.limit)
		}
		x.out.Set(raised)
	}
	if out.Cap.Lt(&out.Tip) {
		out.Cap.Set(&out.Tip)
	}
	return out, nil
}

// raise returns old plus percent, rounded up, and at least old plus 1.
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
