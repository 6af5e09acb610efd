package eoa_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
)

// thinking is a node that needs a time for each estimate; less than 0 means that
// it never answers.
type thinking struct {
	*eoatest.Chain
	takes time.Duration
	calls atomic.Int64
}

func (c *thinking) Estimate(ctx context.Context, a common.Address, requests []*eoa.Request) []eoa.Estimated {
	c.calls.Add(1)
	var answered <-chan time.Time
	if c.takes >= 0 {
		answered = time.After(c.takes)
	}
	select {
	case <-answered:
		return c.Chain.Estimate(ctx, a, requests)
	case <-ctx.Done():
		out := make([]eoa.Estimated, len(requests))
		for i := range out {
			out[i].Err = ctx.Err()
		}
		return out
	}
}

// running starts an executor on a thinking node. stop ends it.
func (w *world) running(t *testing.T, node *thinking) (e *eoa.Executor, stop func()) {
	w.cfg.Now, w.cfg.Batch = nil, 10
	e, err := eoa.New(w.cfg, w.account, w.store, node, w.signer)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	return e, func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func given(key string) eoa.Request {
	q := request(key)
	q.Gas = 60_000
	return q
}

// A node hangs on estimates. Requests whose gas is given are sent at once, also
// those that arrive while it hangs, and however many wait for it.
func TestHangingEstimateDelaysNoGivenGas(t *testing.T) {
	for _, waiting := range []int{1, 200} { // more than may be in flight
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, 0)
			e, stop := w.running(t, &thinking{Chain: w.chain, takes: -1})
			defer stop()
			for i := range waiting {
				w.submit(t, e, request(fmt.Sprint("hangs ", i)))
			}
			for i := range 30 {
				key := fmt.Sprint(i)
				w.submit(t, e, given(key))
				began := time.Now()
				for w.get(t, key).State < eoa.Broadcast {
					time.Sleep(50 * time.Millisecond)
					require.LessOrEqual(t, time.Since(began), 1500*time.Millisecond, "%d: %s", waiting, key)
				}
				w.chain.Mine()
				time.Sleep(time.Duration(i) * 200 * time.Millisecond)
			}
			require.Equal(t, eoa.Pending, w.get(t, "hangs 0").State)
		})
	}
}

// A slow node is asked once, although other requests arrive meanwhile, and its
// answer is used.
func TestSlowEstimateIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 0)
		node := &thinking{Chain: w.chain, takes: 8 * time.Second}
		e, stop := w.running(t, node)
		defer stop()
		w.submit(t, e, request("slow"))
		for i := range 7 {
			time.Sleep(time.Second)
			w.submit(t, e, given(fmt.Sprint(i)))
		}
		time.Sleep(2 * time.Second)
		require.Equal(t, eoa.Broadcast, w.get(t, "slow").State)
		require.EqualValues(t, 1, node.calls.Load())
	})
}

// A node that answers in time does not change the order of the requests, and a
// group keeps its order also if the node hangs.
func TestEstimatesKeepTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 0)
		node := &thinking{Chain: w.chain, takes: 500 * time.Millisecond}
		e, stop := w.running(t, node)
		defer stop()
		var all []eoa.Request
		for i := range 6 {
			q := given(fmt.Sprint(i))
			q.Gas *= uint64(i % 2)
			all = append(all, q)
		}
		_, err := e.Submit(t.Context(), all...)
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		var order []uint64
		for i := range all {
			order = append(order, w.get(t, fmt.Sprint(i)).Nonce)
		}
		require.True(t, slices.IsSorted(order), "%v", order)
		require.EqualValues(t, 1, node.calls.Load())

		node.takes = -1
		first, second := request("first"), given("second")
		first.Group, second.Group = "g", "g"
		_, err = e.Submit(t.Context(), first, second, given("other"))
		require.NoError(t, err)
		time.Sleep(15 * time.Second)
		require.Equal(t, eoa.Broadcast, w.get(t, "other").State)
		require.Equal(t, eoa.Pending, w.get(t, "first").State)
		require.Equal(t, eoa.Pending, w.get(t, "second").State)
	})
}

// A request that is replaced while its gas is estimated does not get the limit of
// its old payload.
func TestEstimateOfAnOldPayloadIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 0)
		node := &thinking{Chain: w.chain, takes: 5 * time.Second}
		e, stop := w.running(t, node)
		defer stop()
		w.submit(t, e, request("a"))
		time.Sleep(2 * time.Second)
		large := request("a")
		large.Data = make([]byte, 1000)
		require.NoError(t, e.Replace(t.Context(), "a", large))
		time.Sleep(10 * time.Second)
		r := w.get(t, "a")
		require.Equal(t, eoa.Broadcast, r.State)
		require.Greater(t, r.Newest().Gas, uint64(21_000+40*1000))
	})
}

// After the first look, the record of a request that cannot be paid for has the
// reason, and the log has one line. The request is sent soon after the account has
// got the money.
func TestUnfundedRequestHasItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 0)
		var log bytes.Buffer
		w.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		w.chain.SetBalance(w.account.Address, new(uint256.Int))
		e, stop := w.running(t, &thinking{Chain: w.chain})
		defer stop()
		w.submit(t, e, request("a"))
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, "the balance does not cover it", w.get(t, "a").Reason)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 1, strings.Count(log.String(), "funds since"))
		w.chain.SetBalance(w.account.Address, uint256.NewInt(1e18))
		time.Sleep(w.cfg.Poll + time.Second)
		r := w.get(t, "a")
		require.Equal(t, eoa.Broadcast, r.State)
		require.Empty(t, r.Reason)
	})
}
