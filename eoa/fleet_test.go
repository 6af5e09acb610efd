package eoa_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/memstore"
)

// Run sends what comes, waits for blocks, and gives the account back.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 20)
		w.cfg.Now = nil
		e := w.executor(t, w.store, w.chain)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- e.Run(ctx) }()
		go mine(ctx, w.chain)
		require.NoError(t, w.submitAll(e))
		for _, key := range w.keys {
			r, err := e.Wait(ctx, key, eoa.Final)
			require.NoError(t, err)
			require.Equal(t, eoa.Final, r.State)
		}
		w.exactlyOnce(t)
		time.Sleep(time.Minute)
		require.False(t, e.Stats().Held, "idle")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

func mine(ctx context.Context, c *eoatest.Chain) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
			c.Mine()
		}
	}
}

// Two fleets share a store. One dies with its accounts in the middle; the other takes them over.
func TestFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const accounts, each = 12, 6
		worlds := map[eoa.Account]*world{}
		store := memstore.New()
		chain := eoatest.New(testChain, 1, 7)
		for i := range uint64(accounts) {
			w := newWorld(t, i, 0)
			w.store, w.chain = store, chain
			worlds[w.account] = w
		}
		cfg := eoa.DefaultFleetConfig()
		cfg.Workers = 3
		open := func(a eoa.Account) (eoa.Chain, eoa.Signer, error) { return chain, worlds[a].signer, nil }
		ctx, cancel := context.WithCancel(t.Context())
		var fleets []*eoa.Fleet
		var ends []context.CancelFunc
		ended := make(chan error, 2)
		for range 2 {
			f, err := eoa.NewFleet(cfg, store, open)
			require.NoError(t, err)
			one, end := context.WithCancel(ctx)
			fleets, ends = append(fleets, f), append(ends, end)
			go func() { ended <- f.Run(one) }()
		}
		defer ends[1]()
		go mine(ctx, chain)
		n := 0
		for a := range worlds {
			for i := range each {
				n++
				_, err := fleets[n%2].Submit(ctx, a, eoa.Request{Key: fmt.Sprint(i), Data: fmt.Appendf(nil, "%v %d", a, i), Gas: 60_000})
				require.NoError(t, err)
			}
		}
		time.Sleep(5 * time.Second)
		ends[0]()
		require.ErrorIs(t, <-ended, context.Canceled)
		time.Sleep(5 * time.Minute)
		fleets[1].NewHead(testChain)
		landed := map[string]int{}
		for _, tx := range chain.Transactions() {
			landed[string(tx.Data())]++
		}
		require.Len(t, landed, accounts*each)
		require.Len(t, chain.Transactions(), accounts*each)
		require.Zero(t, fleets[1].Busy(), "all idle")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// An event that is refused is delivered again, in order. An accepted one is
// not.
func TestDeliver(t *testing.T) {
	w := newWorld(t, 1, 3)
	e := w.executor(t, w.store, w.chain)
	require.NoError(t, w.submitAll(e))
	w.finish(t, e)
	busy := errors.New("busy")
	var got []uint64
	for len(got) < 5 {
		_, err := eoa.Deliver(context.Background(), w.store, w.account, 100, func(_ context.Context, e eoa.Event) error {
			if len(got)%2 == 0 && (len(got) == 0 || got[len(got)-1] != 0) {
				got = append(got, 0)
				return busy
			}
			require.Equal(t, w.account, e.Account)
			got = append(got, e.Seq)
			return nil
		})
		if err != nil {
			require.ErrorIs(t, err, busy)
		}
	}
	want := uint64(0)
	for _, seq := range got {
		if seq != 0 {
			want++
			require.Equal(t, want, seq)
		}
	}
	left, err := w.store.Events(context.Background(), w.account, 0, 100)
	require.NoError(t, err)
	if len(left) > 0 {
		require.Equal(t, want+1, left[0].Seq)
	}
}

