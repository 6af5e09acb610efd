package ratelimit

import "time"

// ban is the end of a ban and its length.
type ban struct {
	until  time.Time
	length time.Duration
}

// Strike counts an offence of a source, for example a transaction that is
// invalid in itself, and bans the source when the weight reaches Config.Strikes.
// A weight below 1 counts as 1. It reports whether the source is banned now.
func (l *Limiter) Strike(from string, weight int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.Now()
	past, known := l.bans.Peek(from)
	if known && now.Before(past.until) {
		return true
	}
	s := l.source(from)
	if now.Sub(s.last) > l.cfg.StrikeMemory {
		s.strikes = 0
	}
	s.last = now
	s.strikes += min(max(weight, 1), l.cfg.Strikes) // avoids an overflow
	if s.strikes < l.cfg.Strikes {
		return false
	}
	s.strikes = 0
	length := l.cfg.Ban
	if known {
		length = l.cfg.MaxBan
		if past.length < l.cfg.MaxBan/2 {
			length = past.length * 2
		}
	}
	l.bans.Add(from, ban{now.Add(length), length})
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
