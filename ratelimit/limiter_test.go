package ratelimit

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	"pgregory.net/rapid"
)

// clock is a clock that a test moves.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Unix(1_800_000_000, 0)} }

func (c *clock) now() time.Time { return c.at }

func (c *clock) advance(d time.Duration) { c.at = c.at.Add(d) }

// clocked returns a limiter without jitter, and its clock.
func clocked(t require.TestingT, change func(*Config)) (*Limiter, *clock) {
	c := newClock()
	cfg := DefaultConfig()
	cfg.Now, cfg.Jitter = c.now, 0
	if change != nil {
		change(&cfg)
	}
	l, err := New(cfg)
	require.NoError(t, err)
	return l, c
}

// send is one transaction of ten bytes.
func send(source string) Call { return Call{Source: source, Method: "send", Txs: 1, Bytes: 10} }

// sendOver is send over a connection.
func sendOver(source, connection string) Call {
	call := send(source)
	call.Connection = connection
	return call
}

func limited(t require.TestingT, err error, limit string, after time.Duration) {
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, Error{limit, after}, *e)
}

// The method's and the global limit stop all sources. A refused call does not
// count in any of them.
func TestLimits(t *testing.T) {
	l, c := clocked(t, func(c *Config) {
		c.Source = Rate{Txs: 2}
		c.Methods = map[string]Rate{"send": {Txs: 3}}
		c.Global = Rate{Txs: 4, Bytes: 1000}
	})
	for range 2 {
		require.NoError(t, l.Allow(send("a")))
	}
	for range 100 { // a flood from one source
		limited(t, l.Allow(send("a")), "source", 500*time.Millisecond)
	}
	require.NoError(t, l.Allow(send("b")))
	err := l.Allow(send("c"))
	limited(t, err, "method", 334*time.Millisecond)
	require.ErrorIs(t, err, ErrRateLimited)
	other := func(source string, txs, bytes int) error {
		return l.Allow(Call{Source: source, Method: "other", Txs: txs, Bytes: bytes})
	}
	require.NoError(t, other("c", 1, 10))
	limited(t, other("c", 1, 10), "global", 250*time.Millisecond)
	require.EqualError(t, other("c", 1, 10), "rate limit exceeded: global, try again in 250ms")
	c.advance(time.Second)
	limited(t, other("d", 1, 1001), "global", -1)
	require.EqualError(t, other("d", 1, 1001), "rate limit exceeded: more at once than the limit of the global allows")
	require.NoError(t, other("d", 2, 1000), "refused calls were not counted")
	limited(t, other("d", 1, 0), "source", 500*time.Millisecond)
}

// If two limits refuse a call, the error has the longer wait.
func TestLongestWait(t *testing.T) {
	for name, x := range map[string]struct {
		source, global Rate
		limit          string
		wait           time.Duration
	}{
		"source":         {Rate{Txs: 0.5}, Rate{Txs: 1}, "source", 2 * time.Second},
		"global":         {Rate{Txs: 1}, Rate{Txs: 0.1}, "global", 10 * time.Second},
		"equal":          {Rate{Txs: 1}, Rate{Txs: 1}, "source", time.Second},
		"bytes, not txs": {Rate{Txs: 1, Bytes: 2.5, ByteBurst: 10}, Rate{}, "source", 4 * time.Second},
		"extremely long": {Rate{Txs: math.SmallestNonzeroFloat64}, Rate{}, "source", maxWait},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := clocked(t, func(c *Config) { c.Source, c.Global, c.Jitter = x.source, x.global, 1000 })
			l.cfg.Rand = func() float64 { return 0 }
			require.NoError(t, l.Allow(send("a")))
			limited(t, l.Allow(send("a")), x.limit, x.wait)
		})
	}
}

