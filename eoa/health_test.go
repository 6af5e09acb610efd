package eoa_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/kvstore"
)

// patient is a fleet on a chain with a block every two seconds. Its parts fail on
// demand.
type patient struct {
	*testing.T
	*world
	fleet *eoa.Fleet

	signer, opener, store part
}

// part returns its error from all calls, unless it is nil.
type part struct {
	mu  sync.Mutex
	err error
}

func (p *part) fail(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	return err
}

func (p *part) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *patient) open(eoa.Account) (eoa.Chain, eoa.Signer, error) {
	return p.chain, p, p.opener.failure()
}

// Sign implements eoa.Signer.
func (p *patient) Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error) {
	if err := p.signer.failure(); err != nil {
		return nil, err
	}
	return p.world.signer.Sign(ctx, a, tx)
}

// failing is the store of a patient.
type failing struct {
	eoa.Store
	p *patient
}

func (s failing) Due(ctx context.Context, now time.Time, limit int) ([]eoa.Account, error) {
	if err := s.p.store.failure(); err != nil {
		return nil, err
	}
	return s.Store.Due(ctx, now, limit)
}

func (s failing) Commit(ctx context.Context, l eoa.Lease, now time.Time, b eoa.Batch) (uint64, error) {
	if err := s.p.store.failure(); err != nil {
		return 0, err
	}
	return s.Store.Commit(ctx, l, now, b)
}

// examine runs f in a bubble, while a fleet works. All calls between two waits of f
// happen at one moment.
func examine(t *testing.T, f func(p *patient)) {
	synctest.Test(t, func(t *testing.T) {
		p := &patient{T: t, world: newWorld(t, 1, 0)}
		p.cfg.Now = nil
		cfg := eoa.DefaultFleetConfig()
		cfg.Executor = p.cfg
		var reports atomic.Int64
		cfg.Executor.Observe = func(eoa.Report) { reports.Add(1) }
		var err error
		p.fleet, err = eoa.NewFleet(cfg, failing{p.world.store, p}, p.open)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.fleet.Run(ctx) }()
		go mine(ctx, p.chain)
		p.wait(time.Millisecond) // between two ticks
		require.Empty(t, p.fleet.Health())
		f(p)
		require.Empty(t, p.fleet.Health(), "cured")
		require.NotZero(t, reports.Load(), "the host's Observe")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

func (p *patient) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// ask submits a request.
func (p *patient) ask(key string) {
	p.Helper()
	_, err := p.fleet.Submit(p.Context(), p.account, request(key))
	require.NoError(p, err)
}

// has waits, and checks that the account has one problem, of this kind, since the
// given time.
func (p *patient) has(after time.Duration, kind eoa.ProblemKind, since time.Time) eoa.Problem {
	p.Helper()
	p.wait(after)
	all := p.fleet.Health()
	require.Len(p, all, 1)
	require.Equal(p, kind, all[0].Kind)
	require.Equal(p, p.account, all[0].Account)
	require.WithinRange(p, all[0].Since, since, since.Add(5*time.Second))
	return all[0]
}

func TestHealthChain(t *testing.T) {
	examine(t, func(p *patient) {
		p.chain.SetFaults(eoatest.Faults{DropRequest: 1})
		began := time.Now()
		p.ask("a")
		first := p.has(time.Second, eoa.ProblemChain, began)
		require.Error(p, first.Err)
		require.Contains(p, first.String(), "chain since 2000-01-01T00:00:00Z: eoa: chain look failed: ")
		require.Equal(p, first.Since, p.has(time.Minute, eoa.ProblemChain, began).Since, "it has lasted")
		p.chain.SetFaults(eoatest.Faults{})
		p.wait(2 * time.Minute)
	})
}

// pays raises the balance to Need until nothing is missing. It returns how often.
func (p *patient) pays() (times int) {
	p.Helper()
	for ; times < 10; times++ {
		all := p.fleet.Health()
		short := slices.IndexFunc(all, func(x eoa.Problem) bool { return x.Kind == eoa.ProblemFunds })
		if short < 0 {
			break
		}
		p.chain.SetBalance(p.account.Address, &all[short].Need)
		p.wait(2 * time.Minute)
	}
	return times
}

// With all defaults, Health and Observe have the problem after the first step of an account without
// funds, also if the node is slow to estimate the gas or hangs.
func TestHealthFundsAtOnce(t *testing.T) {
	for name, node := range map[string]func(*eoatest.Chain) eoa.Chain{
		"a node":              func(c *eoatest.Chain) eoa.Chain { return c },
		"it estimates slowly": func(c *eoatest.Chain) eoa.Chain { return &thinking{Chain: c, takes: 5 * time.Second} },
		"it never estimates":  func(c *eoatest.Chain) eoa.Chain { return &thinking{Chain: c, takes: -1} },
	} {
		for _, ask := range []func(string) eoa.Request{request, given} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testFundsAtOnce(t, node, ask("a")) })
			})
		}
	}
}

