package rpcapi

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/evmrollup/node"
)

// Wallets offer twice the base fee and a tip. On a chain with room in its blocks the base fee
// falls, and that stays enough wherever it is.
func TestPricesOfWalletsSufficeAfterTheBaseFeeFell(t *testing.T) {
	s := serve(t, nil)
	c, id, tip := s.eth(s.server.URL), s.node.ChainConfig().ChainID, big.NewInt(1)
	for nonce := uint64(0); ; nonce++ {
		head, err := c.HeaderByNumber(t.Context(), nil)
		require.NoError(t, err)
		price := new(big.Int).Add(new(big.Int).Lsh(head.BaseFee, 1), tip)
		tx := types.MustSignNewTx(s.node.Accounts()[0].Key, types.LatestSignerForChainID(id), &types.DynamicFeeTx{
			ChainID: id, Nonce: nonce, GasTipCap: tip, GasFeeCap: price, Gas: 21_000, To: &common.Address{1},
		})
		require.NoError(t, c.SendTransaction(t.Context(), tx), "base fee %d", head.BaseFee)
		require.Equal(t, types.ReceiptStatusSuccessful, s.mined(tx).Status)
		if price.Cmp(big.NewInt(params.GWei)) < 0 {
			return
		}
		require.Less(t, nonce, uint64(20), "the base fee does not fall")
	}
}

// Before the first block the pool already knows its base fee. A transaction that
// does not pay it waits and is not announced as executable.
func TestTheFirstBlockHasABaseFee(t *testing.T) {
	for name, dir := range map[string]string{"memory": "", "disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(cfg *node.Config, _ *Config) { cfg.DataDir = dir })
			levels, err := s.node.Levels(t.Context())
			require.NoError(t, err)
			// Genesis is empty and its base fee is one gwei.
			require.EqualValues(t, params.GWei/8*7, levels.Pool.BaseFee)
			tx := types.MustSignNewTx(s.node.Accounts()[0].Key, types.LatestSignerForChainID(s.node.ChainConfig().ChainID), &types.DynamicFeeTx{
				ChainID: s.node.ChainConfig().ChainID, GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(5), Gas: 21_000, To: &common.Address{1},
			})
			require.NoError(t, s.node.SendTransaction(tx)) // from now on, blocks lower the base fee
			levels, err = s.node.Levels(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, levels.Pool.Parked)
			require.Zero(t, levels.Pool.Pending)
		})
	}
}
