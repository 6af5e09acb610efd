package eoa_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/internal/repeat"
)

// faultsOf draws what goes wrong from a seed.
func faultsOf(seed uint64) eoatest.Faults {
	rng := rand.New(rand.NewPCG(seed, 1))
	p := func(most float64) float64 { return most * float64(rng.IntN(3)) / 2 }
	return eoatest.Faults{DropRequest: p(0.3), Refuse: p(0.2), Return: p(1), DropResponse: p(0.4), Busy: p(0.2), Garbage: p(0.3), Lag: p(0.3), LosePool: p(0.2), Reorg: p(0.3), ReorgDepth: 6}
}

// All calls between the executor and the node fail at random, and executors die
// and are replaced. No request lands twice, and finally all have landed.
func TestE1NoDoubleSpendChaos(t *testing.T) {
	t.Parallel()
	for seed := repeat.First(); seed < repeat.First()+uint64(repeat.Times(6, 60)); seed++ {
		w := newWorld(t, seed, 25)
		w.cfg.Fees.StallTimeout = 20 * time.Second
		w.cfg.MaxInFlight = 9
		w.chain.SetPerBlock(5)
		w.chain.SetFaults(faultsOf(seed))
		chaos(t, w, seed, 300)
		w.chain.SetFaults(eoatest.Faults{})
		w.finish(t, w.executor(t, w.store, w.chain))
		w.exactlyOnce(t)
		if t.Failed() {
			t.Fatalf("seed %d, faults %+v", seed, faultsOf(seed))
		}
	}
}

// chaos runs executors that die at random.
func chaos(t *testing.T, w *world, seed uint64, ticks int) {
	rng := rand.New(rand.NewPCG(seed, 2))
	var l *life
	var e *eoa.Executor
	for i := range ticks {
		if l == nil || l.Dead() {
			l = &life{Store: w.store, Chain: w.chain, DiesAt: 1 + rng.IntN(400)}
			e = w.executor(t, l, l.Wire())
		}
		if i%25 < 3 {
			_ = w.submitAll(e)
		}
		if _, err := e.Step(context.Background()); err != nil && !errors.Is(err, errDied) && !errors.Is(err, eoa.ErrHeld) && !errors.Is(err, eoa.ErrFenced) {
			t.Fatalf("seed %d: step: %v", seed, err)
		}
		require.NoError(t, e.Check())
		w.tick(i)
	}
}

// askew is a clock that is ahead of the world's, or behind.
type askew struct {
	*world
	by time.Duration
}

func (c askew) Now() time.Time { return c.now.Add(c.by) }

// Each step is made by another worker, as with jobs. The workers' clocks
// differ, and their nodes are unreliable. All requests land once, and soon
// after the nodes recover.
func TestE1NoDoubleSpendEachStep(t *testing.T) {
	t.Parallel()
	for seed := repeat.First(); seed < repeat.First()+uint64(repeat.Times(5, 20)); seed++ {
		w := newWorld(t, seed, 25)
		w.cfg.Fees.StallTimeout = 20 * time.Second
		w.chain.SetPerBlock(5)
		w.chain.SetFaults(faultsOf(seed))
		rng := rand.New(rand.NewPCG(seed, 6))
		worker := func() {
			cfg := w.cfg
			cfg.Now = askew{w, time.Duration(rng.IntN(3)-1) * 10 * time.Minute}.Now
			e, err := eoa.New(cfg, w.account, w.store, w.chain, w.signer)
			require.NoError(t, err)
			_, err = e.Step(context.Background())
			require.NoError(t, err)
			require.NoError(t, e.Release(context.Background()))
		}
		require.NoError(t, w.submitAll(w.executor(t, w.store, w.chain)))
		for i := range 300 {
			worker()
			w.tick(i)
		}
		w.chain.SetFaults(eoatest.Faults{})
		for i := 0; !w.done(t); i++ {
			require.Less(t, i, 400, "seed %d", seed)
			worker()
			w.tick(i)
		}
		w.exactlyOnce(t)
	}
}

// Two executors work on one account at once, and each loses it to the other again and again.
func TestE1NoDoubleSpendTwoExecutors(t *testing.T) {
	for seed := repeat.First(); seed < repeat.First()+uint64(repeat.Times(5, 20)); seed++ {
		w := newWorld(t, seed, 20)
		w.chain.SetFaults(eoatest.Faults{DropResponse: 0.2, Reorg: 0.1, ReorgDepth: 3})
		rng := rand.New(rand.NewPCG(seed, 3))
		both := []*eoa.Executor{w.executor(t, w.store, w.chain), w.executor(t, w.store, w.chain)}
		require.NoError(t, w.submitAll(both[0]))
		for i := range 120 {
			if rng.IntN(4) == 0 {
				require.NoError(t, w.store.Break(context.Background(), w.account))
			}
			_, err := both[rng.IntN(2)].Step(context.Background())
			if err != nil && !errors.Is(err, eoa.ErrHeld) && !errors.Is(err, eoa.ErrFenced) {
				t.Fatal(err)
			}
			w.tick(i)
		}
		w.chain.SetFaults(eoatest.Faults{})
		w.finish(t, both...)
		w.exactlyOnce(t)
	}
}

// Another program uses the account's nonces, before and while the executor
// works. The requests that lose their nonces are superseded with proof,
// requeued, and land once.
func TestForeignTransactions(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		w := newWorld(t, seed, 12)
		w.cfg.Requeue, w.cfg.Fees.StallTimeout = true, 15*time.Second
		rng := rand.New(rand.NewPCG(seed, 4))
		for n := range uint64(rng.IntN(4)) {
			w.chain.Inject(w.foreign(t, n))
		}
		e := w.executor(t, w.store, w.chain)
		require.NoError(t, w.submitAll(e))
		next := func() uint64 {
			l, err := w.chain.Look(context.Background(), w.account.Address)
			require.NoError(t, err)
			return l.Latest
		}
		w.chain.SetFaults(eoatest.Faults{Reorg: 0.4, ReorgDepth: 6, LosePool: 0.3, Return: 0.7})
		for i := range 160 {
			if i == 120 {
				w.chain.SetFaults(eoatest.Faults{})
			}
			if rng.IntN(6) == 0 && i < 120 {
				w.chain.Inject(w.foreign(t, next()+uint64(rng.IntN(3))))
			}
			_, err := e.Step(context.Background())
			require.NoError(t, err)
			w.tick(i)
		}
		w.landed(t, e)
	}
}

// landed runs until every request, or the one that replaces it, is final, and
// checks that each landed once.
func (w *world) landed(t testing.TB, e *eoa.Executor) {
	t.Helper()
	count := func() (n int) {
		for _, tx := range w.chain.Transactions() {
			if len(tx.Data()) > 0 {
				n++
			}
		}
		return n
	}
	for i := range 3000 {
		_, err := e.Step(context.Background())
		require.NoError(t, err)
		w.tick(i)
		if count() >= len(w.keys) && w.done(t) && !e.Stats().Held {
			break
		}
	}
	seen := map[string]int{}
	for _, tx := range w.chain.Transactions() {
		if len(tx.Data()) > 0 {
			seen[string(tx.Data())]++
		}
	}
	for _, key := range w.keys {
		if seen[key] != 1 {
			w.dump(t)
			t.Fatalf("%q landed %d times", key, seen[key])
		}
	}
}
