package builder_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
)

// requireSends requires that packages were sent, and only in a window that is shifted by skew.
func requireSends(t *testing.T, s *script, skew time.Duration) {
	t.Helper()
	window := builder.DefaultWindow(jamq.Tiny())
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotEmpty(t, s.sent)
	for _, p := range s.sent {
		require.True(t, window.Open(p.at.Add(-skew)), "sent at %v by a clock that is %v ahead", p.at, skew)
	}
}

// TestConfiguredSkew: a clock that is known to be ahead of the chain's moves the window, and so
// does one that is behind.
func TestConfiguredSkew(t *testing.T) {
	for _, skew := range []time.Duration{-2 * time.Second, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := new(script)
			b := s.open(t, nil, func(c *builder.Config) { c.Window.Skew = skew })
			b.make(1)
			time.Sleep(20 * time.Second)
			requireSends(t, s, skew)
		})
	}
}

// asking is a host's log that asks for the health of the builder with each line: no line is
// written under a lock.
type asking struct {
	slog.Handler
	mu     sync.Mutex
	health func() builder.Health
	lines  int
}

func (a *asking) Enabled(context.Context, slog.Level) bool { return true }

func (a *asking) Handle(context.Context, slog.Record) error {
	a.mu.Lock()
	health := a.health
	a.lines++
	a.mu.Unlock()
	if health != nil {
		health()
	}
	return nil
}

// count returns the number of lines, and asks for health from now on.
func (a *asking) count(health func() builder.Health) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.health = health
	return a.lines
}

// TestClockBehind: a clock that is behind is found out by blocks that come too early, and packages
// leave by the chain's clock.
func TestClockBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, curious := new(script), &asking{Handler: slog.DiscardHandler}
		// open delivers the block of slot 1 at the beginning of slot 0.
		b := s.open(t, nil, func(c *builder.Config) { c.Logger = slog.New(curious) })
		before := curious.count(b.Health)
		require.Zero(t, b.Health().Behind, "that is further than a clock is wrong")
		time.Sleep(10 * time.Second) // slot 2 begins in two seconds
		b.next(2)
		require.Equal(t, 2*time.Second, b.Health().Behind)
		require.Equal(t, before+1, curious.count(b.Health))
		b.make(1)
		time.Sleep(10 * time.Second)
		requireSends(t, s, -2*time.Second)
	})
}

// TestClockPutRight: a clock that was put right is found out as well, and one block of an author
// whose clock is ahead is forgotten.
func TestClockPutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(script).open(t, nil, nil)
		clock := jamq.NewSlotClock(jamq.Tiny())
		next := func(slot jamq.Slot, early time.Duration) {
			t.Helper()
			time.Sleep(time.Until(clock.Start(slot).Add(-early)))
			b.next(slot)
		}
		next(2, 5*time.Second)
		require.Equal(t, 5*time.Second, b.Health().Behind)
		next(3, -20*time.Second)
		require.Equal(t, 5*time.Second, b.Health().Behind, "a block that comes late, as after a gap, says nothing")
		for slot := jamq.Slot(10); slot < 74; slot++ {
			next(slot, -time.Second)
		}
		require.Less(t, b.Health().Behind, 100*time.Millisecond)
		for slot := jamq.Slot(74); slot < 138; slot++ {
			next(slot, 2*time.Second-time.Duration(slot%2)*time.Second)
		}
		require.Greater(t, b.Health().Behind, 1500*time.Millisecond, "blocks take their time, now more, now less")
		require.LessOrEqual(t, b.Health().Behind, 2*time.Second)
	})
}

// TestMetrics: the metrics count what happens.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted := make(chan string, 1000)
		once := func() func() error {
			failed := false
			return func() error {
				if failed {
					return nil
				}
				failed = true
				return errors.New("not now")
			}
		}
		pack, send := once(), once()
		s := &script{
			pack: func(builder.Anchor) error { return pack() },
			send: func(context.Context, uint64) error { return send() },
		}
		b := s.open(t, nil, func(c *builder.Config) {
			c.Metrics.Count = func(counter, label string, _ int) { counted <- counter + " " + label }
			c.Metrics.Observe = func(histogram string, _ float64) { counted <- histogram }
		})
		b.make(1)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.ErrorIs(t, b.stop(), context.Canceled)
		close(counted)
		counts := make(map[string]int)
		for what := range counted {
			counts[what]++
		}
		for _, what := range []string{"builds ok", "builds failed", "sends ok", "sends retryable", "effects build", "effects send", "effects changed", "build_seconds", "send_seconds", "step_seconds"} {
			require.Positive(t, counts[what], "%s of %v", what, counts)
		}
		require.Zero(t, b.Health().SendFailures)
		require.Error(t, b.Health().LastError)
	})
}
