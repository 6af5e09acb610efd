package ratelimit

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// buckets are the token buckets for one rate: a call takes one token for each transaction
// and one for each byte. A nil bucket sets no limit.
type buckets struct{ txs, bytes *rate.Limiter }

func newBuckets(r Rate) buckets {
	return buckets{newBucket(r.Txs, r.TxBurst), newBucket(r.Bytes, r.ByteBurst)}
}

func newBucket(perSecond float64, burst int) *rate.Limiter {
	if perSecond == 0 {
		return nil
	}
	if burst == 0 {
		burst = int(max(min(math.Ceil(perSecond), math.MaxInt32), 1))
	}
	return rate.NewLimiter(rate.Limit(perSecond), burst)
}

// limit is a pair of buckets with its name for Error.Limit.
type limit struct {
	name string
	buckets
}

// longestWait returns how long a call must wait until all limits admit it, and the name of
// the limit with the longest wait.
func longestWait(limits []limit, now time.Time, txs, bytes int) (name string, longest time.Duration) {
	for _, limit := range limits {
		wait := limit.wait(now, txs, bytes)
		if wait == never {
			// The limit's burst is smaller than the call, so no wait is long enough.
			return limit.name, never
		}
		if wait > longest {
			name, longest = limit.name, wait
		}
	}
	return name, longest
}

// never is the wait for a call that needs more than a burst.
const never = time.Duration(-1)

func (b buckets) wait(now time.Time, txs, bytes int) time.Duration {
	first, second := wait(b.txs, now, txs), wait(b.bytes, now, bytes)
	if first == never || second == never {
		return never
	}
	return max(first, second)
}

// wait returns the time until a bucket has n tokens, rounded up to a millisecond.
func wait(bucket *rate.Limiter, now time.Time, n int) time.Duration {
	if bucket == nil {
		return 0
	}
	if n > bucket.Burst() {
		return never
	}
	seconds := (float64(n) - bucket.TokensAt(now)) / float64(bucket.Limit())
	// Only the rounding error of the bucket's floating-point numbers is missing. The bucket
	// itself admits the call.
	if seconds*float64(time.Second) < 1 {
		return 0
	}
	// The wait is rounded up, so that the tokens are really there when the client returns.
	milliseconds := math.Ceil(seconds * 1000)
	return time.Duration(min(milliseconds, maxWait.Seconds()*1000)) * time.Millisecond
}

// maxWait is the longest wait before jitter is added. A longer wait could overflow.
const maxWait = 100 * 365 * 24 * time.Hour

// take removes tokens from the buckets. They must be available.
func (b buckets) take(now time.Time, txs, bytes int) {
	if b.txs != nil {
		b.txs.AllowN(now, txs)
	}
	if b.bytes != nil {
		b.bytes.AllowN(now, bytes)
	}
}
