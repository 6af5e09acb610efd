package ratelimit

import (
	"time"

	"golang.org/x/time/rate"
)

// ban is the end and the length of a source's ban. The next ban is twice as long.
type ban struct {
	until  time.Time
	length time.Duration
}

// Offence is a kind of call for which a source is punished.
type Offence int

const (
	// Invalid is a transaction that is invalid in itself, whatever the state of the chain. No
	// honest client sends such a transaction.
	Invalid Offence = iota
	// Underpriced is a transaction, or a replacement, that pays too little. An
	// honest wallet with an old fee estimate sends such a transaction now and then.
	Underpriced

	offences // number of kinds
)

// Penalty is the effect of an offence.
type Penalty struct {
	// Weight is the number of strikes that each offence costs, unless the offence
	// is free. 0 means that the offence has no effect.
	Weight int
	// Free is the number of offences that a source may commit at once without a strike.
	// It must not be negative. Used free offences become available again at a steady
	// rate, all of them within Window. Window must be positive if Free is.
	Free   int
	Window time.Duration
}

// allowance returns a bucket with the free offences, or nil if none are free.
func (p Penalty) allowance() *rate.Limiter {
	if p.Free == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(float64(p.Free)/p.Window.Seconds()), p.Free)
}

// Strike counts an offence of a source, and bans the source when its strikes reach
// Config.Strikes. It reports whether the source is banned now. source is the source
// that submitted the transaction, never the sender named in the transaction. An
// unknown offence counts as Invalid.
func (l *Limiter) Strike(source string, offence Offence) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.Now()
	past, known := l.bans.Peek(source)
	if known && now.Before(past.until) {
		return true
	}
	if !l.strike(l.source(source), offence, now) {
		return false
	}
	length := l.cfg.Ban
	if known {
		length = l.cfg.MaxBan
		if past.length < l.cfg.MaxBan/2 {
			length = past.length * 2
		}
	}
	l.bans.Add(source, ban{now.Add(length), length})
	return true
}

// strike counts an offence of a source, and reports whether its strikes reach the
// limit.
func (l *Limiter) strike(s *source, offence Offence, now time.Time) bool {
	if offence < 0 || offence >= offences {
		offence = Invalid
	}
	penalty := l.cfg.penalty(offence)
	if s.free[offence] == nil {
		s.free[offence] = penalty.allowance()
	}
	if penalty.Weight == 0 || s.free[offence] != nil && s.free[offence].AllowN(now, 1) {
		return false
	}
	if now.Sub(s.last) > l.cfg.StrikeMemory {
		s.strikes = 0
	}
	s.last = now
	s.strikes += min(penalty.Weight, l.cfg.Strikes) // avoids an overflow
	if s.strikes < l.cfg.Strikes {
		return false
	}
	s.strikes = 0
	return true
}

// Banned reports whether a source is banned, and until when.
func (l *Limiter) Banned(source string) (until time.Time, banned bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, known := l.bans.Peek(source)
	if !known || !l.cfg.Now().Before(b.until) {
		return time.Time{}, false
	}
	return b.until, true
}

// Pardon lifts a source's ban and forgets its previous bans and strikes.
func (l *Limiter) Pardon(source string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bans.Remove(source)
	l.sources.Remove(source)
}
