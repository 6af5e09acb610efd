package ratelimit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Strikes ban a source for a while, longer each time.
func TestStrikes(t *testing.T) {
	l, c := clocked(t, func(c *Config) { c.Strikes = 3 })
	offend := func() { // three times, which is a ban
		t.Helper()
		require.False(t, l.Strike("attacker", Invalid))
		require.False(t, l.Strike("attacker", Invalid))
		require.NoError(t, l.Allow(send("attacker")))
		require.True(t, l.Strike("attacker", Invalid))
	}
	offend()
	err := l.Allow(send("attacker"))
	limited(t, err, "ban", time.Minute)
	require.ErrorIs(t, err, ErrBanned)
	require.NoError(t, l.Allow(send("user")))
	_, banned := l.Banned("user")
	require.False(t, banned)
	c.advance(time.Minute)
	_, banned = l.Banned("attacker")
	require.False(t, banned)
	offend()
	limited(t, l.Allow(send("attacker")), "ban", 2*time.Minute)
	for range 20 {
		until, _ := l.Banned("attacker")
		c.advance(until.Sub(c.now()))
		l.cfg.Invalid.Weight = 100
		require.True(t, l.Strike("attacker", Invalid))
	}
	until, banned := l.Banned("attacker")
	require.True(t, banned)
	require.Equal(t, c.now().Add(24*time.Hour), until)
	l.Pardon("attacker")
	require.NoError(t, l.Allow(send("attacker")))
}

// Strikes are forgotten after StrikeMemory. A source that sends nothing else is
// not forgotten while it is banned.
func TestStrikeMemory(t *testing.T) {
	l, c := clocked(t, func(c *Config) { c.Strikes, c.MaxSources, c.MaxBans = 2, 4, 2 })
	require.False(t, l.Strike("slow", Invalid))
	c.advance(10*time.Minute + 1)
	require.False(t, l.Strike("slow", Invalid))
	require.False(t, l.Strike("bad", Invalid))
	require.True(t, l.Strike("bad", Invalid))
	for _, other := range []string{"1", "2", "3", "4", "5"} {
		require.NoError(t, l.Allow(send(other)))
	}
	limited(t, l.Allow(send("bad")), "ban", time.Minute)
}

// A single underpriced transaction is honest. Beyond the allowance each counts.
func TestUnderpriced(t *testing.T) {
	l, c := clocked(t, func(c *Config) {
		c.Strikes, c.Invalid.Weight = 10, 5
		c.Underpriced = Penalty{Weight: 2, Free: 6, Window: time.Minute}
	})
	underpriced := func(n int) {
		t.Helper()
		for range n {
			require.False(t, l.Strike("wallet", Underpriced))
		}
	}
	underpriced(6) // free
	underpriced(4) // 8 strikes
	c.advance(20 * time.Second)
	underpriced(2) // two free ones are back
	_, banned := l.Banned("wallet")
	require.False(t, banned)
	require.False(t, l.Strike("other", Underpriced), "each source has its own allowance")
	require.True(t, l.Strike("wallet", Underpriced))
	require.True(t, l.Strike("wallet", Underpriced), "it is banned")

	l, _ = clocked(t, func(c *Config) { c.Strikes, c.Underpriced.Weight, c.Underpriced.Free = 1, 0, 0 })
	for range 100 {
		require.False(t, l.Strike("wallet", Underpriced), "this offence has no effect")
	}
	require.True(t, l.Strike("wallet", Offence(7)), "an unknown offence is an invalid transaction")
}

// Both kinds of strikes add up.
func TestMixedStrikes(t *testing.T) {
	l, _ := clocked(t, func(c *Config) {
		c.Strikes, c.Invalid.Weight = 10, 5
		c.Underpriced = Penalty{Weight: 4, Free: 1, Window: time.Minute}
	})
	for _, offence := range []Offence{Underpriced, Invalid, Underpriced} {
		require.False(t, l.Strike("a", offence))
	}
	require.True(t, l.Strike("a", Underpriced))
}

// Property: a source within its allowance is never banned. One that exceeds it
// is banned once the offences that were not free reach Strikes.
func TestStrikeWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		free, strikes := rapid.IntRange(1, 10).Draw(t, "free"), rapid.IntRange(1, 10).Draw(t, "strikes")
		window := time.Duration(rapid.IntRange(1, 600).Draw(t, "window")) * time.Second
		l, c := clocked(t, func(c *Config) {
			c.Strikes, c.StrikeMemory, c.Underpriced = strikes, 1000*time.Hour, Penalty{Weight: 1, Free: free, Window: window}
		})
		began, count := c.now(), 0
		for range 100 {
			banned := l.Strike("a", Underpriced)
			count++
			// The free ones so far, if the source used all that came back.
			most := float64(free) * (1 + float64(c.now().Sub(began))/float64(window))
			if count <= free {
				require.False(t, banned, "offence %d", count)
			}
			if banned {
				return
			}
			require.Less(t, float64(count), most+float64(strikes)+1e-6)
			c.advance(time.Duration(rapid.IntRange(0, int(window)).Draw(t, "pause")) / time.Duration(4*free))
		}
		for range 2 * (free + strikes) {
			if l.Strike("a", Underpriced) {
				return
			}
		}
		t.Fatal("a flood was not banned")
	})
}

// Property: a source that commits at most Free offences at even distances within
// each window is never banned.
func TestEvenOffencesAreFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		free := rapid.IntRange(1, 50).Draw(t, "free")
		window := time.Duration(rapid.IntRange(1, 600).Draw(t, "window")) * time.Second
		l, c := clocked(t, func(c *Config) {
			c.Strikes, c.Underpriced = 1, Penalty{Weight: 1, Free: free, Window: window}
		})
		for range 200 {
			require.False(t, l.Strike("a", Underpriced))
			c.advance(window/time.Duration(free) + 1)
		}
	})
}