// A connection has its own limit besides its source's. One that is forgotten
// begins with full buckets.
func TestConnections(t *testing.T) {
	l, c := clocked(t, func(c *Config) {
		c.Source, c.Connection = Rate{Txs: 5}, Rate{Txs: 2}
	})
	for range 2 {
		require.NoError(t, l.Allow(sendOver("a", "1")))
	}
	limited(t, l.Allow(sendOver("a", "1")), "connection", 500*time.Millisecond)
	require.NoError(t, l.Allow(sendOver("a", "2")))
	require.NoError(t, l.Allow(sendOver("b", "1")), "another connection with the same name")
	require.NoError(t, l.Allow(send("a")), "no connection, no limit of it")
	l.Forget("a", "1")
	require.NoError(t, l.Allow(sendOver("a", "1")))
	limited(t, l.Allow(sendOver("a", "2")), "source", 200*time.Millisecond)
	l.Forget("a", "2")
	limited(t, l.Allow(sendOver("a", "2")), "source", 200*time.Millisecond)
	l.Forget("a", "unknown")
	c.advance(200 * time.Millisecond)
	require.NoError(t, l.Allow(sendOver("a", "2")))
}

// Property: a connection that floods its source leaves the rest of the source's
// rate and burst to the other connections.
func TestConnectionIsolation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := Rate{Txs: float64(rapid.IntRange(1, 20).Draw(t, "own rate")), TxBurst: rapid.IntRange(1, 20).Draw(t, "own burst")}
		rest := Rate{Txs: float64(rapid.IntRange(1, 20).Draw(t, "rest")), TxBurst: rapid.IntRange(1, 20).Draw(t, "rest burst")}
		l, c := clocked(t, func(c *Config) {
			c.Connection, c.Source, c.Global = own, Rate{Txs: own.Txs + rest.Txs, TxBurst: own.TxBurst + rest.TxBurst}, Rate{}
		})
		// The quiet connection stays within both its rate and the rest.
		quiet := rate.NewLimiter(rate.Limit(min(own.Txs, rest.Txs)), min(own.TxBurst, rest.TxBurst))
		for range 100 {
			for l.Allow(sendOver("a", "flood")) == nil {
			}
			for quiet.AllowN(c.now(), 1) {
				require.NoError(t, l.Allow(sendOver("a", "quiet")))
			}
			c.advance(time.Duration(rapid.IntRange(0, 500).Draw(t, "ms")) * time.Millisecond)
		}
	})
}

// Sources and connections are remembered up to their caps.
func TestMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, _ := clocked(t, func(c *Config) {
			c.MaxSources, c.MaxConnections, c.MaxBans, c.Strikes = 4, 6, 2, 1
			c.Source, c.Global = Rate{}, Rate{}
		})
		for range 200 {
			source := fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "source"))
			switch rapid.IntRange(0, 9).Draw(t, "act") {
			case 0:
				l.Strike(source, Offence(rapid.IntRange(-1, 2).Draw(t, "offence")))
			case 1:
				l.Pardon(source)
			case 2:
				l.Forget(source, "1")
			default:
				_ = l.Allow(sendOver(source, fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "connection"))))
			}
			require.LessOrEqual(t, l.sources.Len(), 4)
			require.LessOrEqual(t, l.connections.Len(), 6)
			require.LessOrEqual(t, l.bans.Len(), 2)
		}
	})
}

// Without a limit for connections they take no memory.
func TestNoConnectionLimit(t *testing.T) {
	l, _ := clocked(t, func(c *Config) { c.Connection = Rate{} })
	require.NoError(t, l.Allow(sendOver("a", "1")))
	require.Zero(t, l.connections.Len())
}

