package eoa_test

import (
	"context"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
)

// behind is a gateway to several nodes. Its answers about accounts or
// transactions can come from a node that is some blocks behind, or that has
// stopped on an abandoned fork.
type behind struct {
	*eoatest.Chain
	lag     uint64 // of Look, in blocks; such a node knows of no transactions
	stopped bool   // Ask answers as it did before
	answers eoa.Answers
}

func (c *behind) Look(ctx context.Context, a common.Address) (eoa.Look, error) {
	l, err := c.Chain.Look(ctx, a)
	if c.lag > 0 {
		l.Number, l.Finalized, l.Latest, l.Final = l.Number-min(l.Number, c.lag), l.Finalized-min(l.Finalized, c.lag), 0, 0
	}
	return l, err
}

func (c *behind) Ask(ctx context.Context, q eoa.Questions) (out eoa.Answers, err error) {
	if !c.stopped {
		c.answers, err = c.Chain.Ask(ctx, q)
	}
	return c.answers, err
}

// step takes a step and lets a time pass that is long enough for the next look.
func (w *world) step(t testing.TB, e *eoa.Executor) {
	t.Helper()
	_, err := e.Step(context.Background())
	require.NoError(t, err)
	require.NoError(t, e.Check())
	w.now = w.now.Add(w.cfg.Poll)
}

// A receipt or block hash from a node that stopped on another fork makes
// nothing final, however far the chain has gone.
func TestStaleForkMakesNothingFinal(t *testing.T) {
	for name, steps := range map[string]int{"receipt": 0, "block": 2} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 0)
			c := &behind{Chain: w.chain}
			e := w.executor(t, w.store, c)
			w.submit(t, e, request("a"))
			w.step(t, e)
			w.chain.Mine()
			for range steps {
				w.step(t, e)
			}
			if steps == 0 { // the node that stops has seen the receipt, and we have not
				r := w.get(t, "a")
				_, err := c.Ask(context.Background(), eoa.Questions{Txs: []common.Hash{r.Attempts[0].Hash}, Heights: []uint64{1}})
				require.NoError(t, err)
			}
			c.stopped = true
			w.chain.Reorg(1)
			w.chain.LosePool()
			w.chain.Inject(w.foreign(t, 0))
			for range 20 {
				w.chain.Mine()
				w.step(t, e)
				require.False(t, w.get(t, "a").State.Terminal())
			}
		})
	}
}

// A worker that starts with a node that lags behind an earlier worker's does
// not see a reorg.
func TestLaggingNodeIsNoReorg(t *testing.T) {
	w := newWorld(t, 1, 0)
	c := &behind{Chain: w.chain}
	e := w.executor(t, w.store, c)
	w.submit(t, e, request("a"))
	for range 3 {
		w.step(t, e)
		w.chain.Mine()
	}
	require.NotZero(t, w.get(t, "a").Height)
	require.NoError(t, e.Release(context.Background()))
	c.lag = 4
	e = w.executor(t, w.store, c)
	w.step(t, e)
	require.False(t, w.told(t, eoa.EventReorged))
	w.now = w.now.Add(time.Second)
	w.step(t, e)
	require.False(t, w.told(t, eoa.EventReorged))
	w.now = w.now.Add(w.cfg.Fees.StallTimeout) // without looks
	w.step(t, e)
	require.False(t, w.told(t, eoa.EventReorged))
	for began := w.now; w.now.Sub(began) < w.cfg.Fees.StallTimeout; { // long enough to be believed
		w.step(t, e)
	}
	require.True(t, w.told(t, eoa.EventReorged))
}

// A gateway gets receipts from a node that lags by more than the finality
// depth, and combines them with the head of another node. A missing receipt
// from it is not proof that another transaction took the nonce.
func TestLaggingNodeIsNoProof(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.cfg.Confirmations, w.cfg.Requeue = 1, true
	w.chain = eoatest.New(testChain, 1, 2)
	e := w.executor(t, w.store, &split{Chain: w.chain, lag: 4})
	require.NoError(t, w.submitAll(e))
	for range 20 {
		w.step(t, e)
		w.chain.Mine()
	}
	require.Equal(t, eoa.Final, w.get(t, w.keys[0]).State)
	require.False(t, w.told(t, eoa.EventSuperseded))
}

// split is a node whose receipts are some blocks behind its head.
type split struct {
	*eoatest.Chain
	lag uint64
}

func (c *split) Ask(ctx context.Context, q eoa.Questions) (eoa.Answers, error) {
	out, err := c.Chain.Ask(ctx, q)
	for h, r := range out.Receipts {
		if r.Number+c.lag > out.Number {
			delete(out.Receipts, h)
			out.Missing[h] = true
		}
	}
	return out, err
}
