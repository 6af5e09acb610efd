package eoa_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/internal/repeat"
)

// A gateway gives sends to two nodes. It returns the refusal of one, for any
// reason, although the other took the transaction. Workers die, and nodes forget. Every
// request lands exactly once, and none is given up.
func TestE1NoDoubleSpendGateway(t *testing.T) {
	t.Parallel()
	for seed := repeat.First(); seed < repeat.First()+uint64(repeat.Times(30, 3000)); seed++ {
		rng := rand.New(rand.NewPCG(seed, 10))
		w := newWorld(t, seed, 12)
		w.cfg.Fees.StallTimeout = time.Duration(10+rng.IntN(50)) * time.Second
		w.chain.SetPerBlock(1 + rng.IntN(6))
		faults := eoatest.Faults{Hedge: 0.1}
		if seed%2 == 1 {
			faults.DropResponse, faults.LosePool, faults.Reorg, faults.ReorgDepth = 0.05, 0.1, 0.1, 5
		}
		w.chain.SetFaults(faults)
		chaos(t, w, seed, 60+rng.IntN(60))
		w.finish(t, w.executor(t, w.store, w.chain)) // the gateway stays as it is
		w.exactlyOnce(t)
		require.False(t, t.Failed(), "seed %d", seed)
	}
}

// One refusal, or two in a row, change neither the bytes nor the nonce, and a
// request behind is not affected. The third one in a row, for a price, is
// answered with a dearer copy at the same nonce.
func TestRefusalKeepsTheNonce(t *testing.T) {
	for text, attempts := range map[string][]int{ // by the number of refusals
		"transaction underpriced: gas tip cap 2, minimum needed 3":    {1, 1, 2},
		"exceeds block gas limit":                                     {1, 1, 2},
		"tx fee (1.20 ether) exceeds the configured cap (1.00 ether)": {1, 1, 2},
		"insufficient funds for gas * price + value":                  {1, 1, 1, 1, 1, 1},
		"replacement transaction underpriced":                         {1, 1, 1, 1, 1, 1},
		"txpool is full":                                              {1, 1, 1, 1, 1, 1},
		"intrinsic gas too low: gas 21000, minimum needed 21064":      {1, 1, 1, 1, 1, 2},
	} {
		for n, want := range attempts {
			w := newWorld(t, 1, 2)
			w.chain.SetPerBlock(0)
			left := n + 1
			w.chain.SetRefuse(func(tx *types.Transaction) string {
				if string(tx.Data()) != w.keys[0] || left == 0 {
					return ""
				}
				left--
				return text
			})
			e := w.executor(t, w.store, w.chain)
			require.NoError(t, w.submitAll(e))
			for left > 0 {
				w.steps(t, e, 1)
			}
			w.steps(t, e, 1)
			r := w.get(t, w.keys[0])
			require.Len(t, r.Attempts, want, "%q %d times", text, n+1)
			require.Zero(t, r.Nonce)
			for i := range r.Attempts {
				require.Zero(t, r.Attempts[i].Nonce)
				require.False(t, r.Attempts[i].Void)
			}
			require.EqualValues(t, 1, w.get(t, w.keys[1]).Nonce)
			require.Equal(t, eoa.Broadcast, w.get(t, w.keys[1]).State)
		}
	}
}

// A node relays transactions only up to a fee (geth's --rpc.txfeecap). A
// request above it is signed again at a lower price, which still pays the base
// fee, and is executed.
func TestFeeCapOfTheNode(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.chain.SetRefuse(func(tx *types.Transaction) string {
		if tx.GasFeeCap().Uint64() > 150 { // the base fee is 100
			return "tx fee (1.20 ether) exceeds the configured cap (1.00 ether)"
		}
		return ""
	})
	e := w.executor(t, w.store, w.chain)
	require.NoError(t, w.submitAll(e))
	w.finish(t, e)
	w.exactlyOnce(t)
	r := w.get(t, w.keys[0])
	require.Len(t, r.Attempts, 2)
	require.EqualValues(t, 114, r.Attempts[1].Fees.Cap.Uint64())
}

// While even the lowest price is above the fee that a node relays, the request
// waits, without an end and without a dearer copy. It is executed when the base
// fee has fallen.
func TestFeeCapOfTheNodeWaits(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.cfg.Fees.StallTimeout = 10 * time.Second
	w.chain.SetBaseFee(1000)
	w.chain.SetRefuse(func(tx *types.Transaction) string {
		if tx.GasFeeCap().Uint64() > 150 {
			return "tx fee (1.20 ether) exceeds the configured cap (1.00 ether)"
		}
		return ""
	})
	e := w.executor(t, w.store, w.chain)
	require.NoError(t, w.submitAll(e))
	w.steps(t, e, 200)
	require.Len(t, w.get(t, w.keys[0]).Attempts, 2, "one lower, none dearer")
	w.chain.SetBaseFee(100)
	w.finish(t, e)
	w.exactlyOnce(t)
}

// A user withdraws a request that one node of a gateway had called invalid. It
// is cancelled, because only the user gave it up.
func TestCancelAfterOneRefusal(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.chain.SetPerBlock(0)
	refusals := 0
	w.chain.SetRefuse(func(tx *types.Transaction) string {
		if refusals++; refusals == 1 {
			return "intrinsic gas too low: gas 21000, minimum needed 21064"
		}
		return ""
	})
	e := w.executor(t, w.store, w.chain)
	w.submit(t, e, request("a"))
	w.steps(t, e, 1)
	require.NoError(t, e.Cancel(context.Background(), "a"))
	w.steps(t, e, 3)
	w.chain.SetPerBlock(10)
	w.steps(t, e, 60)
	require.Equal(t, eoa.Cancelled, w.get(t, "a").State)
}
