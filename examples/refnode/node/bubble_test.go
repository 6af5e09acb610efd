package node

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

// bubble runs a test on virtual time, some slots after the beginning of JAM's Common
// Era. A build takes no virtual time, so that it fits into a slot on any machine.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra().Add(time.Hour)))
		test(t)
	})
}

// await sleeps, in the bubble of a test, until ready is true.
func await(t *testing.T, ready func() bool, what string) {
	t.Helper()
	for began := time.Now(); !ready(); time.Sleep(jamq.Tiny().SlotDuration / 8) {
		require.Less(t, time.Since(began), 24*time.Hour, what)
	}
}
