package ethchain

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/memstore"
	"github.com/jamq/jamq/internal/repeat"
)

// An endpoint that hangs, and is not the current one, delays the looks that ask
// all endpoints by a moment only, and seldom.
func TestHangingEndpointDelaysNoLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, j := joined(t, 3)
		all[1].set(func(p *provider) { p.hangs = true })
		var waited time.Duration
		for began := time.Now(); time.Since(began) < 5*time.Minute; time.Sleep(3 * time.Second) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			asked := time.Now()
			_, err := j.Look(ctx, common.Address{1})
			require.NoError(t, err)
			cancel()
			waited += time.Since(asked)
		}
		require.LessOrEqual(t, waited, 20*time.Second)
		require.Positive(t, j.Endpoints()[1].Failures)
		require.Greater(t, all[2].looked, 10)
	})
}

// A slow endpoint that is right is found, although another one answers at once.
func TestSlowEndpointIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain := eoatest.New(testChain, 1, 7)
		j, err := Join(still(chain), slow{chain})
		require.NoError(t, err)
		var l eoa.Look
		for range 30 {
			time.Sleep(time.Second)
			chain.Mine()
			l, err = j.Look(t.Context(), common.Address{1})
			require.NoError(t, err)
		}
		require.Greater(t, l.Number, uint64(20))
		require.Zero(t, j.Endpoints()[1].Failures)
	})
}

// slow is an endpoint whose looks take a second.
type slow struct{ eoa.BlobChain }

func (s slow) Look(ctx context.Context, a common.Address) (eoa.Look, error) {
	time.Sleep(time.Second)
	return s.BlobChain.Look(ctx, a)
}

func (s slow) LookBlobs(ctx context.Context, a common.Address) (eoa.Look, error) {
	return s.Look(ctx, a)
}

// However many accounts there are, the endpoints that are not needed are asked
// at a bounded rate.
func TestSurveysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const accounts, minutes = 300, 2
		all, j := joined(t, 2)
		for range minutes * 60 {
			for a := range accounts {
				_, err := j.Look(t.Context(), common.BigToAddress(common.Big1.SetUint64(uint64(a))))
				require.NoError(t, err)
			}
			time.Sleep(time.Second)
		}
		require.LessOrEqual(t, all[1].looked, minutes*60+1)
		require.GreaterOrEqual(t, all[1].looked, minutes*6)
	})
}

// An endpoint stands still on a fork that the chain has left, with transactions
// that are neither on the chain nor in its pool. They are sent again.
func TestAbandonedForkHoldsNothingUp(t *testing.T) {
	for _, first := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			chain := eoatest.New(testChain, 1, 7)
			a := testAccount(t)
			chain.SetBalance(a.Address, uint256.NewInt(1e18))
			var kept *eoa.Look
			ends := []eoa.BlobChain{chain, chain}
			ends[first] = altered{chain, func(l *eoa.Look) {
				if kept == nil && l.Latest > 0 {
					forked := *l
					kept = &forked
					chain.Reorg(7)
					chain.LosePool()
				}
				if kept != nil {
					*l = *kept
				}
			}}
			sendThrough(t, chain, ends, false)
			require.NotNil(t, kept)
		})
	}
}

// A node on whose chain a nonce is free does not say that no transaction used it.
// The request would be executed once more, with another nonce.
func TestUnusedNonceIsNoUse(t *testing.T) {
	s := newSetup(t, 1)
	for range 20 {
		s.node.chain.Mine()
	}
	for _, used := range []eoa.UsedNonce{{UpTo: 15}, {After: 3, UpTo: 15}, {Nonce: 7, After: 14, UpTo: 15}} {
		chain, err := New(s.client, Options{})
		require.NoError(t, err)
		answers, err := chain.Ask(t.Context(), eoa.Questions{Account: s.account.Address, Nonces: []eoa.UsedNonce{used}})
		require.NoError(t, err)
		require.Empty(t, answers.Users)
	}
}

// A node on another chain refuses for reasons that do not count beside those of
// the others. A transaction that it accepts may be on a node.
func TestDoubtedRefusalsDoNotCount(t *testing.T) {
	const price, funds = "transaction underpriced", "insufficient funds"
	for _, c := range []struct {
		trusted, doubted string
		result           eoa.SendResult
		reason           eoa.Reason
	}{
		{price, funds, eoa.Rejected, eoa.ReasonUnderpriced},
		{price, "nonce too low", eoa.Rejected, eoa.ReasonUnderpriced},
		{price, "already known", eoa.Accepted, eoa.ReasonKnown},
		{"already known", funds, eoa.Accepted, eoa.ReasonKnown},
		{"no such text", funds, eoa.Unknown, eoa.ReasonNone},
	} {
		all, j := joined(t, 2)
		all[0].says, all[1].says = c.trusted, c.doubted
		j.ends[1].doubt, j.ends[1].doubtUntil = errDown, time.Now().Add(time.Hour)
		got := j.Send(t.Context(), [][]byte{{1}})[0]
		require.Equal(t, []any{c.result, c.reason}, []any{got.Result, got.Reason}, "%+v", c)
	}
}

