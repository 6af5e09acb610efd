package ethchain

import (
	"context"
	"fmt"
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
)

// altered is an endpoint whose looks are altered.
type altered struct {
	eoa.BlobChain
	look func(*eoa.Look)
}

func (a altered) Look(ctx context.Context, of common.Address) (eoa.Look, error) {
	l, err := a.BlobChain.Look(ctx, of)
	a.look(&l)
	return l, err
}

func (a altered) LookBlobs(ctx context.Context, of common.Address) (eoa.Look, error) {
	return a.Look(ctx, of)
}

// still returns an endpoint whose head stands still after some blocks, although
// it answers.
func still(chain *eoatest.Chain) eoa.BlobChain {
	const height = 5
	var last *eoa.Look
	return altered{chain, func(l *eoa.Look) {
		if last == nil || l.Number <= height {
			kept := *l
			last = &kept
		}
		*l = *last
	}}
}

// One or two of several endpoints are wrong in ways that look healthy. All
// requests are executed, whatever the order of the endpoints, by accounts that
// are new to the store and by those that have finalized transactions. Health
// names contradictions.
func TestWrongEndpointsStopNothing(t *testing.T) {
	fork := eoatest.New(testChain, 99, 7) // without the account
	fork.SetBalance(testAccount(t).Address, new(uint256.Int))
	for name, c := range map[string]struct {
		wrong func(chain *eoatest.Chain) eoa.BlobChain
		says  string // in Health
	}{
		"the head stands still": {wrong: still},
		"no transactions": {func(chain *eoatest.Chain) eoa.BlobChain {
			return altered{chain, func(l *eoa.Look) { l.Latest, l.Final, l.Pending, l.Preconfirmed = 0, 0, 0, 0 }}
		}, "has 0 transactions"},
		"another fork": {func(chain *eoatest.Chain) eoa.BlobChain {
			return followed{fork, chain}
		}, "and 0 wei"},
		"nothing becomes final": {wrong: func(chain *eoatest.Chain) eoa.BlobChain {
			return altered{chain, func(l *eoa.Look) { l.Final, l.Finalized = 0, 0 }}
		}},
		"too many transactions": {func(chain *eoatest.Chain) eoa.BlobChain {
			return altered{chain, func(l *eoa.Look) {
				if l.Final > 0 {
					l.Latest, l.Final, l.Pending, l.Preconfirmed = 1000, 1000, 1000, 1000
				}
			}}
		}, "has 1000 transactions"},
	} {
		for _, good := range [][]bool{{false, true}, {true, false}, {false, false, true}, {false, true, false}} {
			for _, restart := range []bool{false, true} {
				if restart && name == "too many transactions" {
					continue // a new store knows no transaction that refutes it
				}
				t.Run(fmt.Sprint(name, good, restart), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						chain := eoatest.New(testChain, 1, 7)
						ends := make([]eoa.BlobChain, len(good))
						for i := range ends {
							if ends[i] = chain; !good[i] {
								ends[i] = c.wrong(chain)
							}
						}
						said := sendThrough(t, chain, ends, restart)
						if c.says != "" {
							require.Contains(t, said, c.says)
						}
					})
				})
			}
		}
	}
}

// followed is an endpoint on a fork that grows with a chain.
type followed struct {
	*eoatest.Chain
	with *eoatest.Chain
}

func (f followed) Look(ctx context.Context, a common.Address) (eoa.Look, error) {
	now, err := f.with.Look(ctx, a)
	if err != nil {
		return now, err
	}
	l, err := f.Chain.Look(ctx, a)
	for ; err == nil && l.Number < now.Number; l, err = f.Chain.Look(ctx, a) {
		f.Chain.Mine()
	}
	return l, err
}

func (f followed) LookBlobs(ctx context.Context, a common.Address) (eoa.Look, error) {
	return f.Look(ctx, a)
}

func testAccount(t *testing.T) eoa.Account {
	key, err := crypto.ToECDSA(common.BigToHash(common.Big3).Bytes())
	require.NoError(t, err)
	return eoa.Account{ChainID: testChain, Address: crypto.PubkeyToAddress(key.PublicKey)}
}

// sendThrough sends requests through joined endpoints for as long as they need,
// at most two minutes. If restart is set, the store is a new one in the middle.
// It returns the contradictions in Health.
func sendThrough(t *testing.T, chain *eoatest.Chain, ends []eoa.BlobChain, restart bool) (said string) {
	const requests, most = 30, 2 * time.Minute
	key, err := crypto.ToECDSA(common.BigToHash(common.Big3).Bytes())
	require.NoError(t, err)
	a, cfg, store := testAccount(t), eoa.DefaultFleetConfig(), memstore.New()
	cfg.Executor.CellProofs, cfg.Executor.MaxInFlight = false, 5
	chain.SetBalance(a.Address, uint256.NewInt(1e18))
	j, err := Join(ends...)
	require.NoError(t, err)
	sent, began := 0, time.Now()
	for life := range 2 {
		if life == 1 && restart {
			store = memstore.New()
		}
		f, err := eoa.NewFleet(cfg, store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) { return j, eoa.NewKeySigner(testChain, key), nil })
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		synctest.Wait()
		for range requests / 2 {
			_, err := f.Submit(ctx, a, eoa.Request{Key: fmt.Sprint(sent), To: &a.Address, Data: []byte(fmt.Sprint(sent))})
			require.NoError(t, err)
			sent++
		}
		for {
			time.Sleep(time.Second)
			chain.Mine()
			for _, p := range f.Health() {
				require.NotEqual(t, eoa.ProblemStopped, p.Kind, p.String())
				if p.Kind == eoa.ProblemEndpoints {
					said += p.String()
				}
			}
			r, err := store.Get(ctx, a, fmt.Sprint(sent-1))
			require.NoError(t, err)
			if r.State == eoa.Final {
				break
			}
			require.Less(t, time.Since(began), most, "%d: %v, %v", sent-1, r.State, f.Health())
		}
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	}
	landed := map[string]int{}
	for _, tx := range chain.Transactions() {
		landed[string(tx.Data())]++
	}
	require.Len(t, landed, requests)
	require.Len(t, chain.Transactions(), requests)
	return said
}
