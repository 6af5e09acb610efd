package account

import (
	"math"
	"time"

	"github.com/holiman/uint256"

	"github.com/jamq/jamq/internal/backoff"
	"github.com/jamq/jamq/internal/fields"
)

// FeePolicy decides when a transaction that is not mined is signed again at a
// higher price (a bump), and at which price. DefaultConfig returns the defaults.
type FeePolicy struct {
	// StallTimeout is how long an account waits until one of its transactions in
	// flight is mined, before prices are raised; positive. After that time, the
	// first transaction in flight is bumped, and so are the transactions behind it
	// that pay too little for today's prices. The wait doubles with each bump of a
	// transaction, up to 64 times StallTimeout. The default is 5 minutes.
	StallTimeout time.Duration
	// BumpPercent is the least by which a bump raises the price, in percent; 10 to
	// 1000. For a blob transaction it is at least 100, because nodes demand that.
	// If the raised price would exceed a limit, the limit is offered instead. A
	// limit that is less than 10 % above the earlier price (100 % with blobs)
	// prevents the bump, because nodes would refuse it. The default is 20.
	BumpPercent uint64
	// MaxFee is the highest price per gas that may be offered for any request, in
	// wei; nil means no limit. A lower Request.MaxFee takes precedence for its
	// request.
	MaxFee *uint256.Int
	// MaxBlobFee is the highest price per blob gas that may be offered for any
	// request, in wei; nil means no limit. A lower Request.MaxBlobFee takes
	// precedence for its request.
	MaxBlobFee *uint256.Int
}

// maxBumpPercent is the highest valid BumpPercent. A value above it was probably
// given in the wrong unit.
const maxBumpPercent = 1000

// Validate returns an error that lists each field out of range, with its value
// and the allowed range. The error wraps ErrInvalidConfig.
func (p *FeePolicy) Validate() error {
	var wrong fields.Errors
	fields.Positive(&wrong, "StallTimeout", p.StallTimeout)
	fields.Range(&wrong, "BumpPercent", p.BumpPercent, minBumpPercent, maxBumpPercent)
	return wrong.Wrap(ErrInvalidConfig)
}

// mostStalls limits the wait between two bumps of a transaction, as a multiple of
// StallTimeout.
const mostStalls = 64

// due returns the wait before the next bump, which doubles with each earlier bump.
func (p *FeePolicy) due(bumps int) time.Duration {
	most := min(p.StallTimeout, math.MaxInt64/mostStalls) * mostStalls
	return backoff.Wait(p.StallTimeout, max(most, p.StallTimeout), bumps+1)
}

// limits returns, for each price, the lower of the policy's and the request's
// limit.
func (p *FeePolicy) limits(request limits) limits {
	return request.lower(limits{Fee: p.MaxFee, BlobFee: p.MaxBlobFee})
}

// Retention limits how much of an account's history its store keeps. The executor
// deletes older history when the account has no work left, and every ten minutes
// while it has work.
//
// When the store deletes the record of a request, it still keeps the key, id, state
// and a digest of the payload. If the request is submitted again, the store
// therefore finds it and does not execute it a second time. [Client.Get] returns a
// record with only these fields, and [Client.List] and [Client.ByHash] no longer
// find it.
type Retention struct {
	// Age is how long a record is kept after its request has ended; at least 0. 0
	// means forever. The default is 7 days.
	Age time.Duration
	// Count is how many of an account's newest requests keep their records; at
	// least 0. Older requests that have ended lose their records even before Age. 0
	// means no limit. The default is 100,000.
	Count int
	// EventAge is how long the store keeps an event that has not been acknowledged;
	// at least 0. 0 means forever. The default is 30 days.
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

// drops reports whether the record of a request must be deleted.
func (c *Retention) drops(now time.Time, newest uint64, r *Record) bool {
	ended := r.EndedAt
	if ended.IsZero() { // written by an older version
		ended = r.QueuedAt
	}
	// An ended request is deleted after Age, or when Count newer records exist;
	// newest is the highest id.
	return r.State.Terminal() && (c.Age > 0 && now.Sub(ended) >= c.Age || c.Count > 0 && r.ID+uint64(c.Count) <= newest)
}
