package node

import (
	"context"
	"log/slog"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup/store"
	"github.com/jamq/jamq/internal/bubble"
)

// The chain ends with the process. Transactions in blocks that are not final return
// to the pool, also if the process dies before it runs.
func TestUndoneBlocksAreNotLost(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		cfg := DefaultConfig(jamq.Tiny(), jamq.Tiny().SlotDuration, 1)
		cfg.JAM.FinalityLag = 10_000 // nothing becomes final
		disk := store.NewMemory()
		n, err := reopen(cfg, disk)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }()
		me := n.Accounts()[0]
		tx, err := types.SignNewTx(me.Key, types.LatestSignerForChainID(cfg.ChainID), &types.DynamicFeeTx{
			ChainID: cfg.ChainID, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(10 * params.GWei), Gas: 21_000, To: &common.Address{1}, Value: big.NewInt(1),
		})
		require.NoError(t, err)
		require.NoError(t, n.SendTransaction(tx))
		bubble.Await(t, look, func() bool { return n.Resolve(rpc.LatestBlockNumber).NumberU64() == 1 }, "the transaction is in a block")
		cancel()
		<-ended

		for range 2 { // the second one finds the block undone
			n, err = reopen(cfg, disk)
			require.NoError(t, err)
			_, pooled := n.Pooled(tx.Hash())
			require.True(t, pooled)
			require.Zero(t, n.Head().NumberU64())
			require.NoError(t, n.store.Close())
		}
	})
}

// reopen returns a node on a data directory in memory.
func reopen(cfg Config, disk *store.Memory) (*Node, error) {
	cfg.Logger = slog.New(slog.DiscardHandler)
	return newNode(cfg, disk.Open())
}
