package node

import (
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/evmrollup"
	"github.com/jamq/jamq/evmrollup/internal/jam"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/service"
)

// Packages that others forge never change the root of the rollup's service, even if they have its
// authorizer, unless they continue the last block. The node goes on.
func TestForgedPayloadNeverChangesTheRoot(t *testing.T) {
	during(t, "", func(n *Node) {
		grow(t, n)
		chain := n.jam.(*jam.Simulated).Driver()
		last := func() (c proof.Commitment) {
			chain.View(func(chain *jamtest.Chain) {
				var err error
				c, err = service.Last(func(key string) []byte {
					value, err := chain.Value(n.cfg.Service, chain.Finalized().Hash, []byte(key))
					require.NoError(t, err)
					return value
				})
				require.NoError(t, err)
			})
			return c
		}
		head := last()
		require.Equal(t, n.Head().Root(), head.PostRoot)
		var payload []byte // of the last block
		chain.View(func(chain *jamtest.Chain) {
			inbox, err := chain.Inbox(n.cfg.Service, chain.Finalized().Hash)
			require.NoError(t, err)
			payload = inbox[len(inbox)-1].Payload
		})
		_, err := evmrollup.DecodeTransition(payload)
		require.NoError(t, err)
		next := proof.Commitment{Number: head.Number + 1, Hash: common.Hash{1}, PreRoot: head.PostRoot, PostRoot: common.Hash{2}}
		later, fork := next, next
		later.Number++
		fork.PreRoot = common.Hash{3}
		body := payload[service.HeaderSize:]
		with := func(c proof.Commitment) []byte { return append(service.EncodeHeader(c), body...) }

		_, err = evmrollup.DecodeTransition(with(next))
		require.ErrorIs(t, err, evmrollup.ErrPayload, "nor would a verifier accept it")
		signer, err := service.NewSigner(n.cfg.Version, n.cfg.Key)
		require.NoError(t, err)
		own, stranger := signer.Authorizer(), common.Hash{4}
		for name, forged := range map[string]struct {
			payload    []byte
			authorizer common.Hash
		}{
			"a payload that does not match its header": {with(next), stranger},
			"the last block again":                     {payload, own},
			"the last block of another authorizer":     {payload, stranger},
			"another pre-root":                         {with(fork), own},
			"a later block":                            {with(later), own},
			"no header":                                {payload[1:service.HeaderSize], own},
		} {
			send(t, chain, n.cfg.Service, forged.payload, forged.authorizer)
			require.Equal(t, head, last(), name)
			report := n.Service()
			require.Equal(t, head.Number, report.Last, name)
			require.Equal(t, head.PostRoot, report.Root, name)
		}
		require.NoError(t, n.SendTransaction(transfer(t, n, 1, 0, enough)))
		require.NoError(t, n.Drain(wait.Context(t)))
		require.Equal(t, head.Number+1, last().Number)
		require.Equal(t, n.Head().Root(), last().PostRoot)
	})
}

// A block is final only if the service has applied it. Here a package of the same key takes its
// place, as after a fault of the operator: JAM accumulates the node's package as well, and the
// service ignores it.
func TestIgnoredBlockIsNotFinal(t *testing.T) {
	during(t, "", func(n *Node) {
		grow(t, n)
		chain := n.jam.(*jam.Simulated).Driver()
		signer, err := service.NewSigner(n.cfg.Version, n.cfg.Key)
		require.NoError(t, err)
		head := n.Head()
		rival := proof.Commitment{Number: head.NumberU64() + 1, Hash: common.Hash{1}, PreRoot: head.Root(), PostRoot: common.Hash{2}}
		send(t, chain, n.cfg.Service, service.EncodeHeader(rival), signer.Authorizer())
		require.NoError(t, n.SendTransaction(transfer(t, n, 1, 0, enough)))
		var seen jamq.Slot
		wait.Until(t, func() bool {
			chain.View(func(chain *jamtest.Chain) {
				inbox, err := chain.Inbox(n.cfg.Service, chain.Finalized().Hash)
				require.NoError(t, err)
				if last := inbox[len(inbox)-1]; seen == 0 && len(last.Payload) > service.HeaderSize && last.Payload[0] == byte(rival.Number) {
					seen = chain.Finalized().Slot
				}
			})
			_, finalized := n.jam.Heads()
			return seen > 0 && finalized.Slot > seen+3
		}, "the node's package is accumulated")
		require.Equal(t, head.NumberU64(), n.builder.Heads().Finalized.Number)
	})
}

// A block that comes before its turn waits for it, as in the service.
func TestCallsWaitForTheirTurn(t *testing.T) {
	var s calls
	s.begin(&evmrollup.Block{Block: types.NewBlockWithHeader(&types.Header{Number: big.NewInt(4), Root: common.Hash{4}})}, 4)
	take := func(number uint64, preRoot common.Hash) ServiceReport {
		s.taken(service.EncodeHeader(proof.Commitment{Number: number, PreRoot: preRoot, PostRoot: common.Hash{byte(number)}}))
		return s.report
	}
	require.Equal(t, ServiceReport{Total: 5, First: 1, Last: 4, Root: common.Hash{4}}, take(6, common.Hash{5}))
	require.Equal(t, ServiceReport{Total: 6, First: 1, Last: 6, Root: common.Hash{6}}, take(5, common.Hash{4}))
	require.Equal(t, []uint64{6}, take(6, common.Hash{5}).Duplicates)
	require.Equal(t, []uint64{7}, take(7, common.Hash{5}).Gaps)
	require.Equal(t, []uint64{7, 7 + service.Ahead}, take(7+service.Ahead, common.Hash{5}).Gaps)
}

// send sends a package to a chain, with a new anchor when the last one has become too old, and
// returns when its accumulation is final.
func send(t *testing.T, driver *jamtest.Driver, id jamq.ServiceID, payload []byte, authorizer common.Hash) {
	t.Helper()
	var p jamtest.Package
	wait.Until(t, func() (final bool) {
		again := false
		driver.View(func(chain *jamtest.Chain) {
			status, err := chain.Status(p.Hash, chain.Finalized().Hash)
			require.NoError(t, err)
			final = status.Stage == jamtest.Accumulated
			if again = !final && errors.Is(chain.Reportable(p, 0, chain.Slot().Add(1)), jamtest.ErrAnchorNotRecent); again {
				context, err := chain.Context(1)
				require.NoError(t, err)
				p = jamtest.NewPackage(id, context, payload)
				p.Authorizer, p.Hash[0] = authorizer, p.Hash[0]+1
			}
		})
		if again {
			require.NoError(t, driver.Submit(p, 0, 0))
		}
		return final
	}, "the forged package is accumulated")
}
