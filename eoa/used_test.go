package eoa_test

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/internal/repeat"
)

// authorize returns an authorization that is signed by the world's account.
func (w *world) authorize(t testing.TB, chain, nonce uint64) types.SetCodeAuthorization {
	auth, err := types.SignSetCode(w.secret, types.SetCodeAuthorization{ChainID: *uint256.NewInt(chain), Address: common.Address{9}, Nonce: nonce})
	require.NoError(t, err)
	return auth
}

// setCode returns a request with authorizations.
func setCode(key string, auths ...types.SetCodeAuthorization) eoa.Request {
	q := request(key)
	q.Kind, q.Authorizations = eoa.SetCode, auths
	return q
}

// stranger returns a transaction of another account with authorizations.
func stranger(t testing.TB, auths ...types.SetCodeAuthorization) []byte {
	key, err := crypto.ToECDSA(common.BigToHash(common.Big3).Bytes())
	require.NoError(t, err)
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(new(big.Int).SetUint64(testChain)), &types.SetCodeTx{
		ChainID: uint256.NewInt(testChain), Gas: 100_000, GasFeeCap: uint256.NewInt(1000), GasTipCap: uint256.NewInt(10), AuthList: auths,
	})
	require.NoError(t, err)
	raw, err := tx.MarshalBinary()
	require.NoError(t, err)
	return raw
}

// The valid authorizations of the sender in its own transaction use the nonces
// after the transaction's (EIP-7702). The next request gets the one after them.
func TestOwnAuthorizations(t *testing.T) {
	for name, c := range map[string]struct {
		auths func(w *world) []types.SetCodeAuthorization
		next  uint64
	}{
		"one": {func(w *world) []types.SetCodeAuthorization {
			return []types.SetCodeAuthorization{w.authorize(t, testChain, 1)}
		}, 2},
		"on any chain": {func(w *world) []types.SetCodeAuthorization { return []types.SetCodeAuthorization{w.authorize(t, 0, 1)} }, 2},
		"two": {func(w *world) []types.SetCodeAuthorization {
			return []types.SetCodeAuthorization{w.authorize(t, 0, 1), w.authorize(t, testChain, 2)}
		}, 3},
		"only one of two fits": {func(w *world) []types.SetCodeAuthorization {
			return []types.SetCodeAuthorization{w.authorize(t, 0, 2), w.authorize(t, 0, 1)}
		}, 2},
		"of another chain": {func(w *world) []types.SetCodeAuthorization { return []types.SetCodeAuthorization{w.authorize(t, 5, 1)} }, 1},
		"of a used nonce":  {func(w *world) []types.SetCodeAuthorization { return []types.SetCodeAuthorization{w.authorize(t, 0, 0)} }, 1},
		"with a broken signature": {func(w *world) []types.SetCodeAuthorization {
			auth := w.authorize(t, 0, 1)
			auth.V ^= 1
			return []types.SetCodeAuthorization{auth}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 0)
			w.keys = []string{"a", "b"}
			w.request = func(key string) eoa.Request {
				if key == "a" {
					return setCode(key, c.auths(w)...)
				}
				return request(key)
			}
			e := w.executor(t, w.store, w.chain)
			require.NoError(t, w.submitAll(e))
			w.finish(t, e)
			w.exactlyOnce(t)
			require.Equal(t, uint64(0), w.get(t, "a").Nonce)
			require.Equal(t, c.next, w.get(t, "b").Nonce)
			require.Len(t, w.get(t, "b").Attempts, 1)
		})
	}
}

// A transaction whose sender's authorizations would use nonces is refused for
// good. Noops fill its nonce and theirs, and leave no gap.
func TestOwnAuthorizationsOfRefused(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.chain.SetRefuse(func(tx *types.Transaction) string {
		if tx.Type() == types.SetCodeTxType {
			return "intrinsic gas too low: gas 1, minimum needed 2"
		}
		return ""
	})
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, setCode("a", w.authorize(t, 0, 1)))
	w.submit(t, e, request("b"))
	w.steps(t, e, 240)
	require.Equal(t, eoa.Failed, w.get(t, "a").State)
	require.Equal(t, eoa.Final, w.get(t, "b").State)
	require.EqualValues(t, 2, w.get(t, "b").Nonce)
}

