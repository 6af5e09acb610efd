package txpool

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// The values read inside a transaction equal those of the accessors, for every
// type. The field must be found, otherwise an Add costs six more allocations.
func TestAmounts(t *testing.T) {
	one, two, three := big.NewInt(1), big.NewInt(2), big.NewInt(3)
	for _, data := range []types.TxData{
		&types.LegacyTx{GasPrice: two, Value: three},
		&types.AccessListTx{GasPrice: two, Value: three},
		&types.DynamicFeeTx{GasFeeCap: two, GasTipCap: one, Value: three},
		&types.BlobTx{GasFeeCap: uint256.NewInt(2), GasTipCap: uint256.NewInt(1), Value: uint256.NewInt(3)},
		&types.SetCodeTx{GasFeeCap: uint256.NewInt(2), GasTipCap: uint256.NewInt(1), Value: uint256.NewInt(3)},
		&types.LegacyTx{},
		&types.DynamicFeeTx{Value: new(big.Int).Lsh(one, 300)},
	} {
		tx := types.NewTx(data)
		feeCap, tip, value := amounts(tx)
		require.Equal(t, []*big.Int{tx.GasFeeCap(), tx.GasTipCap(), tx.Value()}, []*big.Int{feeCap, tip, value}, "type %d", tx.Type())
	}
	tx := types.NewTx(&types.DynamicFeeTx{GasFeeCap: two, GasTipCap: one, Value: three, To: &common.Address{1}})
	require.NotNil(t, payload[types.DynamicFeeTx](tx))
	require.Nil(t, payload[types.LegacyTx](tx))
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _, _ = amounts(tx) }))
}
