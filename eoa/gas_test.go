package eoa_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
)

// estimating is a chain with its own estimate of gas and gas limit of a block.
type estimating struct {
	*eoatest.Chain
	estimate, block uint64
	lost            int // answers to sends
}

func (c *estimating) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	out := c.Chain.Send(ctx, raws)
	if c.lost > 0 {
		c.lost--
		clear(out)
	}
	return out
}

func (c *estimating) Estimate(_ context.Context, _ common.Address, requests []*eoa.Request) []eoa.Estimated {
	return slices.Repeat([]eoa.Estimated{{Gas: c.estimate}}, len(requests))
}

func (c *estimating) Look(ctx context.Context, a common.Address) (eoa.Look, error) {
	l, err := c.Chain.Look(ctx, a)
	l.GasLimit = c.block
	return l, err
}

// refuseAbove lets the chain refuse transactions with more gas, as go-ethereum does.
func (c *estimating) refuseAbove(most uint64) {
	c.SetRefuse(func(tx *types.Transaction) string {
		if tx.Gas() > most {
			return fmt.Sprintf("transaction gas limit too high (cap: %d, tx: %d)", most, tx.Gas())
		}
		return ""
	})
}

// The margin does not make a transaction too large that fits without it.
func TestGasMarginKeepsBounds(t *testing.T) {
	const transaction = 1 << 24 // EIP-7825
	for name, c := range map[string]struct {
		estimate, block uint64 // block 0: the node does not tell
		fixed           uint64 // by the request
		accepts         uint64 // most gas of a transaction
		state           eoa.State
		gas             []uint64 // of all attempts
	}{
		"a usual one":                          {estimate: 100_000, block: 30_000_000, accepts: transaction, state: eoa.Final, gas: []uint64{120_000}},
		"up to the limit of a transaction":     {estimate: 14_700_000, block: 30_000_000, accepts: transaction, state: eoa.Final, gas: []uint64{transaction}},
		"exactly the limit of a transaction":   {estimate: transaction, accepts: transaction, state: eoa.Final, gas: []uint64{transaction}},
		"up to the limit of a block":           {estimate: 9_000_000, block: 10_000_000, accepts: 10_000_000, state: eoa.Final, gas: []uint64{10_000_000}},
		"above the limit of other chains":      {estimate: 20_000_000, block: 60_000_000, accepts: 60_000_000, state: eoa.Final, gas: []uint64{24_000_000}},
		"a limit that is not known":            {estimate: 4_900_000, block: 30_000_000, accepts: 5_000_000, state: eoa.Final, gas: []uint64{5_880_000, 4_900_000}},
		"too much also without the margin":     {estimate: 6_000_000, accepts: 5_000_000, state: eoa.Failed, gas: []uint64{7_200_000, 6_000_000}},
		"too much, as the request demands":     {fixed: 6_000_000, accepts: 5_000_000, state: eoa.Failed, gas: []uint64{6_000_000}},
		"as the request demands, beyond usual": {fixed: 20_000_000, block: 60_000_000, accepts: 60_000_000, state: eoa.Final, gas: []uint64{20_000_000}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 1)
			w.request = func(key string) eoa.Request {
				r := request(key)
				r.Gas = c.fixed
				return r
			}
			chain := &estimating{Chain: w.chain, estimate: c.estimate, block: c.block}
			chain.refuseAbove(c.accepts)
			e := w.executor(t, w.store, chain)
			require.NoError(t, w.submitAll(e))
			w.finish(t, e)
			r := w.get(t, w.keys[0])
			require.Equal(t, c.state, r.State, r.Reason)
			var gas []uint64
			for i := range r.Attempts {
				if !r.Attempts[i].Noop { // a noop fills the nonce of a failed request
					gas = append(gas, r.Attempts[i].Gas)
				}
			}
			require.Equal(t, c.gas, gas)
			if c.state == eoa.Failed {
				require.Contains(t, r.Reason, "gas limit too high")
			}
		})
	}
}

// The answer to the first send is lost, so a node may have the transaction. The
// next answer is that its gas limit is too high. It keeps its nonce, and its
// replacement has the estimate without the margin.
func TestGasMarginOfATransactionThatMayBeOut(t *testing.T) {
	w := newWorld(t, 1, 1)
	chain := &estimating{Chain: w.chain, estimate: 4_900_000, block: 30_000_000, lost: 1}
	chain.refuseAbove(5_000_000)
	e := w.executor(t, w.store, chain)
	require.NoError(t, w.submitAll(e))
	w.finish(t, e)
	r := w.get(t, w.keys[0])
	require.Equal(t, eoa.Final, r.State, r.Reason)
	require.EqualValues(t, 0, r.Nonce)
	require.Len(t, r.Attempts, 2)
	require.EqualValues(t, 4_900_000, r.Attempts[1].Gas)
}