// The account's authorization in a transaction of another account, or a contract
// creation by the account's code, uses a nonce that a request has. The request
// gets another one, and is executed once.
func TestNonceUsedWithoutTransaction(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, w *world){
		"authorization": func(t *testing.T, w *world) {
			require.Equal(t, eoa.Accepted, w.chain.Send(context.Background(), [][]byte{stranger(t, w.authorize(t, 0, 0))})[0].Result)
		},
		"creation": func(_ *testing.T, w *world) { w.chain.UseNonces(w.account.Address, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 0)
			w.chain.SetRefuse(func(tx *types.Transaction) string {
				if tx.Type() == types.SetCodeTxType {
					return ""
				}
				return "txpool is full"
			})
			w.keys = []string{"a", "b"}
			e := w.executor(t, w.store, w.chain)
			require.NoError(t, w.submitAll(e))
			w.steps(t, e, 2)
			require.Equal(t, uint64(1), w.get(t, "b").Nonce)
			use(t, w)
			w.chain.Mine()
			w.chain.SetRefuse(nil)
			w.finish(t, e)
			landed := map[string]int{}
			for _, tx := range w.chain.Transactions() {
				if tx.Type() != types.SetCodeTxType {
					landed[string(tx.Data())]++
				}
			}
			require.Equal(t, map[string]int{"a": 1, "b": 1}, landed)
			a := w.get(t, "a")
			require.Equal(t, eoa.Final, a.State)
			require.Equal(t, uint64(2), a.Nonce)
			require.True(t, a.Attempts[0].Void)
			require.True(t, w.told(t, eoa.EventRequeued))
			require.False(t, w.told(t, eoa.EventSuperseded))
		})
	}
}

// Another transaction of the account with the nonce supersedes the request, and
// the reason names it.
func TestSupersededNamesTheTransaction(t *testing.T) {
	w := newWorld(t, 1, 0)
	other := w.foreign(t, 0)
	w.chain.SetRefuse(func(tx *types.Transaction) string {
		if tx.Hash() != other.Hash() {
			return "txpool is full"
		}
		return ""
	})
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, request("a"))
	w.steps(t, e, 2)
	raw, err := other.MarshalBinary()
	require.NoError(t, err)
	w.chain.Send(context.Background(), [][]byte{raw})
	w.steps(t, e, 90)
	require.Equal(t, eoa.Superseded, w.get(t, "a").State)
	require.Contains(t, w.get(t, "a").Reason, other.Hash().Hex())
}

// A node that cannot tell who used a nonce leaves the request as it is.
func TestUnknownUserIsNoProof(t *testing.T) {
	w := newWorld(t, 1, 0)
	silent := &noUsers{Chain: w.chain}
	e := w.executor(t, w.store, silent)
	w.chain.SetRefuse(func(*types.Transaction) string { return "txpool is full" })
	w.submit(t, e, request("a"))
	w.steps(t, e, 2)
	w.chain.UseNonces(w.account.Address, 1)
	w.chain.Mine()
	w.chain.SetRefuse(nil)
	w.steps(t, e, 90)
	a := w.get(t, "a")
	require.Contains(t, []eoa.State{eoa.Prepared, eoa.Broadcast}, a.State)
	require.NotEmpty(t, silent.asked)
	for _, q := range silent.asked {
		require.LessOrEqual(t, w.chain.Count(w.account.Address, q.After), q.Nonce)
		require.Greater(t, w.chain.Count(w.account.Address, q.UpTo), q.Nonce)
	}
	silent.tells = true
	w.steps(t, e, 90)
	require.Equal(t, eoa.Final, w.get(t, "a").State)
}

// noUsers is a node that does not tell who used nonces, until it does.
type noUsers struct {
	*eoatest.Chain
	tells bool
	asked []eoa.UsedNonce
}

