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

// Fees are the prices of a transaction, in wei per gas.
type Fees struct {
	// Cap is the greatest price, tip included; Tip goes to the block's author. Tip is at most Cap.
	Cap uint256.Int `json:"cap"`
	Tip uint256.Int `json:"tip"`
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

// Bump returns fees that replace f: cap and tip each the greatest of the market's and the old one plus percent, rounded up, by at least 1 wei.
// percent is at least MinBumpPercent; below it counts as that. A nil market counts as zero, a nil limit as none, as Request.MaxFee does.
// If either would pass limit, the error wraps ErrFeeCap and the caller waits.
func (f *Fees) Bump(market *Fees, percent uint64, limit *uint256.Int) (Fees, error) {
	if market == nil {
		market = new(Fees)
	}
	percent = max(percent, MinBumpPercent)
	var out Fees
	for _, x := range []struct{ old, market, out *uint256.Int }{{&f.Cap, &market.Cap, &out.Cap}, {&f.Tip, &market.Tip, &out.Tip}} {
		raised, overflow := raise(x.old, percent)
		if raised.Lt(x.market) {
			raised = x.market
		}
		if overflow || limit != nil && limit.Lt(raised) {
			return Fees{}, fmt.Errorf("%w: %v wei plus %d %% is above the limit of %v", ErrFeeCap, x.old, percent, limit)
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