// liar is an endpoint that is wrong for a while, in ways that look healthy.
type liar struct {
	provider
	fork *eoatest.Chain
	lie  string
	kept eoa.Look
}

func (p *liar) Look(ctx context.Context, a common.Address) (l eoa.Look, err error) {
	if l, err = p.provider.Look(ctx, a); err != nil {
		return l, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.lie {
	case "still":
		if p.kept.BaseFee.IsZero() {
			p.kept = l
		}
		return p.kept, nil
	case "no nonce":
		l.Latest, l.Final, l.Pending, l.Preconfirmed = 0, 0, 0, 0
	case "fork":
		forked, err := p.fork.Look(ctx, a)
		l.Latest, l.Final, l.Pending, l.Preconfirmed, l.Balance = forked.Latest, forked.Final, forked.Pending, forked.Preconfirmed, forked.Balance
		return l, err
	case "poor":
		l.Balance = new(uint256.Int)
	case "nothing final":
		l.Final, l.Finalized = 0, 0
	}
	p.kept = l
	return l, err
}

func (p *liar) LookBlobs(ctx context.Context, a common.Address) (eoa.Look, error) {
	return p.Look(ctx, a)
}

func (p *liar) Ask(ctx context.Context, q eoa.Questions) (eoa.Answers, error) {
	p.mu.Lock()
	forked := p.lie == "fork"
	p.mu.Unlock()
	if forked {
		return p.fork.Ask(ctx, q)
	}
	return p.provider.Ask(ctx, q)
}

// Endpoints are wrong at different times, and one is always right. All requests
// are executed once, and no account stops.
func TestEndpointsThatLie(t *testing.T) {
	lies := []string{"", "", "still", "no nonce", "fork", "poor", "nothing final", "down", "hangs"}
	for seed := repeat.First(); seed < repeat.First()+uint64(repeat.Times(12, 200)); seed++ {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			chain, a := eoatest.New(testChain, seed, 7), testAccount(t)
			chain.SetBalance(a.Address, uint256.NewInt(1e18))
			fork := eoatest.New(testChain, seed+1000, 7)
			fork.SetBalance(a.Address, new(uint256.Int))
			liars, ends := make([]*liar, 2+rng.IntN(2)), []eoa.BlobChain(nil)
			for i := range liars {
				liars[i] = &liar{provider: provider{Chain: chain}, fork: fork}
				ends = append(ends, liars[i])
			}
			j, err := Join(ends...)
			require.NoError(t, err)
			key, err := crypto.ToECDSA(common.BigToHash(common.Big3).Bytes())
			require.NoError(t, err)
			cfg := eoa.DefaultConfig()
			cfg.CellProofs, cfg.MaxInFlight, cfg.Exclusive = false, 5, true
			e, err := eoa.New(cfg, a, memstore.New(), j, eoa.NewKeySigner(testChain, key))
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- e.Run(ctx) }()
			const requests = 60
			honest := 0
			for round := 0; ; round++ {
				require.Less(t, round, 240, "seed %d: %+v", seed, e.Stats())
				require.Zero(t, e.Stats().Stop, "seed %d", seed)
				if round < requests {
					_, err := e.Submit(ctx, eoa.Request{Key: fmt.Sprint(round), To: &a.Address, Data: []byte(fmt.Sprint(round)), Gas: 50_000})
					require.NoError(t, err)
				} else if r, err := e.Get(ctx, fmt.Sprint(requests-1)); err == nil && r.State == eoa.Final {
					break
				}
				if round%40 == 0 {
					honest = rng.IntN(len(liars))
					for i, p := range liars {
						lie := lies[rng.IntN(len(lies))]
						if i == honest {
							lie = ""
						}
						p.set(func(of *provider) { of.down, of.hangs, p.lie = lie == "down", lie == "hangs", lie })
					}
				}
				time.Sleep(time.Second)
				chain.Mine()
				fork.Mine()
			}
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
			landed := map[string]int{}
			for _, tx := range chain.Transactions() {
				landed[string(tx.Data())]++
			}
			for i := range requests {
				require.Equal(t, 1, landed[fmt.Sprint(i)], "seed %d: %d", seed, i)
			}
		})
	}
}
