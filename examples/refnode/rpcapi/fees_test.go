package rpcapi

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"
)

// Wallets offer twice the base fee and a tip. On a chain with room in its blocks the base fee falls, and that stays enough wherever it is.
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
