package ratelimit

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// clock is a clock that a test moves.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Unix(1_800_000_000, 0)} }

func (c *clock) now() time.Time { return c.at }

func (c *clock) advance(d time.Duration) { c.at = c.at.Add(d) }

// clocked returns a limiter and its clock.
func clocked(t testing.TB, change func(*Config)) (*Limiter, *clock) {
	t.Helper()
	w := newClock()
	cfg := DefaultConfig()
	cfg.Now = w.now
	if change != nil {
		change(&cfg)
	}
	l, err := New(cfg)
	require.NoError(t, err)
	return l, w
}

func limited(t testing.TB, err error, limit string, after time.Duration) {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, Error{limit, after}, *e)
	require.Equal(t, limit == "ban", errors.Is(err, ErrBanned))
	require.Equal(t, limit != "ban", errors.Is(err, ErrRateLimited))
}

// The source's limit comes first, then the method's, then the global one. A
// refused call does not count in any of them.
func TestLimiterOrder(t *testing.T) {
	l, w := clocked(t, func(c *Config) {
		c.Source = Rate{Txs: 2}
		c.Methods = map[string]Rate{"send": {Txs: 3}}
		c.Global = Rate{Txs: 4, Bytes: 1000}
	})
	for range 2 {
		require.NoError(t, l.Allow("a", "send", 1, 10))
	}
	for range 100 { // a flood from one source
		limited(t, l.Allow("a", "send", 1, 10), "source", 500*time.Millisecond)
	}
	require.NoError(t, l.Allow("b", "send", 1, 10))
	limited(t, l.Allow("c", "send", 1, 10), "method", 334*time.Millisecond)
	require.NoError(t, l.Allow("c", "other", 1, 10))
	limited(t, l.Allow("c", "other", 1, 10), "global", 250*time.Millisecond)
	require.ErrorContains(t, l.Allow("c", "other", 1, 10), "rate limit exceeded: global, try again in 250ms")
	w.advance(time.Second)
	limited(t, l.Allow("d", "other", 1, 1001), "global", -1)
	require.ErrorContains(t, l.Allow("d", "other", 1, 1001), "more at once than the limit of the global allows")
	require.NoError(t, l.Allow("d", "other", 2, 1000), "what was refused was not counted")
	limited(t, l.Allow("d", "other", 1, 0), "source", 500*time.Millisecond)
}

// Strikes ban a source for a while, longer each time.
func TestStrikes(t *testing.T) {
	l, c := clocked(t, func(c *Config) { c.Strikes = 3 })
	offend := func() { // three times, which is a ban
		t.Helper()
		require.False(t, l.Strike("attacker", 1))
		require.False(t, l.Strike("attacker", 1))
		require.NoError(t, l.Allow("attacker", "send", 1, 100))
		require.True(t, l.Strike("attacker", 1))
	}
	offend()
	limited(t, l.Allow("attacker", "send", 1, 100), "ban", time.Minute)
	require.NoError(t, l.Allow("user", "send", 1, 100))
	_, banned := l.Banned("user")
	require.False(t, banned)
	c.advance(time.Minute)
	_, banned = l.Banned("attacker")
	require.False(t, banned)
	offend()
	limited(t, l.Allow("attacker", "send", 1, 100), "ban", 2*time.Minute)
	for range 20 {
		until, _ := l.Banned("attacker")
		c.advance(until.Sub(c.now()))
		require.True(t, l.Strike("attacker", 100))
	}
	until, banned := l.Banned("attacker")
	require.True(t, banned)
	require.Equal(t, c.now().Add(24*time.Hour), until)
	l.Pardon("attacker")
	require.NoError(t, l.Allow("attacker", "send", 1, 100))
}

// Strikes are forgotten, and sources are, but no ban for a mere source.
func TestLimiterMemory(t *testing.T) {
	l, w := clocked(t, func(c *Config) { c.Strikes, c.MaxSources, c.MaxBans = 2, 4, 2 })
	require.False(t, l.Strike("slow", 1))
	w.advance(10*time.Minute + 1)
	require.False(t, l.Strike("slow", 1))
	require.True(t, l.Strike("bad", 2))
	for i := range 1000 {
		require.NoError(t, l.Allow(fmt.Sprint(i), "send", 1, 1))
	}
	require.LessOrEqual(t, l.sources.Len(), 4)
	limited(t, l.Allow("bad", "send", 1, 1), "ban", time.Minute)
	require.True(t, l.Strike("worse", 2))
	require.True(t, l.Strike("worst", 2))
	require.LessOrEqual(t, l.bans.Len(), 2)
}

