package eoa_test

import (
	"context"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
)

// A request with neither a recipient nor code would create an empty contract.
func TestEmptyCreationIsRefused(t *testing.T) {
	for _, q := range []eoa.Request{{Key: "a"}, {Key: "a", Value: uint256.NewInt(1)}, {Key: "a", Gas: 60_000}} {
		require.ErrorIs(t, q.Validate(), eoa.ErrInvalidRequest)
	}
	for _, q := range []eoa.Request{{Key: "a", Noop: true}, {Key: "a", Data: []byte{1}}, request("a")} {
		require.NoError(t, q.Validate())
	}
}

// The first transaction is not mined. Only its price is raised, because the
// others pay enough. If the base fee rises above all, all prices are raised.
func TestBumpsOnlyTheHead(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.chain.SetPerBlock(0)
	e := w.executor(t, w.store, w.chain)
	keys := []string{"a", "b", "c"}
	for _, key := range keys {
		w.submit(t, e, request(key))
	}
	until := func(key string) {
		for i := 0; w.get(t, key).Bumps == 0; i++ {
			require.Less(t, i, 400)
			w.steps(t, e, 1)
		}
	}
	until("a")
	require.Zero(t, w.get(t, "b").Bumps+w.get(t, "c").Bumps)
	w.chain.SetBaseFee(1_000)
	until("c")
	w.chain.SetPerBlock(10)
	w.keys = keys
	w.finish(t, e)
	w.exactlyOnce(t)
}

// Health names a request whose price limit is below the base fee, until the base
// fee falls. The requests behind it go on.
func TestHealthOfALimitedRequest(t *testing.T) {
	w := newWorld(t, 1, 0)
	var problems []eoa.Problem
	w.cfg.Observe = func(r eoa.Report) { problems = r.Problems }
	e := w.executor(t, w.store, w.chain)
	q := request("cheap")
	q.MaxFee = uint256.NewInt(50)
	_, err := e.Submit(context.Background(), q, request("other"))
	require.NoError(t, err)
	w.steps(t, e, 4)
	require.GreaterOrEqual(t, w.get(t, "other").State, eoa.Mined)
	require.Len(t, problems, 1)
	require.Equal(t, eoa.ProblemRequest, problems[0].Kind)
	require.ErrorContains(t, problems[0].Err, `"cheap": the price limit is below the base fee of 100 wei`)
	w.chain.SetBaseFee(10)
	w.steps(t, e, 40)
	require.Equal(t, eoa.Final, w.get(t, "cheap").State)
	require.Empty(t, problems)
}

// cheap is a node that shows a base fee below that of the chain.
type cheap struct{ *eoatest.Chain }

func (c cheap) Look(ctx context.Context, a common.Address) (eoa.Look, error) {
	l, err := c.Chain.Look(ctx, a)
	l.BaseFee.SetUint64(40)
	return l, err
}

// All transactions offer too little, although the node shows nothing of that. The
// first one finds the price in several bumps, and the others take it together: not
// each of them has to find it.
func TestOneTransactionFindsThePrice(t *testing.T) {
	const requests = 12
	w := newWorld(t, 1, requests)
	w.cfg.Batch = requests
	e := w.executor(t, w.store, cheap{w.chain})
	require.NoError(t, w.submitAll(e))
	w.steps(t, e, 1)
	began := w.now
	until := func(key string) time.Duration {
		for i := 0; w.get(t, key).State < eoa.Mined; i++ {
			require.Less(t, i, 4000)
			w.steps(t, e, 1)
		}
		return w.now.Sub(began)
	}
	first := until(w.keys[0])
	require.Greater(t, w.get(t, w.keys[0]).Bumps, 1)
	last := until(w.keys[requests-1])
	require.Less(t, last-first, 2*w.cfg.Fees.StallTimeout)
	require.Equal(t, 1, w.get(t, w.keys[requests-1]).Bumps)
	w.finish(t, e)
	w.exactlyOnce(t)
}
