// Package ratelimit limits how much each source may send, and bans sources that
// send transactions which no honest client sends.
package ratelimit

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
	// ErrInvalidConfig is wrapped by every error of Config.Validate.
	ErrInvalidConfig = errors.New("ratelimit: invalid config")
	// ErrRateLimited is wrapped by an [Error] if a source, a method or all
	// sources together exceed a rate.
	ErrRateLimited = errors.New("rate limit exceeded")
	// ErrBanned is wrapped by an [Error] if the source is banned.
	ErrBanned = errors.New("banned")
)

// Error is the error of Limiter.Allow. It wraps ErrRateLimited or
// ErrBanned.
type Error struct {
	// Limit is the limit that refused the call: "source", "method", "global" or
	// "ban". If several limits refused it, it is the one with the longest wait.
	Limit string
	// RetryAfter is the time after which the same call succeeds if no other call
	// uses the limits. A negative value means that it can never succeed.
	RetryAfter time.Duration
}

// Error returns the limit and the time to wait.
func (e *Error) Error() string {
	if e.RetryAfter < 0 {
		return fmt.Sprintf("%v: more at once than the limit of the %s allows", e.Unwrap(), e.Limit)
	}
	return fmt.Sprintf("%v: %s, try again in %v", e.Unwrap(), e.Limit, e.RetryAfter)
}

// Unwrap returns ErrBanned if Limit is "ban", and ErrRateLimited otherwise.
func (e *Error) Unwrap() error {
	if e.Limit == "ban" {
		return ErrBanned
	}
	return ErrRateLimited
}

// Rate is a limit on transactions and bytes. A rate of 0 means no limit.
type Rate struct {
	// Txs is in transactions per second, and Bytes in bytes per second.
	Txs, Bytes float64
	// TxBurst and ByteBurst are the numbers allowed at once after a pause. 0
	// means the amount of one second, at least 1.
	TxBurst, ByteBurst int
}

// Config configures a [Limiter]. Start from [DefaultConfig].
type Config struct {
	// Source limits each source, and Global all sources together. The defaults
	// are 50 transactions and 256 kB per second with bursts of 200 transactions
	// and 1,024 kB, and 2,000 transactions and 16 MB per second.
	Source, Global Rate
	// Methods limits all calls of a method together, for example
	// "eth_sendRawTransaction". A method that is not in the map has no limit
	// besides Source and Global. The default is nil.
	Methods map[string]Rate
	// MaxSources is the maximum number of remembered sources, at least 1. The
	// least recently active source is forgotten first, and starts with full
	// buckets when it returns. A party with very many addresses can exploit
	// that; Global still limits it. The default is 65,536.
	MaxSources int
	// Strikes is the weight of strikes that leads to a ban, at least 1.
	// StrikeMemory is the time without strikes after which the weight is
	// forgotten; it must not be negative. The defaults are 100 and ten minutes.
	Strikes      int
	StrikeMemory time.Duration
	// Ban is the length of the first ban, and must be positive. Each further
	// ban is twice as long as the previous one, up to MaxBan. The defaults are
	// one minute and one day.
	Ban, MaxBan time.Duration
	// MaxBans is the maximum number of remembered bans, at least 1. The oldest
	// one is forgotten first. The default is 16,384.
	MaxBans int
	// Now returns the current time. Nil means time.Now.
	Now func() time.Time
}

