package eoa_test

import (
	"context"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
)

// every returns a refusal of every other send with the text second, like a
// gateway to two nodes with different rules.
func every(second string) func(*types.Transaction) string {
	sends := 0
	return func(*types.Transaction) string {
		if sends++; sends%2 == 0 {
			return second
		}
		return ""
	}
}

// Nodes behind a gateway that disagree whether a price is enough do not delay
// the bump.
func TestFickleNodesAreOutbid(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.chain.SetPerBlock(0)
	w.chain.SetRefuse(every("transaction underpriced: gas tip cap 2, minimum needed 3"))
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, request("a"))
	for range 60 {
		w.step(t, e)
		w.chain.Mine()
	}
	require.Equal(t, 1, w.get(t, "a").Bumps, "after %v of %v", 60*w.cfg.Poll, w.cfg.Fees.StallTimeout)
}

// A node behind the same gateway that refuses the transaction as invalid does
// not cancel the request, because another node took it.
func TestOneNodesNoCancelsNothing(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.cfg.Fees.StallTimeout = 5 * time.Minute
	w.chain.SetPerBlock(0)
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, request("a"))
	says, reportedAt := every("tx fee (1.20 ether) exceeds the configured cap (1.00 ether)"), 0
	w.chain.SetRefuse(func(tx *types.Transaction) string {
		text := says(tx)
		reportedAt += len(text)
		return text
	})
	for range 25 {
		w.step(t, e)
	}
	require.Equal(t, eoa.Broadcast, w.get(t, "a").State)
	require.NotZero(t, reportedAt)
	require.False(t, w.get(t, "a").Cancelling)
	w.chain.SetPerBlock(10)
	w.steps(t, e, 60)
	require.Equal(t, eoa.Final, w.get(t, "a").State)
}

// Times written by a worker whose clock was an hour ahead delay neither the
// sends nor the bumps of later workers.
func TestAfterAClockThatWasAhead(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.chain.SetPerBlock(0)
	right := w.now
	w.now = right.Add(time.Hour)
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, request("a"))
	w.step(t, e)
	for w.get(t, "a").Bumps == 0 { // so that all times are ahead
		w.step(t, e)
	}
	require.NoError(t, e.Release(context.Background()))
	w.now = right
	recovered := 0
	w.cfg.Observe = func(r eoa.Report) { recovered += r.Recovered }
	for range 180 { // six minutes: two bumps, the second after twice the time
		e := w.executor(t, w.store, w.chain)
		w.step(t, e)
		require.NoError(t, e.Release(context.Background()))
	}
	require.Greater(t, w.get(t, "a").Bumps, 1)
	require.Less(t, recovered, 20, "sent again by each worker")
}

// That all in flight was sent again is one write, however many batches it took.
func TestSendingAgainIsWrittenOnce(t *testing.T) {
	w := newWorld(t, 1, 12) // in batches of 4
	w.cfg.LeaseFor = time.Hour
	w.chain.SetPerBlock(0)
	w.chain.SetRefuse(func(*types.Transaction) string {
		w.now = w.now.Add(time.Millisecond) // a send takes its time
		return ""
	})
	var last eoa.Report
	w.cfg.Observe = func(r eoa.Report) { last = r }
	e := w.executor(t, w.store, w.chain)
	require.NoError(t, w.submitAll(e))
	w.step(t, e)
	require.Equal(t, 12, last.Accepted)
	for last.Recovered == 0 {
		w.step(t, e)
	}
	require.Equal(t, 12, last.Recovered)
	require.Equal(t, 1, last.Commits)
}

// lossy is a node that does not get one of the sends.
type lossy struct {
	*eoatest.Chain
	lose int // the number of the send, from 1; 0 for none
}

func (c *lossy) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	if c.lose--; c.lose == 0 {
		return make([]eoa.Sent, len(raws))
	}
	return c.Chain.Send(ctx, raws)
}

// A node lost its pool, and one batch of the transactions that are sent again
// is lost. The next worker sends that batch again.
func TestLostBatchIsSentByTheNextWorker(t *testing.T) {
	w := newWorld(t, 1, 12) // in batches of 4
	w.chain.SetPerBlock(0)
	c := &lossy{Chain: w.chain}
	recovered := 0
	w.cfg.Observe = func(r eoa.Report) { recovered += r.Recovered }
	require.NoError(t, w.submitAll(w.executor(t, w.store, c)))
	worker := func() {
		e := w.executor(t, w.store, c)
		w.step(t, e)
		require.NoError(t, e.Release(context.Background()))
	}
	worker()
	w.chain.LosePool()
	c.lose = 2
	for recovered == 0 {
		worker()
	}
	require.Equal(t, 8, w.chain.Pooled())
	worker()
	require.Equal(t, 12, w.chain.Pooled())
	again := recovered
	worker()
	require.Equal(t, again, recovered, "nothing is due")
}

// A gateway directs every other worker to a node that stopped long ago. The
// account's count seems to go back and forth, which is not progress.
func TestStoppedNodeDoesNotPutOffTheBump(t *testing.T) {
	w := newWorld(t, 1, 0)
	c := &behind{Chain: w.chain}
	worker := func() {
		e := w.executor(t, w.store, c)
		w.step(t, e)
		require.NoError(t, e.Release(context.Background()))
	}
	w.submit(t, w.executor(t, w.store, c), request("a"))
	for w.get(t, "a").State != eoa.Final {
		worker()
		w.chain.Mine()
	}
	w.chain.SetPerBlock(0)
	w.submit(t, w.executor(t, w.store, c), request("b"))
	for i := range 60 {
		c.lag = uint64(i%2) * 1000
		worker()
	}
	require.Equal(t, 1, w.get(t, "b").Bumps, "after %v of %v", 60*w.cfg.Poll, w.cfg.Fees.StallTimeout)
}

// Nor does it keep a request waiting that could not be signed then.
func TestWaitOfAClockThatWasAhead(t *testing.T) {
	w := newWorld(t, 1, 0)
	right := w.now
	w.now = right.Add(time.Hour)
	p := picky{w.chain, w.signer, false, true}
	e, err := eoa.New(w.cfg, w.account, w.store, p, p)
	require.NoError(t, err)
	w.submit(t, e, request("bad one"))
	w.step(t, e)
	require.NotZero(t, w.get(t, "bad one").NotBefore)
	require.NoError(t, e.Release(context.Background()))
	w.now = right
	w.steps(t, w.executor(t, w.store, w.chain), 10)
	require.GreaterOrEqual(t, w.get(t, "bad one").State, eoa.Broadcast)
}