// Undelivered lists the accounts with events that no Deliver has taken.
func TestUndelivered(t *testing.T) {
	w := newWorld(t, 1, 3)
	f, err := eoa.NewFleet(eoa.DefaultFleetConfig(), w.store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) { return w.chain, w.signer, nil })
	require.NoError(t, err)
	undelivered := func(after eoa.Account) []eoa.Account {
		all, err := f.Undelivered(t.Context(), after, 10)
		require.NoError(t, err)
		return all
	}
	deliver := func(limit int, answer error) {
		_, err := eoa.Deliver(t.Context(), w.store, w.account, limit, func(context.Context, eoa.Event) error { return answer })
		require.ErrorIs(t, err, answer)
	}
	e := w.executor(t, w.store, w.chain)
	require.NoError(t, w.submitAll(e))
	require.Empty(t, undelivered(eoa.Account{}))
	w.finish(t, e)
	require.Equal(t, []eoa.Account{w.account}, undelivered(eoa.Account{}))
	require.Empty(t, undelivered(w.account), "none above")
	busy := errors.New("busy")
	deliver(100, busy)
	deliver(1, nil)
	require.Equal(t, []eoa.Account{w.account}, undelivered(eoa.Account{}))
	deliver(100, nil)
	require.Empty(t, undelivered(eoa.Account{}))
}

// silent is a node that takes what it is sent and never answers.
type silent struct{ *eoatest.Chain }

func (c silent) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	_ = c.Chain.Send(ctx, raws)
	<-ctx.Done()
	return make([]eoa.Sent, len(raws))
}

// A node that never answers does not keep the executor waiting without end.
func TestSilentNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 5)
		w.cfg.Now = nil
		e := w.executor(t, w.store, silent{w.chain})
		require.NoError(t, w.submitAll(e))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- e.Run(ctx) }()
		go mine(ctx, w.chain)
		time.Sleep(5 * time.Minute)
		w.exactlyOnce(t)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// A request that is submitted while a fleet ends is stored. It starts nothing that outlives the
// fleet.
func TestFleetEnds(t *testing.T) {
	for end := range int64(50) { // the number of submissions before the end
		w := newWorld(t, 1, 0)
		w.cfg.Now = nil
		var open, submitted atomic.Int64
		cfg := eoa.DefaultFleetConfig()
		f, err := eoa.NewFleet(cfg, w.store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) { open.Add(1); return w.chain, w.signer, nil })
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for k := range 20 {
					if _, err := f.Submit(context.Background(), w.account, eoa.Request{Key: fmt.Sprint(i, "/", k), To: &w.account.Address}); err != nil {
						t.Error(err)
					}
					if submitted.Add(1) == end+1 {
						cancel()
					}
				}
			})
		}
		require.ErrorIs(t, f.Run(ctx), context.Canceled)
		before := open.Load()
		all.Wait()
		_, err = f.Submit(context.Background(), w.account, eoa.Request{Key: "late", To: &w.account.Address})
		require.NoError(t, err)
		require.Equal(t, before, open.Load(), "something was started after the end")
	}
}

