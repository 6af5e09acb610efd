package account

import (
	"math"
	"time"

	"github.com/holiman/uint256"

	"github.com/jamq/jamq/internal/backoff"
	"github.com/jamq/jamq/internal/fields"
)

// FeePolicy decides when a transaction that is not mined is replaced at a
// higher price, and at which. DefaultConfig has the defaults.
type FeePolicy struct {
	// StallTimeout is how long the account's transaction count may stay
	// unchanged with transactions in flight before the first of them is bumped,
	// and those behind it that pay too little for today's prices; positive.
	// The wait doubles with each bump of a transaction, up to 64 times
	// StallTimeout. The default is 5 minutes.
	StallTimeout time.Duration
	// BumpPercent is the minimum price increase of a bump, in percent;
	// 10 to 1000. With blobs it is at least 100. If the price would exceed a
	// limit, it becomes the limit, as long as that is 10 % more. go-ethereum's
	// pool refuses smaller increases. The default is 20.
	BumpPercent uint64
	// MaxFee is the highest price per gas that is ever offered, in wei; nil
	// means no limit. The lower of MaxFee and Request.MaxFee applies.
	MaxFee *uint256.Int
	// MaxBlobFee is the highest price per blob gas that is ever offered, in
	// wei; nil means no limit. The lower of MaxBlobFee and Request.MaxBlobFee
	// applies.
	MaxBlobFee *uint256.Int
}

// DefaultFeePolicy returns a policy that bumps after five minutes, by 20
// percent, without a limit.
func DefaultFeePolicy() FeePolicy { return FeePolicy{StallTimeout: 5 * time.Minute, BumpPercent: 20} }

// maxBumpPercent is the highest valid BumpPercent. A higher value is probably
// in the wrong unit.
const maxBumpPercent = 1000

// Validate returns an error that lists each field out of range, with its value
// and the allowed range. The error wraps ErrInvalidConfig.
func (p *FeePolicy) Validate() error {
	var wrong fields.Errors
	fields.Positive(&wrong, "StallTimeout", p.StallTimeout)
	fields.Range(&wrong, "BumpPercent", p.BumpPercent, minBumpPercent, maxBumpPercent)
	return wrong.Wrap(ErrInvalidConfig)
}

// mostStalls limits the wait between two bumps to this many times StallTimeout.
const mostStalls = 64

// due returns how long after its last bump, or its first send, a transaction is
// bumped that was bumped the given number of times.
func (p *FeePolicy) due(bumps int) time.Duration {
	const longest = time.Duration(math.MaxInt64)
	most := min(p.StallTimeout, longest/mostStalls) * mostStalls
	return backoff.Wait(p.StallTimeout, max(most, p.StallTimeout), bumps+1)
}

// replace returns the fees of a replacement, as [Fees.Bump] does, under the
// lower of the policy's limits and the request's. It returns an error that
// wraps errFeeCap if a price would exceed its limit.
func (p *FeePolicy) replace(old, market *Fees, request limits) (Fees, error) {
	return old.bump(market, p.BumpPercent, p.limits(request))
}

// limits returns the lower of the policy's limits and the request's.
func (p *FeePolicy) limits(request limits) limits {
	return request.lower(limits{Fee: p.MaxFee, BlobFee: p.MaxBlobFee})
}
