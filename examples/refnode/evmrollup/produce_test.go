package evmrollup

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestInterval: a block is due when the interval since the last one has passed, also without
// transactions and without automine, and until the interval is 0.
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(Chain)
		due := func() (due, empty bool) { return c.production.due(7, 0, 5) }
		never := func(times int) {
			t.Helper()
			for range times {
				time.Sleep(time.Second)
				due, _ := due()
				require.False(t, due)
			}
		}
		never(3)
		c.SetAutomine(false)
		c.SetInterval(3 * time.Second)
		never(2)
		time.Sleep(time.Second)
		for range 2 { // until there is a block
			due, empty := due()
			require.True(t, due && empty)
		}
		c.production.made(1)
		never(2)
		c.SetInterval(0)
		never(3)
	})
}
