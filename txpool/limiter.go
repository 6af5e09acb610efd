package txpool

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common/lru"
	"golang.org/x/time/rate"
)

var (
	// ErrRateLimited: a source, a method or everybody together sent too much. See LimitError.
	ErrRateLimited = errors.New("rate limit exceeded")
	// ErrBanned: the source is banned for a while. See LimitError.
	ErrBanned = errors.New("banned")
)

// LimitError says which limit refused a call. It wraps ErrRateLimited or ErrBanned.
type LimitError struct {
	// Limit names it: "source", "method", "global", or "ban".
	Limit string
	// RetryAfter is after how long the same call can succeed, if nobody else uses the limit up; negative if it never can.
	RetryAfter time.Duration
}

// Error says what is wrong and when to come back.
func (e *LimitError) Error() string {
	if e.RetryAfter < 0 {
		return fmt.Sprintf("%v: more at once than the limit of the %s allows", e.Unwrap(), e.Limit)
	}
	return fmt.Sprintf("%v: %s, try again in %v", e.Unwrap(), e.Limit, e.RetryAfter)
}

// Unwrap returns ErrBanned or ErrRateLimited.
func (e *LimitError) Unwrap() error {
	if e.Limit == "ban" {
		return ErrBanned
	}
	return ErrRateLimited
}

// Rate is what may be sent. A rate that is 0 does not limit.
type Rate struct {
	// Txs is in transactions per second, Bytes in bytes per second.
	Txs, Bytes float64
	// TxBurst and ByteBurst are how many can come at once after a pause; 0 means what a second brings, at least 1.
	TxBurst, ByteBurst int
}

