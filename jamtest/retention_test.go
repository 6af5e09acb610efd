package jamtest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

// A chain that runs for long takes no more memory than one that runs for a while.
func TestMemoryIsBounded(t *testing.T) {
	cfg := DefaultConfig(jamq.Tiny(), 1)
	cfg.Retention, cfg.LossProbability = 0, 0.3
	c, err := New(cfg)
	require.NoError(t, err)
	c.Advance()
	for i := range 2000 {
		context, err := c.Context(1)
		require.NoError(t, err)
		require.NoError(t, c.Submit(NewPackage(1, context, fmt.Append(nil, i)), jamq.CoreIndex(i%2), 0))
		c.Advance()
	}
	require.Less(t, len(c.blocks), 200)
	require.Less(t, len(c.packages), 200)
	require.Less(t, len(c.seen), 200)
	require.Less(t, len(c.offers), 20)
	require.Less(t, len(c.reportedIn)+len(c.accumulatedIn), 400)
}