func testFundsAtOnce(t *testing.T, node func(*eoatest.Chain) eoa.Chain, r eoa.Request) {
	w := newWorld(t, 1, 0)
	w.chain.SetBalance(w.account.Address, new(uint256.Int))
	cfg, first := eoa.DefaultFleetConfig(), make(chan eoa.Report, 1)
	cfg.Executor.Observe = func(r eoa.Report) {
		select {
		case first <- r:
		default:
		}
	}
	fleet, err := eoa.NewFleet(cfg, w.store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) { return node(w.chain), w.signer, nil })
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- fleet.Run(ctx) }()
	synctest.Wait()
	began := time.Now()
	_, err = fleet.Submit(ctx, w.account, r)
	require.NoError(t, err)
	report := <-first
	require.Equal(t, began, time.Now())
	for _, problems := range [][]eoa.Problem{report.Problems, fleet.Health()} {
		require.Len(t, problems, 1)
		require.Equal(t, eoa.ProblemFunds, problems[0].Kind)
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// Need is enough, and no less is.
func TestHealthFunds(t *testing.T) {
	examine(t, func(p *patient) {
		p.chain.SetBalance(p.account.Address, uint256.NewInt(1000))
		began := time.Now()
		q := request("a")
		q.Gas = 50_000
		_, err := p.fleet.Submit(p.Context(), p.account, q)
		require.NoError(p, err)
		p.has(time.Second, eoa.ProblemFunds, began)
		poor := p.has(time.Minute, eoa.ProblemFunds, began)
		require.Equal(p, *uint256.NewInt(1000), poor.Have)
		require.Contains(p, poor.String(), "funds since 2000-01-01T00:00:00Z: needs "+poor.Need.Dec()+" wei, has 1000")
		less := new(uint256.Int).SubUint64(&poor.Need, 1)
		p.chain.SetBalance(p.account.Address, less)
		require.Equal(p, *less, p.has(2*time.Minute, eoa.ProblemFunds, began).Have)
		require.Equal(p, 1, p.pays())
		require.Len(p, p.chain.Transactions(), 1)
	})
}

// A request whose gas is not estimated needs the gas of a transfer at least.
func TestHealthFundsBeforeTheEstimate(t *testing.T) {
	examine(t, func(p *patient) {
		p.chain.SetBalance(p.account.Address, new(uint256.Int))
		began := time.Now()
		p.ask("a")
		least := p.has(time.Second, eoa.ProblemFunds, began).Need
		p.chain.SetBalance(p.account.Address, &least)
		for range 60 {
			all := p.has(5*time.Second, eoa.ProblemFunds, began)
			require.True(p, least.Lt(&all.Need), "also while the request waits")
		}
		require.Equal(p, 1, p.pays())
		require.Len(p, p.chain.Transactions(), 1)
	})
}

// A transaction of another program had a nonce, and nodes lost it. The executor
// cannot pay for the noop that fills the gap.
func TestHealthGap(t *testing.T) {
	examine(t, func(p *patient) {
		p.chain.SetPerBlock(0)
		p.chain.Inject(p.foreign(p, 0))
		p.ask("a")
		p.wait(2 * time.Second)
		p.chain.LosePool()
		p.chain.SetBalance(p.account.Address, new(uint256.Int))
		p.wait(p.cfg.Fees.StallTimeout + time.Minute)
		all := p.fleet.Health()
		require.Len(p, all, 2)
		require.Equal(p, eoa.ProblemFunds, all[0].Kind, "nodes refuse the transaction before it is a gap")
		require.Equal(p, eoa.ProblemGap, all[1].Kind)
		require.Zero(p, all[1].Nonce)
		require.Contains(p, all[1].String(), "gap since 2000-01-01T00:01:02Z: nonce 0")
		p.chain.SetPerBlock(10)
		require.Less(p, p.pays(), 10, "for replacements and for the noop")
		p.wait(time.Minute)
		require.Len(p, p.chain.Transactions(), 2)
	})
}

func TestHealthStalled(t *testing.T) {
	examine(t, func(p *patient) {
		p.chain.SetPerBlock(0)
		p.ask("a")
		began := time.Now()
		p.wait(p.cfg.Fees.StallTimeout / 2)
		require.Empty(p, p.fleet.Health())
		stalled := p.has(p.cfg.Fees.StallTimeout, eoa.ProblemStalled, began.Add(p.cfg.Fees.StallTimeout))
		require.Zero(p, stalled.Nonce)
		p.chain.SetPerBlock(10)
		p.wait(time.Minute)
	})
}

func TestHealthSigner(t *testing.T) {
	examine(t, func(p *patient) {
		broken := p.signer.fail(errors.New("no answer from the key service"))
		p.chain.SetPerBlock(0)
		began := time.Now()
		p.ask("a")
		require.ErrorIs(p, p.has(5*time.Second, eoa.ProblemSigner, began).Err, broken)
		_ = p.signer.fail(nil)
		p.wait(p.cfg.Fees.StallTimeout / 2)
		require.Empty(p, p.fleet.Health(), "in flight")
		p.chain.SetPerBlock(10)
		p.wait(2 * time.Minute)
	})
}

// The account waits for as long as another worker holds it, and no longer.
func TestHealthLease(t *testing.T) {
	examine(t, func(p *patient) {
		_, err := p.world.store.Acquire(p.Context(), p.account, "another", time.Now(), 10*time.Second)
		require.NoError(p, err)
		began := time.Now()
		p.ask("a")
		require.ErrorIs(p, p.has(5*time.Second, eoa.ProblemLease, began).Err, eoa.ErrHeld)
		p.wait(10 * time.Second)
		require.Empty(p, p.fleet.Health(), "this fleet works on it")
		p.wait(2 * time.Minute)

		_, err = p.world.store.Acquire(p.Context(), p.account, "another", time.Now(), time.Hour)
		require.NoError(p, err)
		began = time.Now()
		p.ask("b")
		p.has(5*time.Second, eoa.ProblemLease, began)
		p.wait(p.cfg.LeaseFor) // the other one works, as far as this fleet knows
	})
}

func TestHealthOpener(t *testing.T) {
	examine(t, func(p *patient) {
		broken := p.opener.fail(errors.New("unknown account"))
		began := time.Now()
		_, err := p.fleet.Submit(p.Context(), p.account, request("a"))
		require.NoError(p, err)
		p.has(time.Second, eoa.ProblemOpener, began)
		require.ErrorIs(p, p.has(10*p.cfg.LeaseFor, eoa.ProblemOpener, began).Err, broken)
		_ = p.opener.fail(nil)
		p.wait(2 * time.Minute)
	})
}

// If the store fails, the fleet does not know which accounts have work.
func TestHealthStore(t *testing.T) {
	examine(t, func(p *patient) {
		p.ask("a")
		p.wait(time.Second)
		broken := p.store.fail(kvstore.ErrChanged)
		p.wait(10 * time.Minute)
		all := p.fleet.Health()
		require.Len(p, all, 2)
		require.Equal(p, map[eoa.Account]bool{{}: true, p.account: true}, map[eoa.Account]bool{all[0].Account: true, all[1].Account: true})
		for _, problem := range all {
			require.Equal(p, eoa.ProblemStore, problem.Kind)
			require.ErrorIs(p, problem.Err, broken)
		}
		_ = p.store.fail(nil)
		p.wait(3 * time.Minute)
	})
}
