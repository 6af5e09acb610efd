package ratelimit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Strikes ban a source for a while, longer each time.
func TestStrikes(t *testing.T) {
	l, c := clocked(t, func(c *Config) { c.Strikes = 3 })
	offend := func() { // three times, which is a ban
		t.Helper()
		require.False(t, l.Strike("attacker", 1))
		require.False(t, l.Strike("attacker", 1))
		require.NoError(t, l.Allow(send("attacker")))
		require.True(t, l.Strike("attacker", 1))
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
		require.True(t, l.Strike("attacker", 100))
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
	require.False(t, l.Strike("slow", 1))
	c.advance(10*time.Minute + 1)
	require.False(t, l.Strike("slow", 1))
	require.True(t, l.Strike("bad", 2))
	for _, other := range []string{"1", "2", "3", "4", "5"} {
		require.NoError(t, l.Allow(send(other)))
	}
	limited(t, l.Allow(send("bad")), "ban", time.Minute)
}
