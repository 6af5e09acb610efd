package eoa

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hooked is a clock during whose reading a step may end.
type hooked struct{ now func() time.Time }

func (h hooked) Now() time.Time { return h.now() }

// The time without progress is never negative, also if a step ends during the call.
func TestStalledIsNotNegative(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	e := &Executor{signals: newSignals()}
	e.cfg.Clock = hooked{func() time.Time {
		e.signals.publish(Stats{Broadcast: 1}, start.Add(time.Second))
		return start
	}}
	require.Zero(t, e.Stats().Stalled)
}
