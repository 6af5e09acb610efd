package eoa_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// An account becomes delegated (EIP-7702) while transactions are in flight, of
// which the node then forgets all. It takes one at a time, and the account needs
// one block for each, also if its code is not visible yet.
func TestDelegatedInFlight(t *testing.T) {
	for name, shown := range map[string]bool{"code": true, "an authorization in a pool": false} {
		t.Run(name, func(t *testing.T) {
			const requests, resend = 20, 20 // blocks until nodes get everything again
			w := newWorld(t, 1, requests)
			w.chain.SetPerBlock(0)
			e := w.executor(t, w.store, w.chain)
			require.NoError(t, w.submitAll(e))
			w.steps(t, e, 10)
			require.Equal(t, requests, w.chain.Pooled())
			w.chain.SetDelegated(w.account.Address, true, shown)
			w.chain.LosePool()
			w.chain.SetPerBlock(100)
			for blocks := 0; w.get(t, w.keys[requests-1]).State < eoa.Mined; blocks++ {
				require.Less(t, blocks, requests+resend)
				for i := range 3 { // a block
					_, err := e.Step(context.Background())
					require.NoError(t, err)
					w.tick(i)
				}
			}
			w.chain.SetDelegated(w.account.Address, false, false)
			w.finish(t, e)
			w.exactlyOnce(t)
		})
	}
}
