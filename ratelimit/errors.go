package ratelimit

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrInvalidConfig is wrapped by every error of Config.Validate.
	ErrInvalidConfig = errors.New("ratelimit: invalid config")
	// ErrRateLimited is wrapped by an [Error] if the call would exceed the rate of its connection,
	// of its source, of its method, or of all sources together.
	ErrRateLimited = errors.New("rate limit exceeded")
	// ErrBanned is wrapped by an [Error] if the source is banned.
	ErrBanned = errors.New("banned")
	// ErrSurge is wrapped by an [Error] if Config.Surge has refused the call because the host is
	// busy.
	ErrSurge = errors.New("node is busy")
)

// Error is the error of Limiter.Allow. It wraps ErrRateLimited, ErrSurge
// or ErrBanned.
type Error struct {
	// Limit names the limit that refused the call: "connection", "source",
	// "method", "global", "surge" or "ban". If several limits refused the call,
	// Limit names the one with the longest wait.
	Limit string
	// RetryAfter is the time after which the same call succeeds, if no other call
	// uses the limits in between. If a rate refused the call, Surge may still
	// refuse it once more. A negative value means that the call can never succeed,
	// because it needs more than a burst.
	RetryAfter time.Duration
}

// Error returns the limit and the time to wait.
func (e *Error) Error() string {
	if e.RetryAfter < 0 {
		return fmt.Sprintf("%v: more at once than the limit of the %s allows", e.Unwrap(), e.Limit)
	}
	return fmt.Sprintf("%v: %s, try again in %v", e.Unwrap(), e.Limit, e.RetryAfter)
}

// Unwrap returns the error that belongs to Limit.
func (e *Error) Unwrap() error {
	switch e.Limit {
	case "ban":
		return ErrBanned
	case "surge":
		return ErrSurge
	}
	return ErrRateLimited
}
