package lab

import (
	"context"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/internal/bubble"
)

// look is the virtual time between two looks at a node.
const look = 6 * time.Second / 8

// Without finality packages become invalid, and Ready reports that until finality
// continues.
func TestNotReadyWithoutFinality(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		cfg := DefaultConfig(jamq.Tiny(), jamq.Tiny().SlotDuration, 3)
		cfg.Lab = true
		n, err := New(cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }()
		defer func() {
			cancel()
			require.NoError(t, <-ended)
		}()
		ready := func() bool { return n.Ready() == nil }
		bubble.Await(t, look, ready, "the node is ready")
		require.NoError(t, n.Lab().StopFinality(true))
		bubble.Await(t, look, func() bool {
			err = n.Ready()
			return errors.Is(err, node.ErrNotReady) && strings.Contains(err.Error(), "finalized no block")
		}, "the node is not ready without finality")
		require.ErrorContains(t, err, "of the last 24 slots")
		require.NoError(t, n.Lab().StopFinality(false))
		bubble.Await(t, look, ready, "the node is ready again")
	})
}

// Everything that the laboratory can break is broken while transactions flow. Each of them becomes
// final once, and the hub shows it.
func TestLaboratoryRecovers(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		cfg := DefaultConfig(jamq.Tiny(), jamq.Tiny().SlotDuration, 3)
		cfg.Lab, cfg.MaxTxsPerBundle = true, 2
		n, err := New(cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }()
		defer func() {
			cancel()
			require.NoError(t, <-ended)
		}()

		lab := n.Lab()
		require.NotNil(t, lab)
		sent := uint64(0)
		send := func(count int) {
			for range count {
				tx := types.MustSignNewTx(n.Accounts()[0].Key, types.LatestSignerForChainID(cfg.ChainID), &types.DynamicFeeTx{
					ChainID: cfg.ChainID, Nonce: sent, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(10 * params.GWei), Gas: 21_000, To: &common.Address{7}, Value: big.NewInt(1),
				})
				require.NoError(t, n.SendTransaction(tx))
				sent++
			}
		}
		told := func(kind string) bool {
			snapshot, _ := n.Live().Snapshot()
			for _, e := range snapshot.State.Events {
				if e.Kind == kind {
					return true
				}
			}
			return false
		}
		soon := func(state string, f func() bool) {
			t.Helper()
			bubble.Await(t, look, f, state)
		}

		require.NoError(t, lab.SetLatency(5))
		send(4)
		soon("a package can be killed", func() bool { return lab.Kill(ctx, 0) == nil })
		soon("it dies", func() bool { return told("dead") })
		require.NoError(t, lab.SetLatency(1))
		require.NoError(t, lab.SetLoss(0.3))
		require.NoError(t, lab.SetSkip(0.2))
		send(6)
		soon("there are blocks to reorganize", func() bool { return n.Head().NumberU64() >= 4 })
		require.NoError(t, lab.StopFinality(true))
		for depth := 1; depth <= 5; depth++ {
			require.NoError(t, lab.Reorg(float64(depth)))
			send(3)
			best, _ := n.JAMHeads()
			soon("the chain moves", func() bool { now, _ := n.JAMHeads(); return now != best })
		}
		soon("a reorganization is told", func() bool { return told("back") })
		require.NoError(t, lab.StopFinality(false))
		require.NoError(t, lab.SetLoss(0))
		require.NoError(t, lab.SetSkip(0))
		soon("all are final", func() bool {
			snapshot, _ := n.Live().Snapshot()
			return snapshot.State.Flow.Finalized == sent
		})
		snapshot, _ := n.Live().Snapshot()
		require.Equal(t, sent, snapshot.State.Flow.Sent)
		require.Zero(t, snapshot.State.Flow.Queue+snapshot.State.Flow.Cores+snapshot.State.Flow.Accumulated)
		report := n.Service()
		require.Empty(t, report.Duplicates)
		require.Empty(t, report.Gaps)
		view, err := n.StateAt(n.Head())
		require.NoError(t, err)
		require.Equal(t, sent, view.Account(common.Address{7}).Balance.Uint64())
	})
}
