package eoa_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/kvstore"
	"github.com/jamq/jamq/internal/repeat"
)

// undone is a replicated store that can lose any number of its last writes.
type undone struct {
	*replicated
	t testing.TB
}

func (u undone) Write(ctx context.Context, entries []kvstore.Entry) error {
	u.replicate(u.t)
	return u.replicated.Write(ctx, entries)
}

func newUndone(t testing.TB, w *world) undone {
	u := undone{newReplicated(w), t}
	w.store = kvstore.New(u)
	return u
}

// duringSend calls f once, when the node has the bytes and its answer is on the
// way.
type duringSend struct {
	*eoatest.Chain
	f func()
}

func (c *duringSend) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	out := c.Chain.Send(ctx, raws)
	if f := c.f; f != nil {
		c.f = nil
		f()
	}
	return out
}

// onChain counts, by their data, the transactions that are on the chain.
func (w *world) onChain() map[string]int {
	out := map[string]int{}
	for _, tx := range w.chain.Transactions() {
		if len(tx.Data()) > 0 {
			out[string(tx.Data())]++
		}
	}
	return out
}

// The store loses one commit, the signatures, while they are sent. The worker
// that made the commit goes on, and its next commit has the same version.
func TestE5OneLostCommit(t *testing.T) {
	w := newWorld(t, 1, 0)
	store := newUndone(t, w)
	c := &duringSend{Chain: w.chain}
	e := w.executor(t, w.store, c)
	w.submit(t, e, request("before"))
	w.steps(t, e, 40)
	w.submit(t, e, request("x"))
	c.f = func() { store.promote(1) }
	y := request("y")
	y.Priority = 5 // it would get the nonce of x
	require.ErrorIs(t, stepUntilStopped(w, e, func() { w.submit(t, e, y) }), eoa.ErrStoreRolledBack)
	require.Equal(t, eoa.Pending, w.get(t, "x").State)
	require.Equal(t, eoa.Pending, w.get(t, "y").State)
	require.Equal(t, 1, w.onChain()["x"])
}

// stepUntilStopped takes at most 200 steps, and calls after behind the first. It
// returns the error of the stop, or nil.
func stepUntilStopped(w *world, e *eoa.Executor, after func()) error {
	for i := range 200 {
		if _, err := e.Step(context.Background()); errors.Is(err, eoa.ErrStopped) {
			return err
		}
		if i == 0 {
			after()
		}
		w.tick(i)
	}
	return nil
}

// The store loses the last commits of one process, and a worker of another
// process makes more commits than were lost. The first process stops the account
// when it looks next.
func TestE5CommitsOfOthersReplaceNone(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, 1, 0)
	store := newUndone(t, w)
	a, b := w.executor(t, w.store, w.chain), w.executor(t, w.store, w.chain)
	w.submit(t, a, request("before"))
	w.steps(t, a, 40)
	w.chain.SetPerBlock(0)
	w.submit(t, a, request("x"))
	n := len(store.copies)
	w.steps(t, a, 1)
	store.promote(len(store.copies) - n)
	y := request("y")
	y.Priority = 5
	w.submit(t, b, y)
	require.NoError(t, w.store.Break(ctx, w.account))
	for range 10 {
		w.step(t, b)
	}
	require.ErrorIs(t, stepUntilStopped(w, a, func() {}), eoa.ErrStoreRolledBack)
	require.NoError(t, a.Release(ctx))
	require.ErrorIs(t, stepUntilStopped(w, b, func() {}), eoa.ErrStoreRolledBack)
}

