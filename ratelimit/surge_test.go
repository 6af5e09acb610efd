package ratelimit

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// busy returns a limiter whose only limit is Surge, under a constant pressure.
func busy(t require.TestingT, pressure float64, change func(*Config)) (*Limiter, *clock) {
	return clocked(t, func(c *Config) {
		c.Source, c.Connection, c.Global = Rate{}, Rate{}, Rate{}
		c.Surge.Pressure = func() float64 { return pressure }
		c.Rand = rand.New(rand.NewPCG(1, 2)).Float64
		if change != nil {
			change(c)
		}
	})
}

// Property: of sources that call once, the share that is refused is 0 up to the
// threshold, and rises evenly to MaxRefusal.
func TestSurgeShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threshold, most := rapid.IntRange(0, 1000).Draw(t, "threshold"), rapid.IntRange(0, 990).Draw(t, "most")
		pressure := rapid.Float64Range(-0.5, 1.5).Draw(t, "pressure")
		l, _ := busy(t, pressure, func(c *Config) {
			c.Surge.Threshold, c.Surge.MaxRefusal = threshold, most
			c.Rand = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)).Float64
		})
		want := 0.0
		switch start := float64(threshold) / 1000; {
		case threshold == 1000, pressure <= start:
		case pressure >= 1:
			want = float64(most) / 1000
		default:
			want = float64(most) / 1000 * (pressure - start) / (1 - start)
		}
		const calls = 2000
		refused := 0
		for i := range calls {
			if err := l.Allow(send(fmt.Sprint(i))); err != nil {
				require.ErrorIs(t, err, ErrSurge)
				refused++
			}
		}
		// Six standard deviations of a binomial distribution, and two calls: a
		// right limiter exceeds that in one of 10⁸ cases.
		deviation := math.Sqrt(calls * want * (1 - want))
		require.InDelta(t, calls*want, refused, 6*deviation+2)
		if want == 0 {
			require.Zero(t, refused)
		}
	})
}

// The refused share grows from 0 at the threshold to MaxRefusal at full
// pressure.
func TestSurgeShareTable(t *testing.T) {
	for _, x := range []struct {
		pressure, share float64
	}{{0.5, 0}, {0.8, 0}, {0.82, 0.05}, {0.9, 0.25}, {1, 0.5}, {3, 0.5}} {
		for _, draw := range []float64{0, max(x.share-0.01, 0), x.share + 0.01} {
			l, _ := busy(t, x.pressure, func(c *Config) {
				c.Surge.Threshold, c.Surge.MaxRefusal = 800, 500
				c.Rand = func() float64 { return draw }
			})
			err := l.Allow(send("a"))
			require.Equal(t, draw < x.share, err != nil, "pressure %v, draw %v: %v", x.pressure, draw, err)
		}
	}
}

// Property: RetryAfter of a refused call is in the configured interval and uses
// all of it.
func TestSurgeInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := time.Duration(rapid.IntRange(1, 1e4).Draw(t, "least")) * time.Millisecond
		width := time.Duration(rapid.IntRange(100, 1e5).Draw(t, "width")) * time.Millisecond
		l, _ := busy(t, 1, func(c *Config) {
			c.Surge.MinRetry, c.Surge.MaxRetry = least, least+width
			c.Rand = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)).Float64
		})
		seen := map[time.Duration]bool{}
		for i := range 200 {
			var limit *Error
			if errors.As(l.Allow(send(fmt.Sprint(i))), &limit) {
				require.GreaterOrEqual(t, limit.RetryAfter, least)
				require.Less(t, limit.RetryAfter, least+width)
				seen[(limit.RetryAfter-least)*4/width] = true
			}
		}
		require.Len(t, seen, 4, "each quarter of the interval was used")
	})
}

