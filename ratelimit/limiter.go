package ratelimit

import (
	"math"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common/lru"
	"golang.org/x/time/rate"
)

// Limiter decides for each call whether its source may send it now. Each decision takes constant
// time. A Limiter is safe for concurrent use.
type Limiter struct {
	cfg Config

	mu          sync.Mutex
	sources     lru.BasicLRU[string, *source]
	connections lru.BasicLRU[connection, buckets]
	bans        lru.BasicLRU[string, ban]
	methods     map[string]buckets
	global      buckets
}

// source is the state of one source.
type source struct {
	buckets buckets
	strikes int
	last    time.Time               // time of the last strike
	free    [offences]*rate.Limiter // buckets of the offences that cost no strike
	turn    time.Time               // end of the wait after a refusal by Surge
}

// connection is the key of a connection. It contains the source, because two sources
// may have connections with the same name.
type connection struct{ source, name string }

// New returns a limiter without known sources. The error wraps
// [ErrInvalidConfig].
func New(cfg Config) (*Limiter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.complete()
	l := &Limiter{
		cfg:         cfg,
		sources:     lru.NewBasicLRU[string, *source](cfg.MaxSources),
		connections: lru.NewBasicLRU[connection, buckets](cfg.MaxConnections),
		bans:        lru.NewBasicLRU[string, ban](cfg.MaxBans),
		methods:     make(map[string]buckets, len(cfg.Methods)),
		global:      newBuckets(cfg.Global),
	}
	for method, r := range cfg.Methods {
		l.methods[method] = newBuckets(r)
	}
	return l, nil
}

// Call describes a call that a host is about to process. The host passes it to
// Limiter.Allow first.
type Call struct {
	// Source is the identity of the caller, such as an IP address, a peer's key or
	// an API key. The host can distinguish sources, and an attacker cannot forge
	// them. Source must not be the sender that a transaction names, because a
	// stranger can submit invalid transactions in the name of any sender (invariant
	// I8).
	Source string
	// Connection is the name of one of the source's connections, for example its remote address
	// with port. If it is empty, Config.Connection does not apply.
	Connection string
	// Method is a key of Config.Methods, or any other text.
	Method string
	// Txs is the number of transactions, and Bytes their size in bytes.
	Txs, Bytes int
}

// Allow returns nil and counts the call if no limit refuses it. Otherwise it
// returns an *[Error] and counts nothing, so that a flood from one source does not
// use up the limits of other sources. As an exception, a call that Config.Surge
// refuses still counts for its connection and its source.
func (l *Limiter) Allow(call Call) error {
	refusal := l.cfg.Surge.refusal(call) // before the lock, because Pressure is the host's code
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.Now() // with the lock held, so that buckets never see time go back
	if b, banned := l.bans.Peek(call.Source); banned && now.Before(b.until) {
		return &Error{"ban", b.until.Sub(now)}
	}
	s := l.source(call.Source)
	limits := [...]limit{
		{"connection", l.connection(call)},
		{"source", s.buckets},
		{"method", l.methods[call.Method]},
		{"global", l.global},
	}
	if name, wait := longestWait(limits[:], now, call.Txs, call.Bytes); wait != 0 {
		return &Error{name, l.spread(wait)}
	}
	if err := l.refuses(s, limits[:2], call, refusal, now); err != nil {
		return err
	}
	for _, limit := range limits {
		limit.take(now, call.Txs, call.Bytes)
	}
	return nil
}

// Forget frees the memory of a connection. The host can call it when the connection
// is closed. Otherwise, the limiter forgets a connection when MaxConnections others
// have been active since.
func (l *Limiter) Forget(source, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connections.Remove(connection{source, name})
}

// source returns the state of a source. The caller holds the lock.
func (l *Limiter) source(name string) *source {
	if s, known := l.sources.Get(name); known {
		return s
	}
	s := &source{buckets: newBuckets(l.cfg.Source)}
	l.sources.Add(name, s)
	return s
}

// connection returns the buckets of a call's connection. The caller holds the
// lock.
func (l *Limiter) connection(call Call) buckets {
	if call.Connection == "" || l.cfg.Connection == (Rate{}) {
		return buckets{}
	}
	key := connection{call.Source, call.Connection}
	if b, known := l.connections.Get(key); known {
		return b
	}
	b := newBuckets(l.cfg.Connection)
	l.connections.Add(key, b)
	return b
}

// spread adds jitter to a wait, which never becomes shorter. The caller holds the lock.
func (l *Limiter) spread(wait time.Duration) time.Duration {
	if wait == never || l.cfg.Jitter == 0 {
		return wait
	}
	// Clients that were refused together should not return together.
	share := l.cfg.Rand() * float64(l.cfg.Jitter) / 1000
	milliseconds := math.Floor(share * float64(wait.Milliseconds()))
	return wait + time.Duration(milliseconds)*time.Millisecond
}
