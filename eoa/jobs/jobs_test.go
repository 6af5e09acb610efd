package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/internal/account"
	"github.com/jamq/jamq/eoa/jobs"
	"github.com/jamq/jamq/eoa/memstore"
)

const chainID = 1337

// world is one account on one chain, run by an engine of the test's own.
type world struct {
	step   jobs.Step
	chain  *eoatest.Chain
	store  eoa.Store
	signer eoa.Signer
	cfg    jobs.Config
	opened int
}

func newWorld(t *testing.T) *world {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte(t.Name())))
	require.NoError(t, err)
	account := eoa.Account{ChainID: chainID, Address: crypto.PubkeyToAddress(key.PublicKey)}
	return &world{step: jobs.Step{Account: account}, chain: eoatest.New(chainID, 1, 2), store: memstore.New(), signer: eoa.NewKeySigner(chainID, key),
		cfg: jobs.DefaultConfig()}
}

func (w *world) runner(t *testing.T) *jobs.Runner {
	r, err := jobs.New(w.cfg, w.store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) {
		w.opened++
		return w.chain, w.signer, nil
	})
	require.NoError(t, err)
	return r
}

func (w *world) submit(t *testing.T, name string) {
	_, err := w.store.Submit(context.Background(), w.step.Account, time.Now(), eoa.Request{Key: name, Data: []byte(name), Gas: 50_000})
	require.NoError(t, err)
}

// due are the accounts that the store calls due now.
func (w *world) due(t *testing.T) []eoa.Account {
	out, err := w.store.Due(context.Background(), time.Now(), 10)
	require.NoError(t, err)
	return out
}

// A request that arrives after the last step is seen by the run that refused
// its wake-up, at whatever moment it arrives before the job's end.
func TestRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		asked := 0
		err := w.runner(t).Run(t.Context(), w.step, func(ctx context.Context, next time.Time, unchanged func(context.Context) error) error {
			if asked++; asked == 1 {
				require.Zero(t, next, "nothing is open")
				w.submit(t, "late")
				err := unchanged(ctx)
				require.ErrorIs(t, err, eoa.ErrWoken)
				return err
			}
			require.NoError(t, unchanged(ctx))
			require.NotZero(t, next, "a transaction is in flight")
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 2, asked)
		require.Equal(t, 1, w.chain.Pooled())
		require.Empty(t, w.due(t), "suspended")
		time.Sleep(w.cfg.Executor.Poll)
		require.Equal(t, []eoa.Account{w.step.Account}, w.due(t), "and due when the job is")
	})
}

// A run that fails gives the account back and keeps the engine's hands on the job.
func TestRunFails(t *testing.T) {
	w := newWorld(t)
	w.submit(t, "a")
	broken := errors.New("the engine's database is away")
	err := w.runner(t).Run(t.Context(), w.step, func(context.Context, time.Time, func(context.Context) error) error { return broken })
	require.ErrorIs(t, err, broken)
	_, err = w.store.Acquire(t.Context(), w.step.Account, "another", time.Now(), time.Second)
	require.NoError(t, err, "given back")

	r, err := jobs.New(w.cfg, w.store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) { return nil, nil, broken })
	require.NoError(t, err)
	require.ErrorIs(t, r.Run(t.Context(), w.step, nil), broken)
}

// While another worker holds the account, the job is retried later.
func TestRunHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, err := w.store.Acquire(t.Context(), w.step.Account, "another", time.Now(), time.Minute)
		require.NoError(t, err)
		err = w.runner(t).Run(t.Context(), w.step, func(ctx context.Context, next time.Time, unchanged func(context.Context) error) error {
			require.Equal(t, w.cfg.Executor.LeaseFor/4, time.Until(next))
			return unchanged(ctx)
		})
		require.NoError(t, err)
	})
}

