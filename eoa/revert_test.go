package eoa_test

import (
	"context"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
)

// reverting is a node that says of some requests that they revert.
type reverting struct {
	*eoatest.Chain
	times map[string]int // by key
}

func (c *reverting) Estimate(ctx context.Context, a common.Address, requests []*eoa.Request) []eoa.Estimated {
	out := c.Chain.Estimate(ctx, a, requests)
	for i, r := range requests {
		if c.times[r.Key] > 0 {
			c.times[r.Key]--
			out[i] = eoa.Estimated{Err: eoa.ErrReverted}
		}
	}
	return out
}

// A request depends on the one before it. When that one is mined, a node that is
// behind answers on the state before. The request does not fail.
func TestRevertOnAnOldStateIsNotFinal(t *testing.T) {
	for times := range 3 {
		w := newWorld(t, 1, 0)
		e := w.executor(t, w.store, &reverting{w.chain, map[string]int{"second": times}})
		for _, key := range []string{"first", "second"} {
			q := request(key)
			q.Group = "g"
			w.submit(t, e, q)
			w.keys = append(w.keys, key)
		}
		w.finish(t, e)
		w.exactlyOnce(t)
	}
}

// A request that reverts fails at once on a quiet account, and after a few
// blocks on a busy one.
func TestRevertIsFinal(t *testing.T) {
	const always = 1 << 30
	w := newWorld(t, 1, 40)
	w.chain.SetPerBlock(1)
	e := w.executor(t, w.store, &reverting{w.chain, map[string]int{"quiet": always, "busy": always}})
	w.submit(t, e, request("quiet"))
	w.steps(t, e, 1)
	require.Equal(t, eoa.Failed, w.get(t, "quiet").State)
	require.NoError(t, w.submitAll(e))
	w.steps(t, e, 12)
	w.submit(t, e, request("busy"))
	w.steps(t, e, 1)
	require.Equal(t, eoa.Pending, w.get(t, "busy").State)
	require.Contains(t, w.get(t, "busy").Reason, "reverted")
	w.steps(t, e, 40)
	require.Equal(t, eoa.Failed, w.get(t, "busy").State)
	require.Equal(t, eoa.ErrReverted.Error(), w.get(t, "busy").Reason)
}