// Property: no connection, no source, and not all sources together, can exceed
// the burst plus the rate times the elapsed time.
func TestRates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, c := clocked(t, func(c *Config) {
			c.Connection, c.Source, c.Global = Rate{Txs: 2, TxBurst: 4}, Rate{Txs: 3, TxBurst: 5, Bytes: 100}, Rate{Txs: 7, TxBurst: 9}
		})
		began, passed, over, all := c.now(), map[string]int{}, map[string]int{}, 0
		for range 60 {
			source, conn := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "source"), rapid.SampledFrom([]string{"1", "2"}).Draw(t, "connection")
			n := rapid.IntRange(1, 4).Draw(t, "n")
			if l.Allow(Call{Source: source, Connection: conn, Txs: n, Bytes: rapid.IntRange(0, 50).Draw(t, "bytes")}) == nil {
				passed[source] += n
				over[source+conn] += n
				all += n
			}
			seconds := c.now().Sub(began).Seconds()
			most := func(r Rate) float64 { return float64(r.TxBurst) + r.Txs*seconds + 1e-6 }
			require.LessOrEqual(t, float64(over[source+conn]), most(l.cfg.Connection))
			require.LessOrEqual(t, float64(passed[source]), most(l.cfg.Source))
			require.LessOrEqual(t, float64(all), most(l.cfg.Global))
			c.advance(time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond)
		}
	})
}

// drawRate returns a rate for TestRetryAfter.
func drawRate(t *rapid.T, name string) Rate {
	return Rate{
		Txs: rapid.Float64Range(0.01, 3000).Draw(t, name+" txs"), TxBurst: rapid.IntRange(1, 20).Draw(t, name+" burst"),
		Bytes: rapid.Float64Range(1, 1e6).Draw(t, name+" bytes"), ByteBurst: rapid.IntRange(1000, 1e7).Draw(t, name+" byte burst"),
	}
}

// Property: a call that was refused succeeds after RetryAfter if no other call
// came in between, whatever limits it exceeded and whatever the jitter was.
func TestRetryAfter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, c := clocked(t, func(c *Config) {
			c.Source, c.Connection, c.Global = drawRate(t, "source"), drawRate(t, "connection"), drawRate(t, "global")
			c.Methods = map[string]Rate{"send": drawRate(t, "send")}
			c.Jitter = rapid.IntRange(0, 1000).Draw(t, "jitter")
			c.Rand = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)).Float64
		})
		for range 40 {
			call := sendOver(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "source"), rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "connection"))
			call.Txs, call.Bytes = rapid.IntRange(0, 20).Draw(t, "n"), rapid.IntRange(0, 2000).Draw(t, "bytes")
			var limit *Error
			if !errors.As(l.Allow(call), &limit) || limit.RetryAfter < 0 {
				c.advance(time.Duration(rapid.IntRange(0, 1e9).Draw(t, "ns")))
				continue
			}
			c.advance(limit.RetryAfter)
			require.NoError(t, l.Allow(call), "%v was refused before", limit)
		}
	})
}

// Property: jitter adds between nothing and its share to RetryAfter, and it uses
// this interval: clients that are refused at the same moment return at
// different ones.
func TestJitter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jitter := rapid.IntRange(10, 1000).Draw(t, "jitter")
		const exact = 10 * time.Second
		l, _ := clocked(t, func(c *Config) {
			c.Source, c.Global, c.Jitter = Rate{}, Rate{Txs: 0.1}, jitter
			c.Rand = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)).Float64
		})
		most := exact * time.Duration(jitter) / 1000
		require.NoError(t, l.Allow(send("first")))
		seen := map[time.Duration]bool{}
		for range 100 {
			var limit *Error
			require.ErrorAs(t, l.Allow(send("a")), &limit)
			require.GreaterOrEqual(t, limit.RetryAfter, exact)
			require.Less(t, limit.RetryAfter, exact+most)
			seen[(limit.RetryAfter-exact)*4/most] = true
		}
		require.Len(t, seen, 4, "each quarter of the interval was used")
	})
}

