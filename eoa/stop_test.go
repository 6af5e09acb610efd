package eoa_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/kvstore"
	"github.com/jamq/jamq/eoa/memstore"
	"github.com/jamq/jamq/internal/repeat"
)

// replicated is a store whose replica lags: a promotion loses the last writes.
type replicated struct {
	mu     sync.Mutex
	now    kvstore.KV
	copies []kvstore.KV // oldest first
}

func (r *replicated) kv() kvstore.KV {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *replicated) Get(ctx context.Context, keys ...[]byte) ([][]byte, error) {
	return r.kv().Get(ctx, keys...)
}

func (r *replicated) Scan(ctx context.Context, from, to []byte, limit int, f func(key, value []byte) bool) error {
	return r.kv().Scan(ctx, from, to, limit, f)
}

func (r *replicated) Write(ctx context.Context, entries []kvstore.Entry) error {
	return r.kv().Write(ctx, entries)
}

// replicate copies the store, as it will be after a promotion.
func (r *replicated) replicate(t testing.TB) {
	replica := memstore.NewKV()
	var all []kvstore.Entry
	require.NoError(t, r.Scan(context.Background(), []byte{0}, []byte{255}, math.MaxInt, func(key, value []byte) bool {
		all = append(all, kvstore.Entry{Key: key, Value: value})
		return true
	}))
	require.NoError(t, replica.Write(context.Background(), all))
	r.copies = append(r.copies, replica)
}

// promote returns to the n-th last copy.
func (r *replicated) promote(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now, r.copies = r.copies[len(r.copies)-n], nil
}

func newReplicated(w *world) *replicated {
	r := &replicated{now: memstore.NewKV()}
	w.store = kvstore.New(r)
	return r
}

// untilError runs an executor until a step returns an error other than that of a
// write that came too late.
func (w *world) untilError(t testing.TB, e *eoa.Executor) error {
	t.Helper()
	for i := range 1000 {
		_, err := e.Step(context.Background())
		if err != nil && !errors.Is(err, eoa.ErrConflict) && !errors.Is(err, eoa.ErrFenced) {
			return err
		}
		w.tick(i)
	}
	t.Fatal("no error after 1000 steps")
	return nil
}

// operate does what the documentation of Resume tells an operator to do.
func (w *world) operate(t testing.TB, e *eoa.Executor) {
	t.Helper()
	ctx := context.Background()
	for range 50 { // pools become empty
		w.chain.Mine()
	}
	landed := map[string]bool{}
	for _, tx := range w.chain.Transactions() {
		landed[string(tx.Data())] = true
	}
	var kept []string
	for _, key := range w.keys {
		r, err := w.store.Get(ctx, w.account, key)
		switch {
		case errors.Is(err, eoa.ErrUnknownRequest) && !landed[key]:
			w.submit(t, e, w.request(key))
			kept = append(kept, key)
		case errors.Is(err, eoa.ErrUnknownRequest):
		case r.State == eoa.Pending && landed[key]:
			require.NoError(t, err)
			require.NoError(t, e.Cancel(ctx, key))
		default:
			require.NoError(t, err)
			kept = append(kept, key)
		}
	}
	w.keys = kept
	require.NoError(t, e.Resume(ctx))
}

// A store goes back in time while the executor works. The account stops with
// the reason, and sends nothing. After the operator has compared it with the
// chain, every request lands exactly once.
func TestE1NoDoubleSpendRolledBack(t *testing.T) {
	t.Parallel()
	stops, others := 0, 0
	for seed := repeat.First(); seed < repeat.First()+uint64(repeat.Times(24, 1000)); seed++ {
		rng := rand.New(rand.NewPCG(seed, 11))
		w := newWorld(t, seed, 16)
		store := newReplicated(w)
		w.cfg.Witness, w.cfg.MaxInFlight, w.cfg.Exclusive = eoa.NewWitness(), 6, seed%2 == 1
		w.chain.SetPerBlock(3)
		all := w.keys
		e := w.executor(t, w.store, w.chain)
		at, again := 1+rng.IntN(len(all)), w.executor(t, w.store, w.chain)
		for i := range at {
			store.replicate(t)
			w.submit(t, e, w.request(all[i]))
			_, err := e.Step(context.Background())
			require.NoError(t, err)
			w.tick(i)
		}
		w.keys = all[:at]
		store.promote(1 + rng.IntN(min(at, 3)))
		if seed%4 > 1 { // another worker of the process goes on
			require.NoError(t, w.store.Break(context.Background(), w.account))
			e, again = again, e
			others++
		}
		err := w.untilError(t, e)
		require.ErrorIs(t, err, eoa.ErrStopped)
		require.ErrorIs(t, err, eoa.ErrStoreRolledBack)
		require.ErrorIs(t, e.Stats().Stopped, eoa.ErrStoreRolledBack)
		require.True(t, w.told(t, eoa.EventStopped))
		pooled := w.chain.Pooled()
		_, err = e.Step(context.Background())
		require.ErrorIs(t, err, eoa.ErrStoreRolledBack, "it stays stopped")
		require.Equal(t, pooled, w.chain.Pooled())
		stops++
		w.operate(t, e)
		_, err = e.Step(context.Background())
		require.NoError(t, err)
		w.finish(t, e, again)
		require.True(t, w.told(t, eoa.EventResumed))
		landed := map[string]int{}
		for _, tx := range w.chain.Transactions() {
			landed[string(tx.Data())]++
		}
		for _, key := range all[:at] {
			require.Equal(t, 1, landed[key], "seed %d: %s", seed, key)
		}
	}
	require.Positive(t, stops*others)
}

