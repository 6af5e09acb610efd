package evm

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// double is a precompiled contract that returns its input twice, for 5,000 gas.
type double struct{}

func (double) RequiredGas([]byte) uint64 { return 5_000 }
func (double) Run(input []byte) ([]byte, error) {
	return append(append([]byte{}, input...), input...), nil
}
func (double) Name() string { return "DOUBLE" }

// A chain adds precompiled contracts, for blocks, calls and estimates. The others remain.
func TestOwnPrecompiles(t *testing.T) {
	store, root := genesis(t)
	at, identity := common.Address{1: 0x99, 19: 1}, common.Address{19: 4}
	own := vm.PrecompiledContracts{at: double{}}
	view, err := store.View(root)
	require.NoError(t, err)
	block, err := NewBlock(view, config, header(), noHashes)
	require.NoError(t, err)
	block.SetPrecompiles(own)
	receipt, err := block.Apply(dynamic(0, 0, &at, nil, []byte{7}))
	require.NoError(t, err)
	require.Equal(t, types.ReceiptStatusSuccessful, receipt.Status)
	require.Equal(t, uint64(params.TxGas+16+5_000), receipt.GasUsed)
	receipt, err = block.Apply(dynamic(0, 1, &identity, nil, []byte{7}))
	require.NoError(t, err)
	require.Equal(t, uint64(params.TxGas+40), receipt.GasUsed, "the floor of EIP-7623, above the price of the contract")
	require.NoError(t, block.Finish())

	fresh, err := store.View(root)
	require.NoError(t, err)
	msg := &core.Message{From: addr(1), To: &at, GasLimit: 100_000, Data: []byte{7}}
	result, err := CallWith(t.Context(), fresh, config, header(), noHashes, msg, Overrides{Precompiles: own}, nil)
	require.NoError(t, err)
	require.Equal(t, []byte{7, 7}, result.ReturnData)
	gas, _, err := EstimateWith(t.Context(), fresh, config, header(), noHashes, msg, 0, Overrides{Precompiles: own})
	require.NoError(t, err)
	require.InDelta(t, params.TxGas+16+5_000, gas, 600)
	result, err = CallWith(t.Context(), fresh, config, header(), noHashes, msg, Overrides{}, nil)
	require.NoError(t, err)
	require.Empty(t, result.ReturnData, "another chain has no such contract")
}

// The estimate of a chain with own precompiled contracts is as close as that of go-ethereum's
// estimator, and fails as that does.
func TestEstimateWithOwnPrecompiles(t *testing.T) {
	store, root := genesis(t)
	own := Overrides{Precompiles: vm.PrecompiledContracts{{1: 0x99}: double{}}}
	revert, rich := common.FromHex("0x60016000526020600060fd"), uint256.NewInt(params.Ether)
	for name, c := range map[string]struct {
		msg core.Message
		cap uint64
	}{
		"transfer":   {core.Message{From: addr(1), To: &common.Address{7}, Value: uint256.NewInt(1)}, 0},
		"deployment": {core.Message{From: addr(1), Data: deployer(counter)}, 0},
		"price":      {core.Message{From: addr(1), Data: deployer(counter), GasFeeCap: uint256.NewInt(params.GWei), GasPrice: uint256.NewInt(params.GWei)}, 0},
		"cap":        {core.Message{From: addr(1), Data: deployer(counter)}, 30_000},
		"revert":     {core.Message{From: addr(1), Data: revert}, 0},
		"poor":       {core.Message{From: addr(1), Data: deployer(counter), Value: rich, GasFeeCap: rich, GasPrice: rich}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			view, err := store.View(root)
			require.NoError(t, err)
			want, wantRevert, wantErr := EstimateWith(t.Context(), view, config, header(), noHashes, &c.msg, c.cap, Overrides{})
			have, haveRevert, haveErr := EstimateWith(t.Context(), view, config, header(), noHashes, &c.msg, c.cap, own)
			require.Equal(t, wantErr == nil, haveErr == nil, "%v, want %v", haveErr, wantErr)
			require.Equal(t, wantRevert, haveRevert)
			require.InDelta(t, want, have, float64(want)*2*estimateSlack)
		})
	}
}