func TestConcurrent(t *testing.T) {
	l, _ := clocked(t, func(c *Config) {
		c.Global, c.Source, c.Connection, c.MaxSources, c.Jitter = Rate{Txs: 100}, Rate{}, Rate{Txs: 1000}, 8, 100
	})
	var group sync.WaitGroup
	var mu sync.Mutex
	passed := 0
	for g := range 64 {
		group.Go(func() {
			for range 20 {
				source := fmt.Sprint(g % 16)
				if l.Allow(sendOver(source, fmt.Sprint(g%3))) == nil {
					mu.Lock()
					passed++
					mu.Unlock()
				}
				l.Banned(source)
				l.Forget(source, "0")
			}
		})
	}
	group.Wait()
	require.Equal(t, 100, passed)
}

func TestConfig(t *testing.T) {
	for field, change := range map[string]func(*Config){
		"Source":           func(c *Config) { c.Source.Txs = -1 },
		"Connection":       func(c *Config) { c.Connection.Bytes = math.NaN() },
		"Global":           func(c *Config) { c.Global.Txs = math.Inf(1) },
		"Methods[x]":       func(c *Config) { c.Methods = map[string]Rate{"x": {TxBurst: -1}} },
		"Jitter":           func(c *Config) { c.Jitter = 1001 },
		"Surge.Threshold":  func(c *Config) { c.Surge.Threshold = 1001 },
		"Surge.MaxRefusal": func(c *Config) { c.Surge.MaxRefusal = 991 },
		"Surge.MinRetry":   func(c *Config) { c.Surge.MinRetry = 0 },
		"Surge.MaxRetry":   func(c *Config) { c.Surge.MaxRetry = c.Surge.MinRetry - 1 },
		"MaxSources":       func(c *Config) { c.MaxSources = 0 },
		"MaxConnections":   func(c *Config) { c.MaxConnections = 0 },
		"Strikes":          func(c *Config) { c.Strikes = 0 },
		"StrikeMemory":     func(c *Config) { c.StrikeMemory = -1 },
		"Invalid":          func(c *Config) { c.Invalid.Weight = -1 },
		"Underpriced":      func(c *Config) { c.Underpriced.Window = 0 },
		"Ban":              func(c *Config) { c.Ban = 0 },
		"MaxBan":           func(c *Config) { c.MaxBan = c.Ban - 1 },
		"MaxBans":          func(c *Config) { c.MaxBans = 0 },
	} {
		t.Run(field, func(t *testing.T) {
			c := DefaultConfig()
			change(&c)
			_, err := New(c)
			require.ErrorIs(t, err, ErrInvalidConfig)
			require.ErrorContains(t, err, "config: "+field+" is ")
		})
	}
	c := DefaultConfig()
	c.Jitter, c.MaxBans = -1, 0
	require.EqualError(t, c.Validate(), "ratelimit: invalid config: Jitter is -1, want 0 to 1000 per mille; MaxBans is 0, want at least 1")
}

// BenchmarkAllow compares Allow with the buckets that it uses: a bare
// rate.Limiter, and eight of them.
func BenchmarkAllow(b *testing.B) {
	high := Rate{Txs: 1e9, TxBurst: 1 << 30, Bytes: 1e12, ByteBurst: 1 << 30}
	buckets := make([]*rate.Limiter, 8)
	for i := range buckets {
		buckets[i] = rate.NewLimiter(1e9, 1<<30)
	}
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprintf("%d buckets of x/time/rate", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				now := time.Now()
				for _, bucket := range buckets[:n] {
					if !bucket.AllowN(now, 1) {
						b.Fatal("refused")
					}
				}
			}
		})
	}
	cfg := DefaultConfig()
	cfg.Source, cfg.Connection, cfg.Global, cfg.Methods = high, high, high, map[string]Rate{"send": high}
	l, err := New(cfg)
	require.NoError(b, err)
	b.Run("Allow", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := l.Allow(sendOver("source", "connection")); err != nil {
				b.Fatal(err)
			}
		}
	})
}
