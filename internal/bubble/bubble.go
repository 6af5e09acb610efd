// Package bubble runs tests on the virtual time of testing/synctest, with connections in
// memory. Time passes in a bubble only when all of its goroutines wait, so that no duration
// in it depends on the machine. A test that needs another process or a real socket uses
// internal/wait instead.
package bubble

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

// Run runs a test in a bubble. It begins a day after the beginning of JAM's Common Era, so
// that there are slots before it. As in synctest.Test, the test cannot call t.Run,
// t.Parallel or t.Deadline, and all goroutines that it starts must end.
func Run(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra().Add(24 * time.Hour)))
		test(t)
	})
}

// Await sleeps in the bubble of a test until ready is true, which it asks after each step.
// After a day of virtual time the test fails and names the state that did not come.
func Await(t *testing.T, step time.Duration, ready func() bool, state string) {
	t.Helper()
	for began := time.Now(); !ready(); time.Sleep(step) {
		if time.Since(began) > 24*time.Hour {
			require.FailNow(t, "a day of virtual time has passed without it: "+state)
		}
	}
}