// No process remembers the writes that the store lost. An exclusive account
// stops because of transactions on the chain that the store does not know.
func TestExclusiveAccountStopsAfterRollback(t *testing.T) {
	for name, c := range map[string]struct{ bumps, mined bool }{
		"a new transaction": {mined: true}, "a new transaction in a pool": {}, "a dearer copy": {bumps: true, mined: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 0)
			store := newReplicated(w)
			w.cfg.Exclusive, w.cfg.Fees.StallTimeout = true, 5*time.Second
			w.chain.SetPerBlock(0)
			e := w.executor(t, w.store, w.chain)
			w.submit(t, e, request("a"))
			w.steps(t, e, 1)
			store.replicate(t)
			if !c.bumps {
				w.submit(t, e, request("b"))
			}
			for i := 0; !c.bumps && w.chain.Pooled() < 2 || c.bumps && w.get(t, "a").Bumps == 0; i++ {
				require.Less(t, i, 100)
				w.steps(t, e, 1)
			}
			store.promote(1)
			if c.mined {
				w.chain.SetPerBlock(10)
				w.chain.Mine()
			}
			require.NoError(t, w.store.Break(context.Background(), w.account))
			e = w.executor(t, w.store, w.chain) // of a process that has seen nothing
			err := w.untilError(t, e)
			require.ErrorIs(t, err, eoa.ErrStoreRolledBack)
			require.True(t, w.told(t, eoa.EventStopped))
			require.False(t, w.told(t, eoa.EventSuperseded))

			w.chain.SetPerBlock(10)
			require.NoError(t, e.Resume(context.Background()))
			w.submit(t, e, request("c"))
			w.steps(t, e, 90)
			require.True(t, w.get(t, "a").State.Terminal())
			require.Equal(t, c.bumps, w.get(t, "a").State == eoa.Superseded)
			require.Equal(t, eoa.Final, w.get(t, "c").State)
		})
	}
}

// The node is on a chain that started over. The account stops with the reason.
// After the operator has let it go on and has reset the nonces, it works there.
func TestOtherChain(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, 1, 0)
	e := w.executor(t, w.store, w.chain)
	for _, key := range []string{"a", "b"} {
		w.submit(t, e, request(key))
	}
	w.steps(t, e, 40)
	require.Equal(t, eoa.Final, w.get(t, "b").State)
	w.chain.SetPerBlock(0)
	w.submit(t, e, request("in flight"))
	w.steps(t, e, 3)

	w.chain = eoatest.New(testChain, 2, 7)
	e = w.executor(t, w.store, w.chain)
	require.NoError(t, w.store.Break(ctx, w.account))
	began := w.now
	err := w.untilError(t, e)
	require.ErrorIs(t, err, eoa.ErrStopped)
	require.ErrorIs(t, err, eoa.ErrOtherChain)
	require.Less(t, w.now.Sub(began), 2*w.cfg.Fees.StallTimeout)
	require.True(t, w.told(t, eoa.EventStopped))

	require.NoError(t, e.Resume(ctx))
	require.NoError(t, e.ResetNonce(ctx, true))
	w.submit(t, e, request("c"))
	w.steps(t, e, 200)
	require.Equal(t, eoa.Superseded, w.get(t, "in flight").State)
	require.Equal(t, eoa.Final, w.get(t, "c").State)
	require.Zero(t, w.get(t, "c").Nonce)
}

