package bundlequeue_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/jamtest"
)

// TestSlowBuilder builds every package for up to six blocks, on a chain without faults. The queue
// learns how long builds take and asks for anchors that are fresh enough. So every bundle becomes
// final, none fails, and no package dies.
func TestSlowBuilder(t *testing.T) {
	const bundles, slots = 12, 400
	for took := range jamq.Slot(7) {
		t.Run(fmt.Sprintf("%d blocks", took), func(t *testing.T) {
			b := &builder{seed: 1, random: rand.New(rand.NewPCG(1, 1)), cfg: bundlequeue.DefaultConfig(jamq.Tiny())}
			b.cfg.MaxVersionRetries = 0
			b.trouble = &trouble{random: b.random, builds: [2]jamq.Slot{took, took}}
			cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
			require.NoError(t, b.begin(cfg, jamtest.FeedFaults{}))
			for range slots {
				require.NoError(t, b.slot(bundles))
			}
			require.Equal(t, bundles, b.executed)
			verdict := b.oracle.Check()
			require.True(t, verdict.OK(), verdict.String())
			totals := b.queue.Stats().Totals
			require.Zero(t, totals.Entered(bundlequeue.FailedState))
			require.Zero(t, totals.Useless)
			require.Zero(t, totals.Died)
			require.Equal(t, int(took), b.queue.Stats().BuildBlocks)
		})
	}
}