func (c *noUsers) Ask(ctx context.Context, q eoa.Questions) (eoa.Answers, error) {
	a, err := c.Chain.Ask(ctx, q)
	if c.asked = append(c.asked, q.Nonces...); !c.tells {
		a.Users = nil
	}
	return a, err
}

// A request that is being cancelled is cancelled when its nonce is used without
// a transaction. A member of a group is superseded, because members behind it
// may be executed already.
func TestNonceUsedOfCancelledAndOfGroup(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.chain.SetRefuse(func(*types.Transaction) string { return "txpool is full" })
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, request("a"))
	member := request("b")
	member.Group, member.Gas = "g", 50_000
	w.submit(t, e, member)
	w.steps(t, e, 2)
	require.NoError(t, e.Cancel(context.Background(), "a"))
	w.steps(t, e, 2)
	w.chain.UseNonces(w.account.Address, 2)
	w.chain.Mine()
	w.chain.SetRefuse(nil)
	w.steps(t, e, 90)
	require.Equal(t, eoa.Cancelled, w.get(t, "a").State)
	require.Equal(t, eoa.Superseded, w.get(t, "b").State)
	require.Equal(t, "nonce 1 was used without a transaction", w.get(t, "b").Reason)
}

// With any faults, and with nonces that are used without transactions at any
// time, every request is executed exactly once.
func TestNoncesUsedAtAnyTime(t *testing.T) {
	requeued := 0
	for seed := repeat.First(); seed < repeat.First()+30; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed, 12)
			random := rand.New(rand.NewPCG(seed, 5))
			w.chain.SetFaults(eoatest.Faults{DropRequest: 0.05, DropResponse: 0.05, Lag: 0.05, LosePool: 0.1, Reorg: 0.1, ReorgDepth: 3, Return: 0.5})
			w.request = func(key string) eoa.Request {
				if n := slices.Index(w.keys, key); n%4 == 3 { // valid, if it guesses its nonce
					return setCode(key, w.authorize(t, 0, uint64(n+1+random.IntN(3))))
				}
				return request(key)
			}
			requests := map[string]eoa.Request{}
			for _, key := range w.keys {
				requests[key] = w.request(key)
			}
			w.request = func(key string) eoa.Request { return requests[key] }
			e := w.executor(t, w.store, w.chain)
			require.NoError(t, w.submitAll(e))
			for i := range 120 {
				if random.IntN(12) == 0 {
					w.chain.UseNonces(w.account.Address, uint64(1+random.IntN(2)))
				}
				_, _ = e.Step(context.Background())
				w.tick(i)
			}
			w.chain.SetFaults(eoatest.Faults{})
			w.finish(t, e)
			w.exactlyOnce(t)
			if w.told(t, eoa.EventRequeued) {
				requeued++
			}
		})
	}
	require.Positive(t, requeued)
}

// pruned is a node that has deleted its receipts.
type pruned struct {
	*eoatest.Chain
	on bool
}

func (c *pruned) Ask(ctx context.Context, q eoa.Questions) (eoa.Answers, error) {
	a, err := c.Chain.Ask(ctx, q)
	if c.on {
		for tx := range a.Receipts {
			a.Missing[tx] = true
		}
		clear(a.Receipts)
	}
	return a, err
}

// A worker returns after days to a node without the receipt of a transaction.
// The record tells the reason for which it does not end, and other requests go
// on. When the node has the receipt, the record ends.
func TestPrunedReceipt(t *testing.T) {
	w := newWorld(t, 1, 2)
	c := &pruned{Chain: w.chain}
	e := w.executor(t, w.store, c)
	w.submit(t, e, request(w.keys[0]))
	w.step(t, e)
	for range 50 {
		w.chain.Mine()
	}
	c.on = true
	w.now = w.now.Add(48 * time.Hour)
	e = w.executor(t, w.store, c)
	w.steps(t, e, 30)
	r := w.get(t, w.keys[0])
	require.False(t, r.State.Terminal())
	require.Contains(t, r.Reason, "no receipt")
	c.on = false
	w.submit(t, e, request(w.keys[1]))
	w.finish(t, e)
	w.exactlyOnce(t)
	require.Empty(t, w.get(t, w.keys[0]).Reason)
}
