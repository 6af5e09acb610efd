package bubble

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

// TestRun: the test begins a day after the Common Era, and its sleep takes virtual time.
func TestRun(t *testing.T) {
	Run(t, func(t *testing.T) {
		began := time.Now()
		require.Equal(t, 24*time.Hour, began.Sub(jamq.CommonEra()))
		looks := 0
		Await(t, time.Minute, func() bool { looks++; return looks == 4 }, "four looks")
		require.Equal(t, 3*time.Minute, time.Since(began))
	})
}