// A job that always has something to do is suspended after its slice, due at once.
func TestSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		// The chain makes no block, so the job always waits for one.
		w.cfg.Linger, w.cfg.Slice = time.Hour, time.Minute
		w.submit(t, "a")
		began := time.Now()
		err := w.runner(t).Run(t.Context(), w.step, func(ctx context.Context, next time.Time, unchanged func(context.Context) error) error {
			require.Equal(t, time.Now(), next)
			return unchanged(ctx)
		})
		require.NoError(t, err)
		require.InDelta(t, w.cfg.Slice.Seconds(), time.Since(began).Seconds(), w.cfg.Executor.Poll.Seconds())
		require.Len(t, w.due(t), 1)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, w.runner(t).Run(ctx, w.step, nil), context.DeadlineExceeded, "cut off while it waits")
		require.Len(t, w.due(t), 1, "given back")
	})
}

// engine is a minimal engine with a lock in place of a database. It has one
// job, which is absent, suspended or running.
type engine struct {
	mu      sync.Mutex
	running bool
	at      time.Time // zero: no job waits
	change  chan struct{}
}

func (e *engine) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.running { // else it is refused
		e.set(time.Now())
	}
}

func (e *engine) set(at time.Time) {
	e.at = at
	select {
	case e.change <- struct{}{}:
	default:
	}
}

func (e *engine) suspend(ctx context.Context, next time.Time, unchanged func(context.Context) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := unchanged(ctx); err != nil {
		return err
	}
	e.running = false
	e.set(next)
	return nil
}

// work runs the job whenever it is time, until ctx ends.
func (e *engine) work(ctx context.Context, run func() error) error {
	for ctx.Err() == nil {
		e.mu.Lock()
		wait, due := time.Until(e.at), !e.at.IsZero()
		e.running = due && wait <= 0
		running := e.running
		e.mu.Unlock()
		if running {
			if err := run(); err != nil && ctx.Err() == nil {
				return err
			}
			continue
		}
		var timer <-chan time.Time
		if due {
			timer = time.After(wait)
		}
		select {
		case <-timer:
		case <-e.change:
		case <-ctx.Done():
		}
	}
	return nil
}

// Requests arrive from several goroutines at any moment, each followed by a
// wake-up. No other call starts a job. All requests land once.
func TestNoLostWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, e := w.runner(t), &engine{change: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if err := e.work(ctx, func() error { return r.Run(ctx, w.step, e.suspend) }); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(time.Second)
				w.chain.Mine()
			}
		})
		const sources, each = 4, 50
		var submitting sync.WaitGroup
		for s := range sources {
			submitting.Go(func() {
				for i := range each {
					time.Sleep(time.Duration(1+(s*7919+i*104729)%20_000) * time.Millisecond)
					w.submit(t, fmt.Sprint(s, "/", i))
					e.wake()
				}
			})
		}
		submitting.Wait()
		time.Sleep(time.Minute)
		cancel()
		all.Wait()
		landed := map[string]int{}
		for _, tx := range w.chain.Transactions() {
			landed[string(tx.Data())]++
		}
		require.Len(t, landed, sources*each)
		require.Len(t, w.chain.Transactions(), sources*each)
		require.Less(t, 20, w.opened, "the job was hardly ever suspended: nothing was tested")
	})
}

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*jobs.Config){
		"Linger":   func(c *jobs.Config) { c.Linger = -1 },
		"Slice":    func(c *jobs.Config) { c.Slice = 0 },
		"Executor": func(c *jobs.Config) { c.Executor.Batch = 0 },
	} {
		cfg := jobs.DefaultConfig()
		change(&cfg)
		_, err := jobs.New(cfg, memstore.New(), func(eoa.Account) (eoa.Chain, eoa.Signer, error) { return nil, nil, nil })
		require.ErrorIs(t, err, eoa.ErrInvalidConfig, name)
	}
	_, err := jobs.New(jobs.DefaultConfig(), nil, nil)
	require.ErrorIs(t, err, eoa.ErrInvalidConfig)
	r, err := jobs.New(jobs.DefaultConfig(), memstore.New(), func(eoa.Account) (eoa.Chain, eoa.Signer, error) {
		return eoatest.New(1, 1, 1), eoa.NewKeySigner(1), nil
	})
	require.NoError(t, err)
	require.ErrorIs(t, r.Run(t.Context(), jobs.Step{Account: eoa.Account{Address: common.Address{1}}}, nil), eoa.ErrInvalidConfig)
}

