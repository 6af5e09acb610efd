package eoa_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// errDied is what a process that has died answers.
var errDied = errors.New("the process died")

// life is one life of an executor's process: between it and its store and chain. It dies at its n-th moment; moments are before and after each call.
type life struct {
	store   eoa.Store
	chain   eoa.Chain
	moments int
	diesAt  int // 0: never
	then    func()
}

func (l *life) dead() bool { return l.diesAt > 0 && l.moments >= l.diesAt }

// moment does something that the process can die before and after. then happens at that moment instead of death, if it is set.
func (l *life) moment(f func() error) error {
	if err := l.pass(); err != nil {
		return err
	}
	err := f()
	if died := l.pass(); died != nil {
		return died
	}
	return err
}

func (l *life) pass() error {
	if l.moments++; l.then != nil {
		if l.moments == l.diesAt {
			l.then()
		}
		return nil
	}
	if l.dead() {
		return errDied
	}
	return nil
}

func (l *life) Submit(ctx context.Context, a eoa.Account, now time.Time, q ...eoa.Request) (out []eoa.Record, err error) {
	err = l.moment(func() error { out, err = l.store.Submit(ctx, a, now, q...); return err })
	return out, err
}

func (l *life) Order(ctx context.Context, a eoa.Account, now time.Time, o eoa.Order) error {
	return l.moment(func() error { return l.store.Order(ctx, a, now, o) })
}

func (l *life) Get(ctx context.Context, a eoa.Account, key string) (out eoa.Record, err error) {
	err = l.moment(func() error { out, err = l.store.Get(ctx, a, key); return err })
	return out, err
}

func (l *life) ByHash(ctx context.Context, a eoa.Account, tx common.Hash) (out eoa.Record, err error) {
	err = l.moment(func() error { out, err = l.store.ByHash(ctx, a, tx); return err })
	return out, err
}

func (l *life) List(ctx context.Context, a eoa.Account, after uint64, limit int) (out []eoa.Record, err error) {
	err = l.moment(func() error { out, err = l.store.List(ctx, a, after, limit); return err })
	return out, err
}

func (l *life) Events(ctx context.Context, a eoa.Account, after uint64, limit int) (out []eoa.Event, err error) {
	err = l.moment(func() error { out, err = l.store.Events(ctx, a, after, limit); return err })
	return out, err
}

func (l *life) Acknowledge(ctx context.Context, a eoa.Account, through uint64) error {
	return l.moment(func() error { return l.store.Acknowledge(ctx, a, through) })
}

func (l *life) Acquire(ctx context.Context, a eoa.Account, owner string, now time.Time, ttl time.Duration) (out eoa.Lease, err error) {
	err = l.moment(func() error { out, err = l.store.Acquire(ctx, a, owner, now, ttl); return err })
	return out, err
}

func (l *life) Renew(ctx context.Context, lease eoa.Lease, now time.Time, ttl time.Duration) (out eoa.Lease, err error) {
	err = l.moment(func() error { out, err = l.store.Renew(ctx, lease, now, ttl); return err })
	return out, err
}

func (l *life) Park(ctx context.Context, lease eoa.Lease, wake uint64, due time.Time) error {
	return l.moment(func() error { return l.store.Park(ctx, lease, wake, due) })
}

func (l *life) Break(ctx context.Context, a eoa.Account) error {
	return l.moment(func() error { return l.store.Break(ctx, a) })
}

func (l *life) Due(ctx context.Context, now time.Time, limit int) (out []eoa.Account, err error) {
	err = l.moment(func() error { out, err = l.store.Due(ctx, now, limit); return err })
	return out, err
}

func (l *life) Load(ctx context.Context, lease eoa.Lease) (out eoa.Loaded, err error) {
	err = l.moment(func() error { out, err = l.store.Load(ctx, lease); return err })
	return out, err
}

func (l *life) Inbox(ctx context.Context, a eoa.Account, after eoa.Rank, limit int) (out eoa.Inbox, err error) {
	err = l.moment(func() error { out, err = l.store.Inbox(ctx, a, after, limit); return err })
	return out, err
}

func (l *life) Commit(ctx context.Context, lease eoa.Lease, now time.Time, b eoa.Batch) (wake uint64, err error) {
	err = l.moment(func() error { wake, err = l.store.Commit(ctx, lease, now, b); return err })
	return wake, err
}

// wire is the chain's side of a life.
type wire struct{ *life }

func (l wire) Look(ctx context.Context, a common.Address) (out eoa.Look, err error) {
	err = l.moment(func() error { out, err = l.chain.Look(ctx, a); return err })
	return out, err
}

func (l wire) Ask(ctx context.Context, q eoa.Questions) (out eoa.Answers, err error) {
	err = l.moment(func() error { out, err = l.chain.Ask(ctx, q); return err })
	return out, err
}

func (l wire) Estimate(ctx context.Context, a common.Address, r *eoa.Request) (out uint64, err error) {
	err = l.moment(func() error { out, err = l.chain.Estimate(ctx, a, r); return err })
	return out, err
}