// Property: no source, and not all sources together, can exceed the burst plus
// the rate times the elapsed time.
func TestLimiterRates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newClock()
		cfg := DefaultConfig()
		cfg.Now = w.now
		cfg.Source, cfg.Global = Rate{Txs: 3, TxBurst: 5, Bytes: 100}, Rate{Txs: 7, TxBurst: 9}
		l, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		began, passed, all := w.now(), map[string]int{}, 0
		for range 60 {
			source, n := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "source"), rapid.IntRange(1, 4).Draw(t, "n")
			if l.Allow(source, "", n, rapid.IntRange(0, 50).Draw(t, "bytes")) == nil {
				passed[source] += n
				all += n
			}
			seconds := w.now().Sub(began).Seconds()
			if float64(passed[source]) > 5+3*seconds+1e-6 || float64(all) > 9+7*seconds+1e-6 {
				t.Fatalf("after %v s %d passed from %s, %d from all", seconds, passed[source], source, all)
			}
			w.advance(time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond)
		}
	})
}

func TestLimiterConcurrent(t *testing.T) {
	l, _ := clocked(t, func(c *Config) { c.Global = Rate{Txs: 100}; c.Source = Rate{}; c.MaxSources = 8 })
	var group sync.WaitGroup
	var mu sync.Mutex
	passed := 0
	for g := range 64 {
		group.Go(func() {
			for range 20 {
				source := fmt.Sprint(g % 16)
				if l.Allow(source, "send", 1, 1) == nil {
					mu.Lock()
					passed++
					mu.Unlock()
				}
				l.Banned(source)
			}
		})
	}
	group.Wait()
	require.Equal(t, 100, passed)
}

func TestConfig(t *testing.T) {
	for field, change := range map[string]func(*Config){
		"Source":       func(c *Config) { c.Source.Txs = -1 },
		"Methods[x]":   func(c *Config) { c.Methods = map[string]Rate{"x": {TxBurst: -1}} },
		"MaxSources":   func(c *Config) { c.MaxSources = 0 },
		"Strikes":      func(c *Config) { c.Strikes = 0 },
		"MaxBans":      func(c *Config) { c.MaxBans = 0 },
		"Ban":          func(c *Config) { c.Ban = 0 },
		"StrikeMemory": func(c *Config) { c.StrikeMemory = -1 },
	} {
		c := DefaultConfig()
		change(&c)
		_, err := New(c)
		require.ErrorIs(t, err, ErrInvalidConfig)
		require.ErrorContains(t, err, field)
	}
}

func BenchmarkLimiter(b *testing.B) {
	l, err := New(Config{Source: Rate{Txs: 1e9, TxBurst: 1 << 30}, Global: Rate{Txs: 1e9, TxBurst: 1 << 30}, MaxSources: 1000, Strikes: 1, Ban: 1, MaxBan: 1, MaxBans: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Allow("source", "send", 1, 100); err != nil {
			b.Fatal(err)
		}
	}
}

// Property: a call that was refused succeeds after RetryAfter if no other call
// came in between, whatever limits it exceeded.
func TestRetryAfter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		cfg := DefaultConfig()
		cfg.Now = c.now
		draw := func(name string) Rate {
			return Rate{
				Txs: rapid.Float64Range(0.01, 3000).Draw(t, name+" txs"), TxBurst: rapid.IntRange(1, 20).Draw(t, name+" burst"),
				Bytes: rapid.Float64Range(1, 1e6).Draw(t, name+" bytes"), ByteBurst: rapid.IntRange(1000, 1e7).Draw(t, name+" byte burst"),
			}
		}
		cfg.Source, cfg.Global = draw("source"), draw("global")
		cfg.Methods = map[string]Rate{"send": draw("send")}
		l, err := New(cfg)
		require.NoError(t, err)
		for range 40 {
			source, txs, bytes := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "source"), rapid.IntRange(0, 20).Draw(t, "n"), rapid.IntRange(0, 2000).Draw(t, "bytes")
			var limit *Error
			if !errors.As(l.Allow(source, "send", txs, bytes), &limit) || limit.RetryAfter < 0 {
				c.advance(time.Duration(rapid.IntRange(0, 1e9).Draw(t, "ns")))
				continue
			}
			c.advance(limit.RetryAfter)
			require.NoError(t, l.Allow(source, "send", txs, bytes), "%v was refused before", limit)
		}
	})
}