// Many processes take turns, more than a head has marks. None of them finds
// commits missing, also those that come back after a long time.
func TestManyProcessesTakeTurns(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, 1, 60)
	workers := make([]*eoa.Executor, 40)
	for i := range workers {
		workers[i] = w.executor(t, w.store, w.chain)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i, key := range w.keys {
		w.submit(t, workers[0], request(key))
		e := workers[rng.IntN(len(workers))]
		for range 3 {
			_, err := e.Step(ctx)
			require.NoError(t, err)
			w.tick(i)
		}
		require.NoError(t, e.Release(ctx))
		inbox, err := w.store.Inbox(ctx, w.account, 1)
		require.NoError(t, err)
		require.LessOrEqual(t, len(inbox.Head.Marks), 16)
	}
	w.finish(t, workers[3])
	w.exactlyOnce(t)
	require.False(t, w.told(t, eoa.EventStopped))
}

// A store loses up to three writes at a random moment of a step, while workers
// of one or of two processes take turns. Whenever a request lands twice, the
// account has stopped.
func TestE5RollbackStorm(t *testing.T) {
	t.Parallel()
	stops, twice, runs := 0, 0, repeat.Times(30, 2000)
	for seed := repeat.First(); seed < repeat.First()+uint64(runs); seed++ {
		w, stopped := rollbackStorm(t, seed)
		if stopped {
			stops++
		}
		for key, n := range w.onChain() {
			if n > 1 {
				twice++
				require.True(t, stopped, "seed %d: %s landed %d times, and the account goes on", seed, key, n)
			}
		}
	}
	require.Greater(t, stops, runs/6)
	t.Logf("%d stops, %d requests landed twice before them", stops, twice)
}

func rollbackStorm(t *testing.T, seed uint64) (w *world, stopped bool) {
	ctx, rng := context.Background(), rand.New(rand.NewPCG(seed, 5))
	w = newWorld(t, seed, 12)
	store := newUndone(t, w)
	c := &duringSend{Chain: w.chain}
	w.cfg.MaxInFlight = 3
	if seed%3 == 0 {
		w.cfg.Witness = eoa.NewWitness() // one process
	}
	w.chain.SetPerBlock(2)
	workers := []*eoa.Executor{w.executor(t, w.store, c), w.executor(t, w.store, c)}[:1+seed%2]
	at := 4 + rng.IntN(12)
	for i := range 300 {
		if i < len(w.keys) {
			q := w.request(w.keys[i])
			q.Priority = int32(rng.IntN(3))
			w.submit(t, workers[0], q)
			store.copies = nil // replicas have the requests
		}
		if i == at {
			c.f = func() {
				if n := len(store.copies); n > 0 {
					store.promote(1 + rng.IntN(min(n, 3)))
				}
			}
		}
		if i%9 == 8 && len(workers) > 1 {
			require.NoError(t, w.store.Break(ctx, w.account))
		}
		if _, err := workers[rng.IntN(len(workers))].Step(ctx); errors.Is(err, eoa.ErrStopped) {
			return w, true
		}
		w.tick(i)
	}
	return w, false
}

// unreadable is a node that takes transactions and answers nothing else.
type unreadable struct {
	*eoatest.Chain
	down bool
}

func (c *unreadable) Look(ctx context.Context, a common.Address) (eoa.Look, error) {
	if c.down {
		return eoa.Look{}, errors.New("connection refused")
	}
	return c.Chain.Look(ctx, a)
}

// A node fails right after it took transactions, and more are pending. The
// executor waits between its questions.
func TestBackOffAfterAcceptedSends(t *testing.T) {
	w := newWorld(t, 1, 30)
	w.cfg.MaxInFlight, w.cfg.MaxUnsure = 4, 4
	w.chain.SetPerBlock(0)
	c := &unreadable{Chain: w.chain}
	e := w.executor(t, w.store, c)
	require.NoError(t, w.submitAll(e))
	_, err := e.Step(context.Background())
	require.NoError(t, err)
	c.down = true
	steps := 0
	for began := w.now; w.now.Sub(began) < time.Minute && steps < 1000; steps++ {
		next, err := e.Step(context.Background())
		require.NoError(t, err)
		if next.After(w.now) {
			w.now = next
		}
	}
	require.Less(t, steps, 100)
}
