package eoa_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// panicking is the code of a host of which each call panics at first.
type panicking struct {
	w *world

	mu    sync.Mutex
	calls map[string]int
}

// try panics twice for each name.
func (p *panicking) try(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[name]++; p.calls[name] <= 2 {
		panic(name)
	}
}

func (p *panicking) open(eoa.Account) (eoa.Chain, eoa.Signer, error) {
	p.try("open")
	return p, p, nil
}

func (p *panicking) Look(ctx context.Context, a common.Address) (eoa.Look, error) {
	p.try("look")
	return p.w.chain.Look(ctx, a)
}

func (p *panicking) Ask(ctx context.Context, q eoa.Questions) (eoa.Answers, error) {
	p.try("ask")
	return p.w.chain.Ask(ctx, q)
}

func (p *panicking) Estimate(ctx context.Context, a common.Address, requests []*eoa.Request) []eoa.Estimated {
	p.try("estimate")
	return p.w.chain.Estimate(ctx, a, requests)
}

func (p *panicking) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	p.try("send")
	return p.w.chain.Send(ctx, raws)
}

func (p *panicking) Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error) {
	p.try("sign")
	return p.w.signer.Sign(ctx, a, tx)
}

// fleetOf runs a fleet for an opener until the end of the test.
func (w *world) fleetOf(t *testing.T, open eoa.Opener) *eoa.Fleet {
	cfg := eoa.DefaultFleetConfig()
	cfg.Executor = w.cfg
	cfg.Executor.Now = nil
	f, err := eoa.NewFleet(cfg, w.store, open)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = f.Run(ctx) // ends with the test
	}()
	t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
	return f
}

// Each call of the host's code panics twice. Health has the panic of the opener,
// and all requests are executed once.
func TestPanicsOfTheHostCostTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 0)
		p := &panicking{w: w, calls: map[string]int{}}
		f := w.fleetOf(t, p.open)
		_, err := f.Submit(t.Context(), w.account, request("a"), request("b"))
		require.NoError(t, err)
		synctest.Wait()
		health := f.Health()
		require.Len(t, health, 1)
		require.Equal(t, eoa.ProblemOpener, health[0].Kind)
		require.ErrorContains(t, health[0].Err, "panic: open")
		w.keys = []string{"a", "b"}
		for i := 0; !w.done(t); i++ {
			require.Less(t, i, 1000)
			time.Sleep(2 * time.Second)
			w.chain.Mine()
		}
		w.exactlyOnce(t)
		for _, name := range []string{"open", "look", "ask", "estimate", "send", "sign"} {
			require.Greater(t, p.calls[name], 2, name)
		}
	})
}

// An opener that does not return is a problem, and another account goes on.
func TestHealthOpenerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 0)
		hung, release := eoa.Account{ChainID: testChain, Address: common.Address{1}}, make(chan struct{})
		f := w.fleetOf(t, func(a eoa.Account) (eoa.Chain, eoa.Signer, error) {
			if a == hung {
				<-release
			}
			return w.chain, w.signer, nil
		})
		for _, a := range []eoa.Account{hung, w.account} {
			_, err := f.Submit(t.Context(), a, request("b"))
			require.NoError(t, err)
		}
		time.Sleep(w.cfg.Timeout + time.Second)
		health := f.Health()
		require.True(t, slices.ContainsFunc(health, func(p eoa.Problem) bool { return p.Account == hung && p.Kind == eoa.ProblemOpener }), "%v", health)
		w.chain.Mine()
		time.Sleep(w.cfg.Poll)
		require.GreaterOrEqual(t, w.get(t, "b").State, eoa.Mined)
		close(release)
	})
}
