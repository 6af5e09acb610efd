package eoa_test

import (
	"context"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
)

// miscounting is a node that sometimes answers for another account.
type miscounting struct {
	*eoatest.Chain
	times   int
	final   bool // of a finalized block, too
	pending bool // only of the pool
}

func (c *miscounting) Look(ctx context.Context, a common.Address) (eoa.Look, error) {
	l, err := c.Chain.Look(ctx, a)
	if c.times > 0 && c.pending {
		c.times--
		l.Pending = 60
	} else if c.times > 0 {
		c.times--
		l.Latest, l.Preconfirmed, l.Pending, l.Final = 60, 60, 60, 0
		if c.final {
			l.Final = 60
		}
	}
	return l, err
}

// One wrong transaction count is not believed, so that no noops are paid for and an
// exclusive account does not stop.
func TestOneWrongCountCostsNothing(t *testing.T) {
	for i := range 6 {
		w := newWorld(t, 1, 3)
		w.cfg.Exclusive = i%2 == 1
		c := &miscounting{Chain: w.chain, final: i/2 == 1, pending: i/2 == 2}
		e := w.executor(t, w.store, c)
		require.NoError(t, w.submitAll(e))
		w.steps(t, e, 30)
		c.times = 1
		w.submit(t, e, request("later"))
		w.keys = append(w.keys, "later")
		w.finish(t, e)
		w.exactlyOnce(t)
		require.Len(t, w.chain.Transactions(), 4)
		require.Equal(t, uint64(3), w.get(t, "later").Nonce)
	}
}

// Another program used nonces. The next request gets the nonce behind them, also
// if each step is taken by a new worker and the chain makes no blocks.
func TestCountOfAnotherProgramIsBelieved(t *testing.T) {
	w := newWorld(t, 1, 1)
	e := w.executor(t, w.store, w.chain)
	require.NoError(t, w.submitAll(e))
	w.steps(t, e, 40)
	for n := range uint64(3) {
		w.chain.Inject(w.foreign(t, 1+n))
		w.chain.Mine()
	}
	w.submit(t, e, request("later"))
	for range 3 {
		_, err := e.Step(context.Background())
		require.NoError(t, err)
		require.NoError(t, e.Release(context.Background()))
		e = w.executor(t, w.store, w.chain)
		w.now = w.now.Add(w.cfg.Retry)
	}
	require.Equal(t, uint64(4), w.get(t, "later").Nonce)
}

// An account has sent transactions without the store. One of the first looks comes
// from a node that is a block behind. No request gets a used nonce.
func TestFirstNonceNeedsTwoLooks(t *testing.T) {
	for _, lags := range [][]uint64{{0}, {1}, {0, 1}, {0, 1, 1}, {1, 0, 1}} {
		w := newWorld(t, 1, 0)
		for n := range uint64(2) {
			w.chain.Inject(w.foreign(t, n))
			w.chain.Mine()
		}
		c := &lagging{w.chain, lags}
		e := w.executor(t, w.store, c)
		w.submit(t, e, request("a"))
		for range 5 {
			w.step(t, e)
		}
		w.steps(t, e, 40)
		require.Equal(t, eoa.Final, w.get(t, "a").State)
		require.Equal(t, uint64(2), w.get(t, "a").Nonce)
	}
}

// lagging is a node that is some blocks behind in its first looks.
type lagging struct {
	*eoatest.Chain
	lags []uint64
}

func (c *lagging) Look(ctx context.Context, a common.Address) (eoa.Look, error) {
	l, err := c.Chain.Look(ctx, a)
	if len(c.lags) > 0 {
		l.Number -= c.lags[0]
		l.Latest = c.Count(a, l.Number)
		l.Pending, l.Preconfirmed = l.Latest, l.Latest
		c.lags = c.lags[1:]
	}
	return l, err
}
