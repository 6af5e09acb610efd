// Package wait lets a test wait for a state that lies outside of Go's virtual time: in
// another process, behind a socket, in a browser or in a database.
//
// Such a state comes when the machine gets to it, so that every duration that a test
// could name is wrong somewhere. The only limit here is therefore the deadline of the
// test binary (-test.timeout): a test that is right passes on any machine, and a test
// that hangs still names the state that did not come. A test on virtual time does not
// need this package; see internal/bubble.
package wait

import (
	"context"
	"testing"
	"time"
)

// step is the time between two looks. The other process needs the processor to get any
// further.
const step = 2 * time.Millisecond

// Until returns when ready is true. It asks on the goroutine of the caller, so that
// ready may end the test. If the test binary has little time left, the test fails with
// format and args, which are formatted only then: a buffer among them is printed as
// it is at the end.
func Until(t testing.TB, ready func() bool, format string, args ...any) {
	t.Helper()
	limit, limited := end(t)
	for !ready() {
		if limited && time.Now().After(limit) {
			t.Fatalf("waited until the test binary has no time left for: "+format, args...)
		}
		time.Sleep(step)
	}
}

// Receive returns the next value of from, or the zero value if from is closed. It fails
// as Until does, and like Until it waits in a cleanup as well.
func Receive[T any](t testing.TB, from <-chan T, format string, args ...any) T {
	t.Helper()
	var over <-chan time.Time
	if limit, limited := end(t); limited {
		over = time.After(time.Until(limit))
	}
	select {
	case value := <-from:
		return value
	case <-over:
		t.Fatalf("waited until the test binary has no time left for: "+format, args...)
		panic("unreachable")
	}
}

// Context returns a context that ends with the test, before its cleanup, and that expires
// when Until would give up. It is for a call that waits by itself.
func Context(t testing.TB) context.Context {
	limit, limited := end(t)
	if !limited {
		return t.Context()
	}
	ctx, cancel := context.WithDeadline(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// end returns when a test has to give up, if the binary has a deadline: early enough
// that its cleanup still ends the processes that it started.
func end(t testing.TB) (time.Time, bool) {
	binary, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return time.Time{}, false
	}
	deadline, ok := binary.Deadline()
	if !ok {
		return time.Time{}, false
	}
	reserve := min(30*time.Second, time.Until(deadline)/10)
	return deadline.Add(-reserve), true
}

// Pace lets d pass, or less if ctx ends. It is for a test that makes load at a given rate,
// or that plays a slow peer. It is never for a state: the state may come later.
func Pace(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// AtLeast fails the test if act takes less than d. Such a bound holds on any machine.
func AtLeast(t testing.TB, d time.Duration, act func(), format string, args ...any) {
	t.Helper()
	began := time.Now()
	act()
	if took := time.Since(began); took < d {
		t.Fatalf("took %v, want at least %v: "+format, append([]any{took, d}, args...)...)
	}
}
