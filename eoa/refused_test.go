package eoa_test

import (
	"context"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
)

// losesFirst is a node that loses its first answers to sends. It takes the
// transactions, unless never is set.
type losesFirst struct {
	*eoatest.Chain
	lost  int
	never bool
}

func (c *losesFirst) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	if c.lost == 0 {
		return c.Chain.Send(ctx, raws)
	}
	if c.lost--; !c.never {
		_ = c.Chain.Send(ctx, raws)
	}
	return make([]eoa.Sent, len(raws))
}

// A transaction that no node takes does not block the nonces behind it, even if
// the first answer was lost and a node may have it. A noop takes its nonce, and
// the record has the reason.
func TestInvalidIsFilledInItsPlace(t *testing.T) {
	for name, limit := range map[string]*uint256.Int{"no limit": nil, "at the limit": uint256.NewInt(202)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 0)
			w.chain.SetRefuse(func(tx *types.Transaction) string {
				if string(tx.Data()) == "bad" {
					return "intrinsic gas too low: gas 21000, minimum needed 21064"
				}
				return ""
			})
			e := w.executor(t, w.store, &losesFirst{Chain: w.chain, lost: 1})
			bad := request("bad")
			bad.MaxFee = limit
			w.submit(t, e, bad)
			w.submit(t, e, request("good"))
			w.steps(t, e, 160)
			require.Equal(t, eoa.Final, w.get(t, "good").State)
			r := w.get(t, "bad")
			require.Equal(t, eoa.Failed, r.State)
			require.Contains(t, r.Reason, "intrinsic gas too low")
			require.Zero(t, r.Nonce)
		})
	}
}

// A no to a dearer copy is no reason to cancel what the node has.
func TestRefusedBumpCancelsNothing(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.cfg.Fees.StallTimeout = 3 * time.Second
	e := w.executor(t, w.store, w.chain)
	w.chain.SetPerBlock(0)
	w.submit(t, e, request("a"))
	w.steps(t, e, 1)
	w.chain.SetRefuse(func(tx *types.Transaction) string {
		if tx.GasFeeCap().Uint64() <= 202 {
			return ""
		}
		return "tx fee (1.20 ether) exceeds the configured cap (1.00 ether)"
	})
	for i := 0; len(w.get(t, "a").Attempts) < 2 && i < 40; i++ {
		w.steps(t, e, 1)
	}
	require.Len(t, w.get(t, "a").Attempts, 2)
	require.False(t, w.get(t, "a").Cancelling)
	w.chain.SetPerBlock(10)
	w.steps(t, e, 60)
	require.Equal(t, eoa.Final, w.get(t, "a").State)
}

// A price that a node refuses is raised up to the limit, with the same nonce.
func TestRefusedPriceIsRaised(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.chain.SetRefuse(func(tx *types.Transaction) string {
		if tx.GasTipCap().Uint64() < 1e9 {
			return "transaction underpriced: gas tip cap 2, minimum needed 1000000000"
		}
		return ""
	})
	e := w.executor(t, w.store, w.chain)
	limited := request("limited")
	limited.MaxFee = uint256.NewInt(1e8)
	w.submit(t, e, request("a"))
	w.submit(t, e, limited)
	w.steps(t, e, 4000)
	require.Equal(t, eoa.Final, w.get(t, "a").State)
	r := w.get(t, "limited")
	require.Equal(t, eoa.Prepared, r.State)
	require.True(t, r.Capped)
	require.Contains(t, r.Newest().Why, "underpriced")
	require.Less(t, len(r.Attempts), 30)
	for _, a := range r.Attempts {
		require.EqualValues(t, 1, a.Nonce)
		require.False(t, limited.MaxFee.Lt(&a.Fees.Cap))
	}
}
