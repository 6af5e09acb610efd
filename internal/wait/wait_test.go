package wait

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestUntil: a condition is asked until it is true, on the goroutine of the caller.
func TestUntil(t *testing.T) {
	asked := 0
	Until(t, func() bool { asked++; return asked == 3 }, "the third look")
	require.Equal(t, 3, asked)
}

// TestReceive: a value that is sent, and the zero value of a channel that is closed.
func TestReceive(t *testing.T) {
	values := make(chan int)
	go func() { values <- 7; close(values) }()
	require.Equal(t, 7, Receive(t, values, "a value"))
	require.Zero(t, Receive(t, values, "the end"))
}

// expired is a test whose binary has almost no time left.
type expired struct {
	testing.TB
	left   time.Duration
	failed string
}

type failure struct{}

func (e *expired) Deadline() (time.Time, bool) { return time.Now().Add(e.left), true }
func (e *expired) Helper()                     {}

func (e *expired) Fatalf(format string, args ...any) {
	e.failed = fmt.Sprintf(format, args...)
	panic(failure{})
}

// TestDeadline: when the binary has no time left, the test fails and names the state that
// did not come, as it is at the end.
func TestDeadline(t *testing.T) {
	state := "none"
	for name, call := range map[string]func(e *expired){
		"Until":   func(e *expired) { Until(e, func() bool { state = "half"; return false }, "all: %s", &lazy{&state}) },
		"Receive": func(e *expired) { Receive(e, make(chan int), "all: %s", &lazy{&state}) },
	} {
		t.Run(name, func(t *testing.T) {
			e := &expired{TB: t, left: -time.Second}
			require.PanicsWithValue(t, failure{}, func() { call(e) })
			require.Equal(t, "waited until the test binary has no time left for: all: "+state, e.failed)
		})
	}
}

// TestContext: it expires before the binary does, and never if the binary has no deadline.
func TestContext(t *testing.T) {
	e := &expired{TB: t, left: time.Hour}
	deadline, ok := Context(e).Deadline()
	require.True(t, ok)
	require.WithinRange(t, deadline, time.Now(), time.Now().Add(time.Hour-30*time.Second))

	_, ok = Context(struct{ testing.TB }{t}).Deadline()
	require.False(t, ok)
}

type lazy struct{ text *string }

func (l *lazy) String() string { return *l.text }

// TestPace: it ends with its context.
func TestPace(t *testing.T) {
	Pace(t.Context(), time.Nanosecond)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	Pace(ended, 24*time.Hour)
}

func TestAtLeast(t *testing.T) {
	AtLeast(t, time.Nanosecond, func() { Pace(t.Context(), time.Microsecond) }, "a pause")
	e := &expired{TB: t}
	require.PanicsWithValue(t, failure{}, func() { AtLeast(e, time.Hour, func() {}, "a %s", "pause") })
	require.Contains(t, e.failed, "want at least 1h0m0s: a pause")
}
