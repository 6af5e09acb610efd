// Package backoff has the rule by which all packages wait longer after each failure in a row.
package backoff

import (
	"context"
	"time"
)

// Wait returns the wait after a number of failures in a row: first after one failure, twice as long
// after each further one, and most at the longest. first must be positive. Wait returns first if
// failures is less than one, and most if first is longer than most.
func Wait(first, most time.Duration, failures int) time.Duration {
	wait := first
	for range failures - 1 {
		if wait > most/2 {
			return most
		}
		wait *= 2
	}
	return min(wait, most)
}

// Pause waits for a time. It returns false if ctx has ended.
func Pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