func (l wire) Send(ctx context.Context, raws [][]byte) (out []eoa.Sent) {
	if err := l.moment(func() error { out = l.chain.Send(ctx, raws); return nil }); err != nil {
		return make([]eoa.Sent, len(raws))
	}
	return out
}

// sabotage sets up what makes a run go through the executor's rarer paths.
type sabotage struct {
	name  string
	setup func(t testing.TB, w *world)
	tick  func(t testing.TB, w *world, i int)
	// happened is an event without which the run was not what it is meant to be.
	happened eoa.EventKind
}

var sabotages = []sabotage{
	{name: "plain"},
	{name: "reorgs", tick: func(_ testing.TB, w *world, i int) {
		if i%7 == 3 {
			w.chain.Reorg(1 + i%5)
		}
	}},
	{name: "lost pool", tick: func(_ testing.TB, w *world, i int) {
		if i%4 == 1 {
			w.chain.LosePool()
		}
	}},
	{name: "dear blocks, so bumps", setup: func(_ testing.TB, w *world) {
		w.cfg.Fees.StallTimeout = 3 * time.Second
		w.chain.SetPerBlock(2)
		w.chain.SetBaseFee(100)
	}, tick: func(_ testing.TB, w *world, i int) {
		if i == 2 {
			w.chain.SetBaseFee(1000)
		}
	}, happened: eoa.EventBumped},
	{name: "refusals, so recycled nonces", setup: func(_ testing.TB, w *world) {
		w.cfg.Rebroadcast = 5 * time.Second
		refusals := 0
		w.chain.SetRefuse(func(tx *types.Transaction) string {
			if refusals++; refusals%3 == 1 && refusals < 30 && len(tx.Data()) > 0 {
				return "insufficient funds for gas * price + value"
			}
			return ""
		})
	}, happened: eoa.EventNoop},
}

// run lives until it dies, or all is over.
func (l *life) run(t testing.TB, w *world, s *sabotage) {
	e := w.executor(t, l, wire{l})
	submitted := w.submitAll(e) == nil
	for i := range 4000 {
		if l.then == nil && l.dead() || w.done(t) && submitted {
			return
		}
		if !submitted {
			submitted = w.submitAll(e) == nil
		}
		_, err := e.Step(context.Background())
		if err != nil && !errors.Is(err, errDied) && !errors.Is(err, eoa.ErrHeld) && !errors.Is(err, eoa.ErrFenced) {
			t.Fatalf("step: %v", err)
		}
		w.tick(i)
		if s.tick != nil && i < 400 {
			s.tick(t, w, i)
		}
	}
	w.dump(t)
	t.Fatalf("not over after 4000 ticks, %d moments", l.moments)
}

// crash runs an executor that dies at a moment, and another that takes over. It returns the moments of the first.
func crash(t *testing.T, s *sabotage, requests, diesAt int) int {
	w := newWorld(t, 3, requests)
	if s.setup != nil {
		s.setup(t, w)
	}
	first := &life{store: w.store, chain: w.chain, diesAt: diesAt}
	first.run(t, w, s)
	if diesAt > 0 {
		if diesAt%2 == 0 {
			w.now = w.now.Add(w.cfg.LeaseFor) // nobody is there for a while
		}
		(&life{store: w.store, chain: w.chain}).run(t, w, s)
	}
	if w.finish(t, w.executor(t, w.store, w.chain)); t.Failed() {
		t.Logf("%s: died at %d of %d", s.name, diesAt, first.moments)
	}
	w.exactlyOnce(t)
	if s.happened != 0 && diesAt == 0 {
		require.True(t, w.told(t, s.happened), "no %v", s.happened)
	}
	return first.moments
}

// The process dies before and after any call to its store and to its node; a fresh one finishes. Every request lands exactly once.
func TestE3NoLossCrashSweep(t *testing.T) {
	for i := range sabotages {
		s := &sabotages[i]
		t.Run(s.name, func(t *testing.T) {
			moments := crash(t, s, 6, 0)
			require.Greater(t, moments, 40)
			for at := 1; at <= moments; at++ {
				if crash(t, s, 6, at); t.Failed() {
					t.Fatalf("died at %d of %d", at, moments)
				}
			}
			t.Logf("%d moments to die at", moments)
		})
	}
}

// Somebody breaks the lease, or takes the account over, at any moment: the loser writes nothing more, and every request lands exactly once.
func TestE4FencedTheftSweep(t *testing.T) {
	for _, thief := range []bool{false, true} {
		t.Run(fmt.Sprintf("taken over %t", thief), func(t *testing.T) {
			s := &sabotages[1]
			moments := crash(t, s, 5, 0)
			for at := 1; at <= moments; at++ {
				w := newWorld(t, 3, 5)
				other := w.executor(t, w.store, w.chain)
				first := &life{store: w.store, chain: w.chain, diesAt: at}
				first.then = func() {
					require.NoError(t, w.store.Break(context.Background(), w.account))
					if thief {
						_, err := other.Step(context.Background())
						require.NoError(t, err)
						require.NoError(t, other.Release(context.Background()))
					}
				}
				first.run(t, w, s)
				w.finish(t, w.executor(t, w.store, w.chain))
				w.exactlyOnce(t)
			}
			t.Logf("%d moments to lose the lease at", moments)
		})
	}
}
