package eoa_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/internal/repeat"
)

// sabotage sets up what makes a run go through the executor's rarer paths.
type sabotage struct {
	name     string
	requests int // 0 means 6
	setup    func(t testing.TB, w *world)
	tick     func(t testing.TB, w *world, i int)
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
	{name: "refused prices, so bumps", setup: func(_ testing.TB, w *world) {
		w.cfg.Rebroadcast = 5 * time.Second
		w.chain.SetRefuse(func(tx *types.Transaction) string {
			if tx.Data()[len(tx.Data())-1]%2 == 0 && tx.GasTipCap().Uint64() < 5 {
				return "transaction underpriced: gas tip cap 2, minimum needed 5"
			}
			return ""
		})
	}, happened: eoa.EventBumped},
	{name: "a blob, bumped", requests: 3, setup: func(_ testing.TB, w *world) {
		w.cfg.Fees.StallTimeout = 3 * time.Second
		w.request = func(key string) eoa.Request {
			q := request(key)
			if key == w.keys[len(w.keys)/2] {
				// Zeros are the cheapest to prove.
				q.Kind, q.Blobs = eoa.Blob, [][]byte{make([]byte, eoa.BlobSize)}
			}
			return q
		}
	}, tick: func(_ testing.TB, w *world, i int) {
		// Blocks are full from the first tick to the 8th.
		w.chain.SetPerBlock([]int{10, 0, 10}[min((i+7)/8, 2)])
	}, happened: eoa.EventBumped},
}

// live runs an executor until it dies, or all is over.
func live(t testing.TB, l *life, w *world, s *sabotage) {
	e := w.executor(t, l, l.Wire())
	submitted := w.submitAll(e) == nil
	for i := range 4000 {
		if l.Dead() || i%6 == 0 && submitted && w.done(t) {
			return
		}
		if !submitted {
			submitted = w.submitAll(e) == nil
		}
		_, err := e.Step(context.Background())
		if err != nil && !errors.Is(err, errDied) && !errors.Is(err, eoa.ErrHeld) && !errors.Is(err, eoa.ErrFenced) {
			t.Fatalf("step: %v", err)
		}
		require.NoError(t, e.Check())
		w.tick(i)
		if s.tick != nil && i < 400 {
			s.tick(t, w, i)
		}
	}
	w.dump(t)
	t.Fatalf("not over after 4000 ticks, %d moments", l.Moments)
}

// crash runs an executor that dies at the given moment, and then another one.
// It returns the number of moments of the first.
func crash(t *testing.T, s *sabotage, diesAt int) int {
	const usual = 6
	w := newWorld(t, 3, cmp.Or(s.requests, usual))
	if s.setup != nil {
		s.setup(t, w)
	}
	first := &life{Store: w.store, Chain: w.chain, DiesAt: diesAt}
	live(t, first, w, s)
	if diesAt > 0 {
		if diesAt%2 == 0 {
			w.now = w.now.Add(w.cfg.LeaseFor) // no worker for a while
		}
		live(t, &life{Store: w.store, Chain: w.chain}, w, s)
	}
	if w.finish(t, w.executor(t, w.store, w.chain)); t.Failed() {
		t.Logf("%s: died at %d of %d", s.name, diesAt, first.Moments)
	}
	w.exactlyOnce(t)
	if s.happened != 0 && diesAt == 0 {
		require.True(t, w.told(t, s.happened), "no %v", s.happened)
	}
	return first.Moments
}

// The process dies before and after any call to its store and its node, and a
// new one finishes. Every request lands exactly once.
func TestE3NoLossCrashSweep(t *testing.T) {
	for i := range sabotages {
		s := &sabotages[i]
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			moments := crash(t, s, 0)
			require.Greater(t, moments, 40)
			for at := 1; at <= moments; at += repeat.Step() {
				if crash(t, s, at); t.Failed() {
					t.Fatalf("died at %d of %d", at, moments)
				}
			}
			t.Logf("%d moments to die at", moments)
		})
	}
}

// Another process breaks the lease or acquires the account at any moment. The
// loser writes nothing more, and every request lands exactly once.
func TestE4FencedTheftSweep(t *testing.T) {
	t.Parallel()
	for _, thief := range []bool{false, true} {
		t.Run(fmt.Sprintf("taken over %t", thief), func(t *testing.T) {
			s := &sabotages[1]
			moments := crash(t, s, 0)
			for at := 1; at <= moments; at += repeat.Step() {
				w := newWorld(t, 3, 6)
				other := w.executor(t, w.store, w.chain)
				first := &life{Store: w.store, Chain: w.chain, DiesAt: at}
				first.Then = func() {
					require.NoError(t, w.store.Break(context.Background(), w.account))
					if thief {
						_, err := other.Step(context.Background())
						require.NoError(t, err)
						require.NoError(t, other.Release(context.Background()))
					}
				}
				live(t, first, w, s)
				w.finish(t, w.executor(t, w.store, w.chain))
				w.exactlyOnce(t)
			}
			t.Logf("%d moments to lose the lease at", moments)
		})
	}
}
