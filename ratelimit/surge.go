package ratelimit

import (
	"slices"
	"time"
)

// Surge configures how calls are refused while the host is busy, for example while
// its pool is nearly full. A random share of the calls is refused, each with a
// random RetryAfter, so that their clients return at different times. After a
// source has waited that long, its next call is not refused by Surge again.
type Surge struct {
	// Pressure returns how busy the host is, from 0 to 1. It must be safe for
	// concurrent use. Nil, the default, turns Surge off.
	Pressure func() float64
	// Methods are the methods whose calls can be refused. Nil, the default, means all. A call
	// without transactions is never refused by Surge.
	Methods []string
	// Threshold is the pressure above which calls are refused, in per mille. It is at most 1000,
	// which turns Surge off. The default is 800.
	Threshold int
	// MaxRefusal is the share of calls that is refused at pressure 1, in per mille.
	// At lower pressures the share is smaller, down to 0 at Threshold. MaxRefusal
	// is at most 990, so that some calls always pass. The default is 900.
	MaxRefusal int
	// MinRetry and MaxRetry are the bounds of the random RetryAfter of a refused
	// call. MinRetry is positive and at most MaxRetry. The defaults are 1 s and 10
	// s.
	MinRetry, MaxRetry time.Duration
}

// refusal returns the probability of a refusal at the present pressure.
func (s *Surge) refusal(call Call) float64 {
	if s.Pressure == nil || call.Txs == 0 || s.Methods != nil && !slices.Contains(s.Methods, call.Method) {
		return 0
	}
	threshold, pressure := float64(s.Threshold)/1000, min(s.Pressure(), 1)
	if !(pressure > threshold) { // true for NaN
		return 0
	}
	return (pressure - threshold) / (1 - threshold) * float64(s.MaxRefusal) / 1000
}

// refuses decides by chance about a call that all other limits admit. share is the
// probability of a refusal. The caller holds the lock.
func (l *Limiter) refuses(s *source, own []limit, call Call, share float64, now time.Time) error {
	if share == 0 {
		return nil
	}
	if !s.turn.IsZero() && !now.Before(s.turn) {
		s.turn = time.Time{} // it waited
		return nil
	}
	if l.cfg.Rand() >= share {
		return nil
	}
	// The refused call still uses up the rate of its connection and its source. Otherwise a
	// client that tries again at once would get more calls through than a client that waits.
	for _, limit := range own {
		limit.take(now, call.Txs, call.Bytes)
	}
	_, wait := longestWait(own, now, call.Txs, call.Bytes)
	surge := &l.cfg.Surge
	extra := time.Duration(l.cfg.Rand() * float64(surge.MaxRetry-surge.MinRetry))
	wait = max(wait, surge.MinRetry+extra.Truncate(time.Millisecond))
	s.turn = now.Add(wait)
	return &Error{"surge", wait}
}