// LimiterConfig is how much a Limiter lets through. Begin with [DefaultLimiterConfig].
type LimiterConfig struct {
	// Source is what one source may send, Global what all may send together.
	Source, Global Rate
	// Methods is what all may send together by a method, such as "eth_sendRawTransaction". One that is not here has no limit of its own.
	Methods map[string]Rate
	// MaxSources is how many sources are remembered, at least 1: the one that was quiet longest is forgotten for a new one, and begins with
	// full buckets when it comes back. Somebody with very many addresses gains that by them; Global holds for all of them together.
	MaxSources int
	// Strikes is how much weight of Strike leads to a ban, at least 1. Weight is forgotten after a StrikeMemory without strikes.
	Strikes      int
	StrikeMemory time.Duration
	// Ban is how long the first ban lasts; each further one twice as long as the last, up to MaxBan. Positive.
	Ban, MaxBan time.Duration
	// MaxBans is how many bans are remembered, at least 1, apart from the sources: only another ban pushes one out.
	MaxBans int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// DefaultLimiterConfig returns the defaults: 50 transactions and 256 kB per second for a source, 2,000 and 16 MB for all, 100 strikes within ten minutes
// for a ban of a minute, at most a day; 64 Ki sources and 16 Ki bans remembered.
func DefaultLimiterConfig() LimiterConfig {
	const kB = 1000
	return LimiterConfig{
		Source:       Rate{Txs: 50, Bytes: 256 * kB, TxBurst: 200, ByteBurst: 1024 * kB},
		Global:       Rate{Txs: 2000, Bytes: 16_000 * kB},
		MaxSources:   64 * 1024,
		Strikes:      100,
		StrikeMemory: 10 * time.Minute,
		Ban:          time.Minute,
		MaxBan:       24 * time.Hour,
		MaxBans:      16 * 1024,
	}
}

// Validate names the first field that is out of range, its value and what is allowed. The error wraps [ErrInvalidConfig].
func (c *LimiterConfig) Validate() error {
	rates := map[string]Rate{"Source": c.Source, "Global": c.Global}
	for method, r := range c.Methods {
		rates["Methods["+method+"]"] = r
	}
	for name, r := range rates {
		if !(r.Txs >= 0 && r.Bytes >= 0) || r.TxBurst < 0 || r.ByteBurst < 0 {
			return fmt.Errorf("%w: %s is %+v, want no negative number", ErrInvalidConfig, name, r)
		}
	}
	for _, f := range []struct {
		field string
		have  int
	}{{"MaxSources", c.MaxSources}, {"Strikes", c.Strikes}, {"MaxBans", c.MaxBans}} {
		if f.have < 1 {
			return fmt.Errorf("%w: %s is %d, want at least 1", ErrInvalidConfig, f.field, f.have)
		}
	}
	if c.Ban <= 0 || c.MaxBan < c.Ban || c.StrikeMemory < 0 {
		return fmt.Errorf("%w: Ban is %v, MaxBan %v, StrikeMemory %v, want 0 < Ban ≤ MaxBan and StrikeMemory ≥ 0", ErrInvalidConfig, c.Ban, c.MaxBan, c.StrikeMemory)
	}
	return nil
}

// Limiter says who may send how much: for a host to ask before it hands anything to a [Pool], or for any other door. A source is whatever
// the host can tell apart and an attacker cannot forge, such as an IP address, a peer's key or an API key. It must never be the
// sender that a transaction names: anybody can send garbage in anybody's name (invariant I8).
//
// Every call takes constant time. It is safe for concurrent use.
type Limiter struct {
	cfg LimiterConfig

	mu      sync.Mutex
	sources lru.BasicLRU[string, *source]
	bans    lru.BasicLRU[string, ban]
	methods map[string]buckets
	global  buckets
}

// source is what is remembered of one.
type source struct {
	buckets buckets
	strikes int
	last    time.Time // strike
}

// ban is until when, and how long it was.
type ban struct {
	until  time.Time
	length time.Duration
}

// NewLimiter returns a limiter that has seen nobody. The error wraps [ErrInvalidConfig].
func NewLimiter(cfg LimiterConfig) (*Limiter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Limiter{
		cfg:     cfg,
		sources: lru.NewBasicLRU[string, *source](cfg.MaxSources),
		bans:    lru.NewBasicLRU[string, ban](cfg.MaxBans),
		methods: make(map[string]buckets, len(cfg.Methods)),
		global:  newBuckets(cfg.Global),
	}
	for method, r := range cfg.Methods {
		l.methods[method] = newBuckets(r)
	}
	return l, nil
}

// Allow asks whether a source may send so many transactions of so many bytes together by a method, and counts them if so. The source's own
// limit is looked at first, then the method's, then that of all, so that a flood from one source uses up nobody else's. A call that is
// refused counts nowhere. The error is a *LimitError.
func (l *Limiter) Allow(from, method string, txs, bytes int) error {
	now := l.cfg.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, banned := l.bans.Peek(from); banned && now.Before(b.until) {
		return &LimitError{"ban", b.until.Sub(now)}
	}
	own := l.source(from).buckets
	shared, global := l.methods[method], l.global
	for _, limit := range [...]struct {
		name string
		b    buckets
	}{{"source", own}, {"method", shared}, {"global", global}} {
		if wait := limit.b.wait(now, txs, bytes); wait != 0 {
			return &LimitError{limit.name, wait}
		}
	}
	own.take(now, txs, bytes)
	shared.take(now, txs, bytes)
	global.take(now, txs, bytes)
	return nil
}

// source returns what is remembered of one, the caller holding the lock.
func (l *Limiter) source(from string) *source {
	if s, known := l.sources.Get(from); known {
		return s
	}
	s := &source{buckets: newBuckets(l.cfg.Source)}
	l.sources.Add(from, s)
	return s
}

// Strike counts against a source that sent what [Spam] says no honest one has reason to send, and bans it when that is too much. Weight is
// at least 1. It reports whether the source is banned now.
func (l *Limiter) Strike(from string, weight int) bool {
	now := l.cfg.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	past, known := l.bans.Peek(from)
	if known && now.Before(past.until) {
		return true
	}
	s := l.source(from)
	if now.Sub(s.last) > l.cfg.StrikeMemory {
		s.strikes = 0
	}
	s.last = now
	s.strikes += min(max(weight, 1), l.cfg.Strikes) // what is enough is enough
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

// Banned returns until when a source is banned, and whether it is.
func (l *Limiter) Banned(from string) (until time.Time, banned bool) {
	now := l.cfg.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b, known := l.bans.Peek(from)
	if !known || !now.Before(b.until) {
		return time.Time{}, false
	}
	return b.until, true
}

// Pardon lifts a ban, and forgets that there were any.
func (l *Limiter) Pardon(from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bans.Remove(from)
	l.sources.Remove(from)
}

// buckets are a rate's two. A nil one does not limit.
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

// wait returns how long until so much can be taken: 0 if it can now, negative if never.
func (b buckets) wait(now time.Time, txs, bytes int) time.Duration {
	first, second := wait(b.txs, now, txs), wait(b.bytes, now, bytes)
	if first < 0 || second < 0 {
		return -1
	}
	return max(first, second)
}

func wait(bucket *rate.Limiter, now time.Time, n int) time.Duration {
	if bucket == nil {
		return 0
	}
	if n > bucket.Burst() {
		return -1
	}
	missing := float64(n) - bucket.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	seconds := missing / float64(bucket.Limit())
	return time.Duration(min(math.Ceil(seconds*float64(time.Second)), float64(math.MaxInt64/2)))
}

// take takes what can be taken.
func (b buckets) take(now time.Time, txs, bytes int) {
	if b.txs != nil {
		b.txs.AllowN(now, txs)
	}
	if b.bytes != nil {
		b.bytes.AllowN(now, bytes)
	}
}