// A node that has not caught up for a while stops nothing, however far it is
// behind.
func TestSyncingNodeIsNoOtherChain(t *testing.T) {
	w := newWorld(t, 1, 1)
	c := &behind{Chain: w.chain}
	e := w.executor(t, w.store, c)
	require.NoError(t, w.submitAll(e))
	w.steps(t, e, 40)
	require.Equal(t, eoa.Final, w.get(t, w.keys[0]).State)
	w.submit(t, e, request("b"))
	c.lag = 1000
	for began := w.now; w.now.Sub(began) < w.cfg.Fees.StallTimeout-10*time.Second; {
		w.step(t, e)
	}
	c.lag = 0
	w.steps(t, e, 60)
	require.Equal(t, eoa.Final, w.get(t, "b").State)
	require.False(t, w.told(t, eoa.EventStopped))
}

// A node that has not caught up stops nothing if it was asked only before and after
// an outage, or before and after a pause of the executor.
func TestOutageIsNoOtherChain(t *testing.T) {
	for name, outage := range map[string]bool{"outage": true, "pause": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 1)
			c := &behind{Chain: w.chain}
			e := w.executor(t, w.store, c)
			require.NoError(t, w.submitAll(e))
			w.steps(t, e, 40)
			require.Equal(t, eoa.Final, w.get(t, w.keys[0]).State)
			w.submit(t, e, request("b"))
			for range 2 {
				c.lag = 1000
				w.step(t, e)
				w.chain.SetFaults(eoatest.Faults{DropRequest: 1})
				for began := w.now; w.now.Sub(began) < 2*w.cfg.Fees.StallTimeout; {
					if outage {
						w.step(t, e)
					} else {
						w.tick(0)
					}
				}
				w.chain.SetFaults(eoatest.Faults{})
				require.NoError(t, e.Release(context.Background()))
				e = w.executor(t, w.store, c) // of another process
			}
			w.step(t, e)
			c.lag = 0
			w.steps(t, e, 60)
			require.Equal(t, eoa.Final, w.get(t, "b").State)
			require.False(t, w.told(t, eoa.EventStopped))
		})
	}
}

// An account that is not stopped takes no notice of Resume.
func TestResumeOfARunningAccount(t *testing.T) {
	w := newWorld(t, 1, 3)
	e := w.executor(t, w.store, w.chain)
	require.NoError(t, w.submitAll(e))
	w.steps(t, e, 1)
	require.NoError(t, e.Resume(context.Background()))
	w.finish(t, e)
	w.exactlyOnce(t)
	require.False(t, w.told(t, eoa.EventResumed))
}

// The lost writes include the lease, so that a worker of another process, which
// remembers nothing, holds the account. The worker that remembers takes it away.
func TestRollbackUnderAnotherHolder(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, 1, 0)
	store := newReplicated(w)
	w.chain.SetPerBlock(0)
	e, other := w.executor(t, w.store, w.chain), w.executor(t, w.store, w.chain)
	store.replicate(t)
	w.submit(t, e, request("a"))
	w.steps(t, e, 1)
	require.Equal(t, 1, w.chain.Pooled())
	store.promote(1)
	w.submit(t, other, request("b"))
	_, err := w.store.Acquire(ctx, w.account, "other", w.now, time.Hour)
	require.NoError(t, err)
	require.ErrorIs(t, w.untilError(t, e), eoa.ErrStoreRolledBack)
	require.Equal(t, eoa.Pending, w.get(t, "b").State)
	require.NoError(t, e.Release(ctx))
	_, err = other.Step(ctx)
	require.ErrorIs(t, err, eoa.ErrStopped)
}

