package eoa

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/holiman/uint256"
)

// ErrInvalidPolicy is wrapped by every error of [FeePolicy.Validate].
var ErrInvalidPolicy = errors.New("eoa: invalid fee policy")

// FeePolicy says when a transaction that does not move is sent again at a higher price, and at which. Begin with [DefaultFeePolicy].
type FeePolicy struct {
	// StallTimeout is how long the account's lowest open nonce may stand still with something in flight before it is bumped, positive.
	// Each further bump waits twice as long as the one before.
	StallTimeout time.Duration
	// BumpPercent is how much more a bump offers at least, in percent, from [MinBumpPercent] to 1000; with blobs it is at least [MinBlobBumpPercent].
	BumpPercent uint64
	// MaxFee is the greatest price per gas that a bump may offer, in wei; nil means no limit. The lower one of this and the request's
	// counts.
	MaxFee *uint256.Int
	// MaxBlobFee is the same for the price of blob gas.
	MaxBlobFee *uint256.Int
}

// DefaultFeePolicy bumps after five minutes, by 20 percent, without a limit.
func DefaultFeePolicy() FeePolicy { return FeePolicy{StallTimeout: 5 * time.Minute, BumpPercent: 20} }

// maxBumpPercent is where a bump is more likely a slip of the unit than a wish.
const maxBumpPercent = 1000

// Validate names the first field that is out of range, its value and what is allowed. The error wraps [ErrInvalidPolicy].
func (p *FeePolicy) Validate() error {
	if p.StallTimeout <= 0 {
		return fmt.Errorf("%w: StallTimeout is %v, want positive", ErrInvalidPolicy, p.StallTimeout)
	}
	if p.BumpPercent < MinBumpPercent || p.BumpPercent > maxBumpPercent {
		return fmt.Errorf("%w: BumpPercent is %d, want %d to %d", ErrInvalidPolicy, p.BumpPercent, MinBumpPercent, maxBumpPercent)
	}
	return nil
}

// maxBackOff is how often the wait is doubled at most.
const maxBackOff = 6

// Due returns how long after its last bump, or its first send, a transaction with the given number of bumps so far is bumped.
func (p *FeePolicy) Due(bumps int) time.Duration {
	const longest = time.Duration(math.MaxInt64)
	doublings := min(max(0, bumps), maxBackOff)
	if p.StallTimeout > longest>>doublings {
		return longest
	}
	return p.StallTimeout << doublings
}

// Replace returns the fees of a replacement: those of [Fees.Bump] under the lower ones of the policy's limits and the request's. The error wraps ErrFeeCap.
func (p *FeePolicy) Replace(old, market *Fees, request Limits) (Fees, error) {
	return old.Bump(market, p.BumpPercent, p.limits(request))
}

// limits are the lower ones of the policy's and the request's.
func (p *FeePolicy) limits(request Limits) Limits {
	return request.lower(Limits{Fee: p.MaxFee, BlobFee: p.MaxBlobFee})
}
