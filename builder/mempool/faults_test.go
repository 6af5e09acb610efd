package mempool_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/buildertest"
	"github.com/jamq/jamq/builder/mempool"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/txpool"
)

// hooked is a state with a function that is called before each read.
type hooked struct {
	*state
	before func(common.Address)
}

func (h hooked) Account(address common.Address) (txpool.Account, error) {
	h.before(address)
	return h.state.Account(address)
}

// newHooked returns a rollup whose pool calls functions of a faulty host.
func newHooked(t *testing.T, read func(common.Address), observe func(txpool.Event)) *payments {
	s := &state{nonces: make(map[common.Address]uint64)}
	cfg := txpool.DefaultConfig(chainID)
	cfg.Observe = observe
	pool, err := mempool.New(cfg, hooked{s, read}, nil)
	require.NoError(t, err)
	return &payments{pool, s}
}

// TestHostPanics: a panic of the host's state or observer costs that call. In Apply and Undo it
// comes when the state has changed already, so that neither can be repeated.
func TestHostPanics(t *testing.T) {
	for name, every := range map[string][2]int64{"state": {31, 0}, "observer": {0, 13}, "both": {17, 7}} {
		t.Run(name, func(t *testing.T) {
			c := rules(t, nil)
			c.Operation = func(i int) []byte { return pay(fmt.Sprint("user ", i), 0) }
			c.New = func() builder.Rollup[batch] {
				var reads, events atomic.Int64
				panics := func(n *atomic.Int64, every int64) {
					if every > 0 && n.Add(1)%every == 0 {
						panic("by chance")
					}
				}
				return newHooked(t, func(common.Address) { panics(&reads, every[0]) }, func(txpool.Event) { panics(&events, every[1]) })
			}
			_, problem := buildertest.Find(t, c, 20)
			require.NoError(t, problem)
		})
	}
}

// TestHungAddition: an addition whose read of the state hangs holds up neither a block that is
// undone nor other additions.
func TestHungAddition(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		hang := make(chan struct{})
		var hangs atomic.Pointer[common.Address]
		r := newHooked(t, func(address common.Address) {
			if who := hangs.Load(); who != nil && *who == address {
				<-hang
			}
		}, nil)
		require.NoError(t, r.Recovered(t.Context(), func(...[]byte) error { return nil }))
		require.NoError(t, r.Admit(t.Context(), pay("alice", 0)))
		txs, root, err := r.Propose(t.Context(), 1)
		require.NoError(t, err)
		b := builder.Block[batch]{Number: 1, PreRoot: r.Root(), Root: root, Body: txs}
		require.NoError(t, r.Apply(t.Context(), b))

		var tx types.Transaction
		require.NoError(t, tx.UnmarshalBinary(pay("hung", 0)))
		from, err := types.Sender(signer, &tx)
		require.NoError(t, err)
		hangs.Store(&from)
		ended := make(chan error, 1)
		go func() { ended <- r.Add(&tx) }()
		synctest.Wait()
		require.NoError(t, r.Undo(t.Context(), b))
		require.Equal(t, 1, r.Stats().Pending, "the transaction of the block is back")
		require.NoError(t, r.Admit(t.Context(), pay("bob", 0)))
		close(hang)
		require.NoError(t, <-ended)
		require.Equal(t, 3, r.Stats().Pending)
		require.NoError(t, r.Check())
	})
}