// Property: a source that waits the RetryAfter of Surge is admitted then, at any
// pressure and whatever its rate. Before that, a rate can refuse it once.
func TestSurgeAdmitsAfterTheWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, c := busy(t, rapid.Float64Range(0.8, 1).Draw(t, "pressure"), func(c *Config) {
			c.Source, c.Connection = drawRate(t, "source"), drawRate(t, "connection")
			c.Surge.MaxRefusal = 990
			c.Rand = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)).Float64
		})
		for range 50 {
			call := sendOver("a", "1")
			var limit *Error
			if errors.As(l.Allow(call), &limit) && limit.Limit != "surge" {
				c.advance(limit.RetryAfter)
				limit = nil
				if err := l.Allow(call); err != nil {
					require.ErrorIs(t, err, ErrSurge)
					require.ErrorAs(t, err, &limit)
				}
			}
			if limit != nil {
				c.advance(limit.RetryAfter)
				require.NoError(t, l.Allow(call), "%v was refused before", limit)
			}
			c.advance(time.Duration(rapid.IntRange(0, 1e9).Draw(t, "ns")))
		}
	})
}

// A source that never waits is admitted with the same chance at each call. It
// does not gain the place of a source that waited, and is not starved.
func TestSurgeWithoutTheWait(t *testing.T) {
	l, c := busy(t, 1, nil)
	const calls = 10_000
	admitted := 0
	for range calls {
		if l.Allow(send("a")) == nil {
			admitted++
		}
		c.advance(time.Millisecond)
	}
	require.InDelta(t, calls/10, admitted, 200, "a tenth, and no more")
}

// A call that Surge refuses counts for its connection and source, and not for
// the method and all sources.
func TestSurgeCounts(t *testing.T) {
	l, c := busy(t, 1, func(c *Config) {
		c.Source, c.Connection = Rate{Txs: 0.01, TxBurst: 3}, Rate{Txs: 0.01, TxBurst: 2}
		c.Global, c.Methods = Rate{Txs: 0.01, TxBurst: 3}, map[string]Rate{"send": {Txs: 0.01, TxBurst: 3}}
		c.Rand = func() float64 { return 0 } // refuses each call
	})
	limited(t, l.Allow(sendOver("a", "1")), "surge", time.Second)
	limited(t, l.Allow(sendOver("a", "1")), "surge", 100*time.Second)
	limited(t, l.Allow(sendOver("a", "1")), "connection", 100*time.Second)
	limited(t, l.Allow(sendOver("a", "2")), "surge", 100*time.Second)
	limited(t, l.Allow(sendOver("a", "2")), "source", 100*time.Second)
	for _, other := range []string{"b", "c", "d"} {
		err := l.Allow(send(other))
		limited(t, err, "surge", time.Second)
		require.EqualError(t, err, "node is busy: surge, try again in 1s")
	}
	c.advance(time.Second)
	for _, other := range []string{"b", "c", "d"} {
		require.NoError(t, l.Allow(send(other)))
	}
	limited(t, l.Allow(send("e")), "method", 100*time.Second)
}

// Only the calls that Surge names are paced, and other calls do not use up the
// turn of a source that waited.
func TestSurgeMethods(t *testing.T) {
	l, c := busy(t, 1, func(c *Config) {
		c.Surge.Methods = []string{"send"}
		c.Rand = func() float64 { return 0 }
	})
	limited(t, l.Allow(send("a")), "surge", time.Second)
	c.advance(time.Second)
	require.NoError(t, l.Allow(Call{Source: "a", Method: "other", Txs: 1}))
	require.NoError(t, l.Allow(Call{Source: "a", Method: "send", Bytes: 100}), "no transaction")
	require.NoError(t, l.Allow(send("a")))
	limited(t, l.Allow(send("a")), "surge", time.Second)

	l, _ = busy(t, 1, func(c *Config) { c.Rand = func() float64 { return 0 } })
	limited(t, l.Allow(Call{Source: "a", Method: "other", Txs: 1}), "surge", time.Second)
}

// Surge admits all if the pressure is no number or the threshold is 1, and
// Pressure may call the limiter.
func TestSurgePressure(t *testing.T) {
	off, _ := busy(t, 2, func(c *Config) { c.Surge.Threshold, c.Rand = 1000, func() float64 { return 0 } })
	require.NoError(t, off.Allow(send("a")))
	l, _ := busy(t, math.NaN(), func(c *Config) { c.Rand = func() float64 { return 0 } })
	require.NoError(t, l.Allow(send("a")))
	l.cfg.Surge.Pressure = func() float64 {
		l.Banned("a")
		return 1
	}
	limited(t, l.Allow(send("a")), "surge", time.Second)
	l.cfg.Surge.Pressure = nil
	require.NoError(t, l.Allow(send("a")))
}
