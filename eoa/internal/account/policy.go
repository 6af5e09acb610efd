package account

import (
	"math"
	"time"

	"github.com/holiman/uint256"

	"github.com/jamq/jamq/internal/backoff"
	"github.com/jamq/jamq/internal/fields"
)

// FeePolicy decides when a transaction that is in no block is signed again at a higher price
// (a bump), and at which price. DefaultConfig has the defaults.
type FeePolicy struct {
	// StallTimeout is how long the account may make no progress before prices are raised;
	// positive. If none of its transactions was mined for this time, the first one in flight
	// is bumped, and of those behind it the ones that pay too little for today's prices. The
	// wait doubles with each bump of a transaction, up to 64 times StallTimeout. The default
	// is 5 minutes.
	StallTimeout time.Duration
	// BumpPercent is by how many percent a bump raises the price at least; 10 to 1000. A blob
	// transaction raises it by 100 at least, because nodes demand that. If the raised price
	// would exceed a limit, the limit is offered, unless it is less than 10 % more, which
	// go-ethereum's pool refuses. The default is 20.
	BumpPercent uint64
	// MaxFee is the highest price per gas that is offered for any request, in wei; nil means
	// no limit. If Request.MaxFee is lower, it counts for that request.
	MaxFee *uint256.Int
	// MaxBlobFee is the highest price per blob gas that is offered for any request, in wei;
	// nil means no limit. If Request.MaxBlobFee is lower, it counts for that request.
	MaxBlobFee *uint256.Int
}

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

// mostStalls limits the wait between two bumps of a transaction to this many times
// StallTimeout.
const mostStalls = 64

// due returns how long to wait before the next bump of a transaction that was bumped the
// given number of times. The wait begins at its last bump, or at its first send.
func (p *FeePolicy) due(bumps int) time.Duration {
	most := min(p.StallTimeout, math.MaxInt64/mostStalls) * mostStalls
	return backoff.Wait(p.StallTimeout, max(most, p.StallTimeout), bumps+1)
}

// limits returns the limits that count for a request: the lower ones of the policy's and its
// own.
func (p *FeePolicy) limits(request limits) limits {
	return request.lower(limits{Fee: p.MaxFee, BlobFee: p.MaxBlobFee})
}

// Retention limits how much of an account's history its store keeps. The executor deletes the
// rest when the account has no work left, and every ten minutes while it has.
//
// When the record of a request is deleted, the store still keeps its key, id, state and a
// digest of its payload. If the request is submitted again, it is therefore found and not
// executed a second time. [Client.Get] returns a record with these fields only. [Client.List]
// and [Client.ByHash] no longer find it.
type Retention struct {
	// Age is how long the record of a request is kept after the request has ended; at least
	// 0. 0 means without a limit. The default is 7 days.
	Age time.Duration
	// Count is how many of the newest requests have records; at least 0. Older requests that
	// have ended lose theirs even before Age. 0 means without a limit. The default is
	// 100,000.
	Count int
	// EventAge is how long an event is kept that was not acknowledged; at least 0. 0 means
	// without a limit. The default is 30 days.
	EventAge time.Duration
}

// Validate returns an error that lists each field out of range. The error wraps
// ErrInvalidConfig.
func (r *Retention) Validate() error {
	var wrong fields.Errors
	wrong.Want(r.Age >= 0, "Retention.Age", r.Age, "at least 0")
	wrong.Want(r.Count >= 0, "Retention.Count", r.Count, "at least 0")
	wrong.Want(r.EventAge >= 0, "Retention.EventAge", r.EventAge, "at least 0")
	return wrong.Wrap(ErrInvalidConfig)
}

// drops reports whether the record of a request is deleted. newest is the highest id of the
// account's records.
func (c *Retention) drops(now time.Time, newest uint64, r *Record) bool {
	ended := r.EndedAt
	if ended.IsZero() { // written by an older version
		ended = r.QueuedAt
	}
	return r.State.Terminal() && (c.Age > 0 && now.Sub(ended) >= c.Age || c.Count > 0 && r.ID+uint64(c.Count) <= newest)
}
