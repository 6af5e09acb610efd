package bundlequeue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNumbers(t *testing.T) {
	s := newScene(t, nil)
	s.step(Reserve{Number: 1})
	s.enqueue(2)
	require.Empty(t, s.builds, "2 waits for what 1 will be")
	s.enqueue(1)
	require.Len(t, s.builds, 1)
	require.ErrorIs(t, s.try(Enqueue{Number: 1}), ErrWrongNumber)
	require.ErrorIs(t, s.try(Release{Number: 1}), ErrWrongNumber)

	// A number that is given up takes those after it along, and is used again.
	s.step(Reserve{Number: 3})
	s.enqueue(4)
	s.log = nil
	s.step(Release{Number: 3})
	require.Equal(t, []string{
		"3v0 reserved → failed at none", "4v0 queued → failed at none", "failed 4: number 3 was released",
	}, s.log)
	require.Equal(t, uint64(3), s.q.Next())

	// Consensus assigned number 2 to another builder.
	s.enqueue(3)
	s.step(Rekey{From: 2, To: 5})
	require.ErrorIs(t, s.try(Rekey{From: 2, To: 9}), ErrWrongNumber)
	require.ErrorIs(t, s.try(Rekey{From: 5, To: 1}), ErrWrongNumber)
	require.Equal(t, uint64(7), s.q.Next())
	info, ok := s.q.Info(6)
	require.True(t, ok)
	require.Equal(t, Queued, info.State)
	s.step(Rekey{From: 5, To: 2})
	require.Equal(t, uint64(4), s.q.Next())
}

// A reservation that is never filled expires, and the bundles after it fail.
func TestReservationExpires(t *testing.T) {
	s := newScene(t, nil)
	s.step(Reserve{Number: 1})
	s.enqueue(2)
	wake, ok := s.q.NextWake(s.now)
	require.True(t, ok)
	require.Equal(t, time.Minute, wake.Sub(s.now))
	s.now = wake
	s.log = nil
	s.step(Tick{})
	require.Equal(t, "failed 2: number 1 was reserved and never filled", s.log[2])
	require.Equal(t, uint64(1), s.q.Next())
	s.enqueue(1)
	require.Len(t, s.builds, 1)
}

// A reservation may outlast its time while a bundle before it is not guaranteed. It is not built.
func TestReservedIsNotBuilt(t *testing.T) {
	s := newScene(t, func(c *Config) { c.MaxSubmitRetries = 0 })
	s.enqueue(1)
	s.step(Reserve{Number: 2})
	s.run()
	s.now = s.now.Add(2 * time.Minute)
	s.step(Tick{})
	require.Equal(t, Reserved, s.state(2))
	require.Empty(t, s.builds)
}
