package eoa_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
)

// slow is a signer and a node with slow calls. During each call other workers
// try to acquire the account.
type slow struct {
	*eoatest.Chain
	eoa.Signer
	passes func()
}

func (s slow) Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error) {
	s.passes()
	return s.Signer.Sign(ctx, a, tx)
}

func (s slow) Estimate(ctx context.Context, a common.Address, requests []*eoa.Request) []eoa.Estimated {
	s.passes()
	return s.Chain.Estimate(ctx, a, requests)
}

// A worker whose batch takes longer than the lease keeps the lease. Otherwise
// workers would take the account from each other and never send.
func TestSlowSignerKeepsTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 12)
		w.cfg.Now, w.cfg.Batch, w.cfg.Parallel = nil, len(w.keys), 2
		other := w.executor(t, w.store, w.chain)
		s := slow{w.chain, w.signer, func() {
			time.Sleep(w.cfg.LeaseFor / 4)
			_, err := other.Step(context.Background())
			require.ErrorIs(t, err, eoa.ErrHeld)
		}}
		e, err := eoa.New(w.cfg, w.account, w.store, s, s)
		require.NoError(t, err)
		require.NoError(t, w.submitAll(e))
		began := time.Now()
		w.steps(t, e, 1)
		require.Greater(t, time.Since(began), w.cfg.LeaseFor)
		for i := range w.keys {
			require.Equal(t, eoa.Broadcast, w.get(t, fmt.Sprintf("request %d", i)).State)
		}
		for !w.done(t) {
			w.chain.Mine()
			time.Sleep(w.cfg.Poll)
			w.steps(t, e, 1)
		}
		w.exactlyOnce(t)
	})
}

// A foreign transaction in the pool is outbid after a while, although the
// executor's transaction never entered a pool.
func TestForeignInThePoolIsOutbid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 1)
	w.chain.SetPerBlock(0)
	e := w.executor(t, w.store, w.chain)
	w.steps(t, e, 1)
	w.chain.Inject(w.foreign(t, 0)) // with a tip of 10, where ours is 2
	require.NoError(t, w.submitAll(e))
	refused := func() bool {
		w.steps(t, e, 1)
		r := w.get(t, w.keys[0])
		return r.Newest().Result != eoa.Accepted
	}
	require.True(t, refused())
	for range 4000 {
		if !refused() {
			break
		}
		w.now = w.now.Add(5 * time.Second)
	}
	require.False(t, refused())
	w.chain.SetPerBlock(10)
	w.finish(t, e)
	w.exactlyOnce(t)
}
