package eoa

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The time without progress is never negative, also if a step ends during the call.
func TestStalledIsNotNegative(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	e := &Executor{signals: newSignals()}
	e.cfg.Now = func() time.Time {
		e.signals.publish(Stats{Broadcast: 1}, start.Add(time.Second), 0)
		return start
	}
	require.Zero(t, e.Stats().Stalled)
}
