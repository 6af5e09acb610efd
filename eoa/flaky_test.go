package eoa_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/internal/repeat"
)

// flaky is a store that loses answers. It carries out a call, drops it, or
// carries it out later, when its caller has gone on.
type flaky struct {
	eoa.Store
	rng  *rand.Rand
	late []func()
}

var errLost = errors.New("connection lost")

// call does f, or loses the request, or the answer, or does f some calls later.
func (s *flaky) call(f func() error) error {
	for len(s.late) > 0 && s.rng.IntN(3) == 0 {
		s.late[0]()
		s.late = s.late[1:]
	}
	switch s.rng.IntN(12) {
	case 0:
		return errLost
	case 1:
		_ = f()
		return errLost
	case 2:
		s.late = append(s.late, func() { _ = f() })
		return errLost
	}
	return f()
}

func (s *flaky) Submit(ctx context.Context, a eoa.Account, now time.Time, q ...eoa.Request) (out []eoa.Record, err error) {
	err = s.call(func() (err error) { out, err = s.Store.Submit(ctx, a, now, q...); return err })
	return out, err
}

func (s *flaky) Acquire(ctx context.Context, a eoa.Account, owner string, now time.Time, ttl time.Duration) (out eoa.Lease, err error) {
	err = s.call(func() (err error) { out, err = s.Store.Acquire(ctx, a, owner, now, ttl); return err })
	return out, err
}

func (s *flaky) Renew(ctx context.Context, l eoa.Lease, now time.Time, ttl time.Duration) (out eoa.Lease, err error) {
	err = s.call(func() (err error) { out, err = s.Store.Renew(ctx, l, now, ttl); return err })
	return out, err
}

func (s *flaky) Park(ctx context.Context, l eoa.Lease, wake uint64, due time.Time) error {
	return s.call(func() error { return s.Store.Park(ctx, l, wake, due) })
}

func (s *flaky) Commit(ctx context.Context, l eoa.Lease, now time.Time, b eoa.Batch) (wake uint64, err error) {
	err = s.call(func() (err error) { wake, err = s.Store.Commit(ctx, l, now, b); return err })
	return wake, err
}

// The store loses requests and answers, and carries out writes long after they
// seemed to have failed. No request lands twice, and all land.
func TestE1NoDoubleSpendLateWrites(t *testing.T) {
	t.Parallel()
	for seed := repeat.First(); seed < repeat.First()+uint64(repeat.Times(10, 60)); seed++ {
		w := newWorld(t, seed, 15)
		w.cfg.LeaseFor = 4 * time.Second
		w.chain.SetPerBlock(4)
		w.chain.SetFaults(eoatest.Faults{DropResponse: 0.2, Refuse: 0.1, Reorg: 0.1, ReorgDepth: 3, Return: 0.5})
		bad := &flaky{Store: w.store, rng: rand.New(rand.NewPCG(seed, 5))}
		e := w.executor(t, bad, w.chain)
		for i := range 200 {
			if i%10 < 2 {
				_ = w.submitAll(e)
			}
			_, err := e.Step(context.Background())
			require.True(t, err == nil || errors.Is(err, errLost) || errors.Is(err, eoa.ErrHeld) || errors.Is(err, eoa.ErrFenced) || errors.Is(err, eoa.ErrConflict), "%v", err)
			require.NoError(t, e.Check())
			w.tick(i)
		}
		w.chain.SetFaults(eoatest.Faults{})
		last := w.executor(t, w.store, w.chain)
		require.NoError(t, w.submitAll(last))
		for _, f := range bad.late {
			f()
		}
		w.finish(t, last)
		w.exactlyOnce(t)
	}
}

// lateNo is a store that loses the step with a rejection, and carries it out
// after the request was sent again.
type lateNo struct {
	eoa.Store
	late func()
}

func (s *lateNo) Commit(ctx context.Context, l eoa.Lease, now time.Time, b eoa.Batch) (uint64, error) {
	if len(b.Records) == 1 && b.Records[0].Newest().Result == eoa.Rejected && s.late == nil {
		s.late = func() { _, _ = s.Store.Commit(ctx, l, now, b) }
		return 0, errLost
	}
	return s.Store.Commit(ctx, l, now, b)
}

// A node definitely rejected a transaction, and the step with the rejection is
// lost. The bytes are then sent again, so a node may have them. When the lost
// step arrives late, it must change nothing.
func TestLateStepChangesNothing(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.chain.SetRefuse(func(*types.Transaction) string { return "insufficient funds for gas * price + value" })
	store := &lateNo{Store: w.store}
	c := &sends{Chain: w.chain}
	e := w.executor(t, store, c)
	require.NoError(t, w.submitAll(e))
	_, err := e.Step(context.Background())
	require.ErrorIs(t, err, errLost)
	w.chain.SetRefuse(nil)
	c.after = store.late
	_, _ = e.Step(context.Background())
	require.Equal(t, eoa.Broadcast, w.get(t, w.keys[0]).State)
	w.finish(t, e)
	w.exactlyOnce(t)
}

// sends is a node that something happens after it was sent anything.
type sends struct {
	*eoatest.Chain
	after func()
}

func (c *sends) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	out := c.Chain.Send(ctx, raws)
	if c.after != nil {
		c.after()
	}
	return out
}
