package evmrollup

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/txpool"
)

// priced signs a transfer of a user with a price and a tip in wei.
func priced(i int, nonce uint64, price, tip int64) *types.Transaction {
	key, _ := user(i)
	return types.MustSignNewTx(key, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, GasTipCap: big.NewInt(tip), GasFeeCap: big.NewInt(price), Gas: 21_000, To: &common.Address{1}, Value: big.NewInt(1),
	})
}

// On a chain without other transactions, one below the base fee is in a block after some empty
// ones, as on Ethereum. No block is made for one that the base fee can never reach.
func TestBaseFeeFallsOnAnIdleChain(t *testing.T) {
	r := recovered(t, keepNothing)
	head := r.ledger.Head()
	tx := priced(0, 0, head.BaseFee().Int64()*8/10, 1)
	require.NoError(t, r.SendTransaction(tx))
	blocks := 0
	for ; r.TransactionStatus(tx.Hash()).Block == nil; blocks++ {
		r.addBlock(t)
	}
	require.Equal(t, 2, blocks, "0.875, 0.766")

	r.SlotBegan()
	_, _, err := r.Propose(t.Context(), r.ledger.Head().NumberU64()+1)
	require.ErrorIs(t, err, builder.ErrIdle, "nothing waits")

	never := priced(1, 0, 6, 1)
	require.NoError(t, r.SendTransaction(never))
	for r.NextBaseFee().Cmp(big.NewInt(8)) >= 0 {
		require.Empty(t, r.addBlock(t).Body.Transactions())
	}
	r.SlotBegan()
	_, _, err = r.Propose(t.Context(), r.ledger.Head().NumberU64()+1)
	require.ErrorIs(t, err, builder.ErrIdle, "the base fee stays at 7 wei")
}

// No block is made for transactions below the base fee with automine off, and at most one in a
// slot.
func TestEmptyBlocksBelongToSlots(t *testing.T) {
	r := recovered(t, keepNothing)
	require.NoError(t, r.SendTransaction(priced(0, 0, 1000, 1)))
	r.addBlock(t)
	propose := func() error {
		_, _, err := r.Propose(t.Context(), r.ledger.Head().NumberU64()+1)
		return err
	}
	require.ErrorIs(t, propose(), builder.ErrIdle)
	r.SetAutomine(false)
	r.SlotBegan()
	require.ErrorIs(t, propose(), builder.ErrIdle)
}

// A replacement pays a tenth more than the old transaction, as for geth and MetaMask, both
// rounded down.
func TestReplacementPaysATenthMore(t *testing.T) {
	r := recovered(t, keepNothing)
	const price, tip int64 = 20_000_000_007, 1_234_567_891
	require.NoError(t, r.SendTransaction(priced(0, 0, price, tip)))
	for _, tooLow := range []*types.Transaction{priced(0, 0, price*11/10-1, tip*2), priced(0, 0, price*2, tip*11/10-1)} {
		require.ErrorIs(t, r.SendTransaction(tooLow), txpool.ErrReplaceUnderpriced)
	}
	require.NoError(t, r.SendTransaction(priced(0, 0, price*11/10, tip*11/10)))
}