// DefaultConfig returns the default configuration. Each field documents
// its default.
func DefaultConfig() Config {
	const kB = 1000
	return Config{
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

// Validate returns an error that wraps [ErrInvalidConfig] and names the first
// field that is out of range, its value and the range. It returns nil if all
// fields are valid.
func (c *Config) Validate() error {
	rates := map[string]Rate{"Source": c.Source, "Global": c.Global}
	for method, r := range c.Methods {
		rates["Methods["+method+"]"] = r
	}
	for name, r := range rates {
		if !(r.Txs >= 0 && r.Bytes >= 0) || r.TxBurst < 0 || r.ByteBurst < 0 {
			return fmt.Errorf("%w: %s is %+v, want no negative values", ErrInvalidConfig, name, r)
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

// Limiter decides how much each source may send. A host calls it before it
// passes a transaction to its pool; it can guard other calls too. A source is
// any identity that the host can distinguish and an attacker cannot forge, such
// as an IP address, a peer's key or an API key. It must not be the sender in a
// transaction, because a stranger can submit invalid transactions in the name
// of any sender (invariant I8).
//
// Each call takes constant time. A Limiter is safe for concurrent use.
type Limiter struct {
	cfg Config

	mu      sync.Mutex
	sources lru.BasicLRU[string, *source]
	bans    lru.BasicLRU[string, ban]
	methods map[string]buckets
	global  buckets
}

// source is the state of one source.
type source struct {
	buckets buckets
	strikes int
	last    time.Time // time of the last strike
}

// ban is the end of a ban and its length.
type ban struct {
	until  time.Time
	length time.Duration
}

// New returns a limiter without known sources. The error wraps
// [ErrInvalidConfig].
func New(cfg Config) (*Limiter, error) {
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

// Allow returns nil and counts the call if the source may send txs transactions
// of bytes bytes in total by a method. Otherwise it returns an *[Error] and
// counts nothing, so that a flood from one source does not use up the limits of
// others.
func (l *Limiter) Allow(from, method string, txs, bytes int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.Now() // with the lock held, because buckets must not see the time go back
	if b, banned := l.bans.Peek(from); banned && now.Before(b.until) {
		return &Error{"ban", b.until.Sub(now)}
	}
	limits := [...]limit{{"source", l.source(from).buckets}, {"method", l.methods[method]}, {"global", l.global}}
	if name, wait := longestWait(limits[:], now, txs, bytes); wait != 0 {
		return &Error{name, wait}
	}
	for _, limit := range limits {
		limit.take(now, txs, bytes)
	}
	return nil
}

// source returns the state of a source. The caller holds the lock.
func (l *Limiter) source(from string) *source {
	if s, known := l.sources.Get(from); known {
		return s
	}
	s := &source{buckets: newBuckets(l.cfg.Source)}
	l.sources.Add(from, s)
	return s
}

// Strike counts an offence of a source, for example a transaction that is
// invalid in itself, and bans the source when the weight reaches Config.Strikes.
// A weight below 1 counts as 1. It reports whether the source is banned now.
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

// Pardon lifts a source's ban and forgets its previous bans and strikes.
func (l *Limiter) Pardon(from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bans.Remove(from)
	l.sources.Remove(from)
}

// buckets are the token buckets of a rate. A nil bucket does not limit.
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

// limit is the buckets of a limit with the limit's name.
type limit struct {
	name string
	buckets
}

// longestWait returns the time until the given amounts are available in all
// limits, and the limit with this time: 0 if they are available now, and never
// if they exceed a burst.
func longestWait(limits []limit, now time.Time, txs, bytes int) (name string, longest time.Duration) {
	for _, limit := range limits {
		wait := limit.wait(now, txs, bytes)
		if wait == never {
			return limit.name, never
		}
		if wait > longest {
			name, longest = limit.name, wait
		}
	}
	return name, longest
}

// never is the wait for an amount that exceeds a burst.
const never = time.Duration(-1)

func (b buckets) wait(now time.Time, txs, bytes int) time.Duration {
	first, second := wait(b.txs, now, txs), wait(b.bytes, now, bytes)
	if first == never || second == never {
		return never
	}
	return max(first, second)
}

// wait returns the time until a bucket has n tokens, rounded up to a
// millisecond. The rounding also covers the error of the bucket's floating-point
// numbers, so that the tokens are there after that time.
func wait(bucket *rate.Limiter, now time.Time, n int) time.Duration {
	if bucket == nil {
		return 0
	}
	if n > bucket.Burst() {
		return never
	}
	missing := float64(n) - bucket.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	milliseconds := math.Ceil(missing / float64(bucket.Limit()) * 1000)
	return time.Duration(min(milliseconds, maxWait.Seconds()*1000)) * time.Millisecond
}

// maxWait is the longest RetryAfter. A longer one could overflow.
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