// A fleet keeps a stopped account, reports it, and sends nothing. It goes on when another
// process has ordered that.
func TestFleetKeepsAStoppedAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := newWorld(t, 1, 0)
		store := newReplicated(w)
		cfg := eoa.DefaultFleetConfig()
		cfg.Executor = w.cfg
		cfg.Executor.Now = nil
		f, err := eoa.NewFleet(cfg, w.store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) { return w.chain, w.signer, nil })
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		submit := func(key string) {
			_, err := f.Submit(ctx, w.account, request(key))
			require.NoError(t, err)
			for range 4 {
				time.Sleep(cfg.Executor.Poll)
				w.chain.Mine()
			}
		}
		submit("a")
		synctest.Wait() // between two steps
		store.replicate(t)
		submit("b")
		synctest.Wait()
		require.Empty(t, f.Health())
		store.promote(1)
		submit("c")
		stopped := time.Now()
		time.Sleep(time.Hour)
		require.True(t, w.told(t, eoa.EventStopped))
		health := f.Health()
		require.Len(t, health, 1)
		require.Equal(t, eoa.ProblemStopped, health[0].Kind)
		require.ErrorIs(t, health[0].Err, eoa.ErrStoreRolledBack)
		require.False(t, health[0].Since.After(stopped))
		require.Equal(t, eoa.Pending, w.get(t, "c").State)
		require.Equal(t, 1, f.Busy())
		require.NoError(t, w.executor(t, w.store, w.chain).Resume(ctx))
		time.Sleep(cfg.Executor.LeaseFor)
		w.chain.Mine()
		time.Sleep(5 * cfg.Executor.Poll)
		require.GreaterOrEqual(t, w.get(t, "c").State, eoa.Mined)
		require.Empty(t, f.Health())
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// A forced reset gives up transactions that are still in a pool. They do not
// stop an exclusive account, neither in the pool nor in a block.
func TestExclusiveAccountAfterForcedReset(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.cfg.Exclusive = true
	w.chain.SetPerBlock(0)
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, request("given up"))
	w.steps(t, e, 2)
	require.NoError(t, e.ResetNonce(context.Background(), true))
	w.steps(t, e, 10)
	require.Equal(t, eoa.Superseded, w.get(t, "given up").State)
	require.Equal(t, 1, w.chain.Pooled())
	w.chain.SetPerBlock(10)
	w.submit(t, e, request("next"))
	w.steps(t, e, 100)
	require.Equal(t, eoa.Superseded, w.get(t, "next").State, "by the one that was given up")
	w.submit(t, e, request("last"))
	w.steps(t, e, 60)
	require.Equal(t, eoa.Final, w.get(t, "last").State)
	require.False(t, w.told(t, eoa.EventStopped))
}

// The store has lost an account completely, and no process remembers it. An
// exclusive account is not taken for a new one, because it has transactions. An
// operator can accept those that the account sent before it came to the store.
func TestExclusiveAccountStopsAfterTotalLoss(t *testing.T) {
	for name, c := range map[string]struct{ mayLose, shared, exclusive, stops bool }{
		"exclusive":                  {exclusive: true, stops: true},
		"a store that may lose":      {mayLose: true, stops: true},
		"with another program":       {mayLose: true, shared: true},
		"a store that loses nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 0)
			empty := func() eoa.Store { return kvstore.New(forgetful{memstore.NewKV(), c.mayLose}) }
			w.store, w.cfg.Exclusive, w.cfg.SharedKey = empty(), c.exclusive, c.shared
			e := w.executor(t, w.store, w.chain)
			w.submit(t, e, request("invoice 17"))
			w.steps(t, e, 40)
			require.Equal(t, eoa.Final, w.get(t, "invoice 17").State)

			w.store = empty()
			e = w.executor(t, w.store, w.chain) // of a new process
			w.submit(t, e, request("invoice 17"))
			if !c.stops {
				w.steps(t, e, 40)
				require.Len(t, w.chain.Transactions(), 2, "as documented")
				return
			}
			err := w.untilError(t, e)
			require.ErrorIs(t, err, eoa.ErrStoreRolledBack)
			w.chain.Mine()
			require.Len(t, w.chain.Transactions(), 1)
			require.NoError(t, e.Cancel(context.Background(), "invoice 17"))
			require.NoError(t, e.Resume(context.Background()))
			w.submit(t, e, request("invoice 18"))
			w.steps(t, e, 40)
			require.Equal(t, eoa.Final, w.get(t, "invoice 18").State)
			require.Equal(t, uint64(1), w.get(t, "invoice 18").Nonce)
		})
	}
}

// forgetful is a KV that may lose acknowledged writes.
type forgetful struct {
	kvstore.KV
	may bool
}

func (f forgetful) MayLose() bool { return f.may }

// An account that has sent transactions without the store can be accepted before
// it is used. Later transactions from elsewhere stop it.
func TestResumeAcceptsAnAccountWithTransactions(t *testing.T) {
	w := newWorld(t, 1, 0)
	old := w.executor(t, memstore.New(), w.chain)
	w.cfg.Exclusive = true
	w.submit(t, old, request("elsewhere"))
	w.steps(t, old, 10)
	require.Len(t, w.chain.Transactions(), 1)

	e := w.executor(t, w.store, w.chain)
	require.NoError(t, e.Resume(context.Background()))
	w.submit(t, e, request("here"))
	w.steps(t, e, 40)
	require.Equal(t, eoa.Final, w.get(t, "here").State)
	w.submit(t, old, request("elsewhere again"))
	w.steps(t, old, 10)
	require.ErrorIs(t, w.untilError(t, e), eoa.ErrStoreRolledBack)
}