// Pick returns the first account below the target, and the one with the least
// work if there is none.
func TestPick(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.chain.SetPerBlock(0)
	cfg := eoa.DefaultFleetConfig()
	cfg.Target = 3
	f, err := eoa.NewFleet(cfg, w.store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) { return w.chain, w.signer, nil })
	require.NoError(t, err)
	ctx, e := context.Background(), w.executor(t, w.store, w.chain)
	other := eoa.Account{ChainID: testChain, Address: common.Address{9}}
	pick := func() eoa.Account {
		a, err := f.Pick(ctx, w.account, other)
		require.NoError(t, err)
		return a
	}
	for i := range 3 {
		require.Equal(t, w.account, pick())
		w.submit(t, e, request(fmt.Sprint(i)))
		_, err := e.Step(ctx) // in-flight requests count too
		require.NoError(t, err)
	}
	require.Equal(t, other, pick())
	for i := range 4 {
		_, err := w.store.Submit(ctx, other, w.now, request(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	require.Equal(t, w.account, pick(), "3 is less than 4")
	w.chain.SetPerBlock(10)
	w.steps(t, e, 10)
	require.Equal(t, w.account, pick(), "all are mined")
	_, err = f.Pick(ctx)
	require.ErrorIs(t, err, eoa.ErrInvalidRequest)
}

// An account whose signer takes long to reach delays no other account.
func TestSlowOpeningDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 0)
		cfg := eoa.DefaultFleetConfig()
		cfg.Executor = w.cfg
		cfg.Executor.Now = nil
		slow, third := eoa.Account{ChainID: testChain, Address: common.Address{1}}, eoa.Account{ChainID: testChain, Address: common.Address{3}}
		var opened atomic.Int64
		f, err := eoa.NewFleet(cfg, w.store, func(a eoa.Account) (eoa.Chain, eoa.Signer, error) {
			if a == slow {
				opened.Add(1)
				time.Sleep(time.Minute)
			}
			return w.chain, w.signer, nil
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		time.Sleep(time.Millisecond)
		_, err = w.store.Submit(ctx, slow, time.Now(), request("slow")) // by another process
		require.NoError(t, err)
		time.Sleep(2 * cfg.Interval) // it is being opened
		for _, a := range []eoa.Account{slow, w.account} {
			began := time.Now()
			_, err = f.Submit(ctx, a, request("a"))
			require.NoError(t, err)
			require.Zero(t, time.Since(began))
		}
		synctest.Wait()
		require.Equal(t, 1, f.Busy())
		_, err = w.store.Submit(ctx, third, time.Now(), request("third"))
		require.NoError(t, err)
		time.Sleep(2 * cfg.Interval)
		require.Equal(t, 2, f.Busy())
		require.EqualValues(t, 1, opened.Load())
		time.Sleep(2 * time.Minute)
		require.Equal(t, 3, f.Busy())
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// Accounts that cannot be opened, or whose opener hangs, stay due. However many
// they are, the fleet also takes the accounts that became due later.
func TestAccountsThatCannotBeOpenedStarveNoOther(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, 0)
			cfg := eoa.DefaultFleetConfig()
			cfg.Executor = w.cfg
			cfg.Executor.Now = nil
			ctx, cancel := context.WithCancel(t.Context())
			for i := range 600 {
				a := eoa.Account{ChainID: testChain + 1, Address: common.Address{1, byte(i >> 8), byte(i)}}
				_, err := w.store.Submit(ctx, a, time.Now(), request("a"))
				require.NoError(t, err)
			}
			time.Sleep(time.Second)
			_, err := w.store.Submit(ctx, w.account, time.Now(), request("later"))
			require.NoError(t, err)
			f, err := eoa.NewFleet(cfg, w.store, func(a eoa.Account) (eoa.Chain, eoa.Signer, error) {
				if a == w.account {
					return w.chain, w.signer, nil
				}
				if hangs {
					<-ctx.Done()
				}
				return nil, nil, errors.New("no node")
			})
			require.NoError(t, err)
			ended := make(chan error, 1)
			go func() { ended <- f.Run(ctx) }()
			go mine(ctx, w.chain)
			time.Sleep(time.Minute)
			require.Equal(t, eoa.Final, w.get(t, "later").State)
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
		})
	}
}

// A fleet ends when the opener has returned, because the host closes afterwards what an opener
// needs. A submission does not wait for it.
func TestFleetWaitsForItsOpener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 0)
		w.cfg.Now = nil
		gate := make(chan struct{})
		f, err := eoa.NewFleet(eoa.DefaultFleetConfig(), w.store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) {
			<-gate
			return w.chain, w.signer, nil
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		synctest.Wait() // no account is due
		_, err = f.Submit(context.Background(), w.account, eoa.Request{Key: "a", To: &w.account.Address})
		require.NoError(t, err)
		synctest.Wait()
		cancel()
		synctest.Wait()
		require.Empty(t, ended)
		close(gate)
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}