// runs runs the job whenever it is due, during the given time.
func (w *world) runs(t *testing.T, span time.Duration) {
	for end := time.Now().Add(span); time.Now().Before(end); {
		err := w.runner(t).Run(t.Context(), w.step, func(ctx context.Context, next time.Time, unchanged func(context.Context) error) error {
			time.Sleep(max(time.Until(next), time.Second))
			return unchanged(ctx)
		})
		require.NoError(t, err)
	}
}

// An accepted transaction is sent again when that is due, not by each run.
// After a reorganization it is sent at once.
func TestRunsSendOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.chain.SetPerBlock(0)
		sent := 0
		w.chain.SetRefuse(func(*types.Transaction) string { sent++; return "" })
		w.submit(t, "stuck")
		again := w.cfg.Executor.Rebroadcast
		w.runs(t, again-5*time.Second)
		require.Greater(t, w.opened, 5, "runs")
		require.Equal(t, 1, sent)
		w.runs(t, 3*again)
		require.InDelta(t, 4, sent, 1)

		w.chain.SetPerBlock(1)
		w.chain.Mine()
		w.runs(t, 10*time.Second)
		w.chain.SetPerBlock(0)
		before := sent
		w.chain.Reorg(1)
		w.runs(t, 10*time.Second)
		require.Equal(t, before+1, sent)
	})
}

// A transaction that is not mined is bumped although no run lasts as long as a
// stall, and a hole is filled: the store has the time since the last progress.
func TestRunsBump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.chain.SetPerBlock(0)
		w.submit(t, "stuck")
		runs := func(span time.Duration) eoa.Record {
			w.runs(t, span)
			r, err := w.store.Get(t.Context(), w.step.Account, "stuck")
			require.NoError(t, err)
			return r
		}
		stall := w.cfg.Executor.Fees.StallTimeout
		require.Len(t, runs(stall-10*time.Second).Attempts, 1)
		require.Len(t, runs(30*time.Second).Attempts, 2)
		require.Len(t, runs(stall).Attempts, 2, "each wait is twice as long as the one before")
		require.Len(t, runs(stall).Attempts, 3)
	})
}

// The job of a stopped account gives it back, and looks again after a minute. It
// goes on when an operator has ordered that.
func TestStoppedAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t)
		w.submit(t, "a")
		l, err := w.store.Acquire(ctx, w.step.Account, "operator", time.Now(), time.Minute)
		require.NoError(t, err)
		stop := account.Stop{Cause: account.CauseRolledBack, At: time.Now(), Reason: "a test"}
		_, err = w.store.Commit(ctx, l, time.Now(), eoa.Batch{Head: account.Head{Stop: stop}})
		require.NoError(t, err)
		require.NoError(t, w.store.Break(ctx, w.step.Account))
		r := w.runner(t)
		suspend := func(wait time.Duration) jobs.Suspend {
			return func(ctx context.Context, next time.Time, unchanged func(context.Context) error) error {
				require.Equal(t, wait, time.Until(next))
				return unchanged(ctx)
			}
		}
		require.NoError(t, r.Run(ctx, w.step, suspend(time.Minute)))
		require.Zero(t, w.chain.Pooled())
		require.Empty(t, w.due(t), "given back until then")
		e, err := eoa.New(w.cfg.Executor, w.step.Account, w.store, w.chain, w.signer)
		require.NoError(t, err)
		require.NoError(t, e.Resume(ctx))
		require.NoError(t, r.Run(ctx, w.step, suspend(w.cfg.Executor.Poll)))
		require.Equal(t, 1, w.chain.Pooled())
	})
}
