package evm

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// Overrides hold for one call, also with values for which the tree has no room,
// and change nothing in the view.
func TestOverrides(t *testing.T) {
	store, root := genesis(t)
	_, view := run(t, store, root, dynamic(0, 0, nil, nil, deployer(counter)))
	before, err := view.Root()
	require.NoError(t, err)
	at, most := crypto.CreateAddress(addr(0), 0), new(uint256.Int).SetAllOne()
	balance, number := []byte{0x47, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3}, []byte{0x43, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3}
	slots := func(value byte) map[common.Hash]common.Hash { return map[common.Hash]common.Hash{{}: {31: value}} }
	identity := common.Address{19: 4}
	for name, c := range map[string]struct {
		changes Overrides
		want    []byte
	}{
		"none":              {Overrides{}, common.Hash{31: 1}.Bytes()},
		"a slot":            {Overrides{Accounts: map[common.Address]AccountOverride{at: {StateDiff: slots(8)}}}, common.Hash{31: 9}.Bytes()},
		"the whole storage": {Overrides{Accounts: map[common.Address]AccountOverride{at: {State: slots(6)}}}, common.Hash{31: 7}.Bytes()},
		"256 bits":          {Overrides{Accounts: map[common.Address]AccountOverride{at: {Code: balance, Balance: most}}}, most.PaddedBytes(32)},
		"no code":           {Overrides{Accounts: map[common.Address]AccountOverride{at: {Code: []byte{}}}}, nil},
		"the block": {Overrides{
			Accounts: map[common.Address]AccountOverride{at: {Code: number}}, Block: BlockOverride{Number: big.NewInt(77)},
		}, common.Hash{31: 77}.Bytes()},
		"a precompiled contract": {Overrides{Accounts: map[common.Address]AccountOverride{identity: {MovePrecompileTo: &at}}}, []byte{5, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			msg := &core.Message{From: addr(1), To: &at, GasLimit: 100_000, Data: []byte{5, 6}}
			result, err := CallWith(t.Context(), view, config, header(), noHashes, msg, c.changes, nil)
			require.NoError(t, err)
			require.NoError(t, result.Err)
			require.Equal(t, c.want, result.ReturnData)
			gas, _, err := EstimateWith(t.Context(), view, config, header(), noHashes, msg, 0, c.changes)
			require.NoError(t, err)
			require.Positive(t, gas)
			after, err := view.Root()
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
	for name, c := range map[string]struct {
		accounts map[common.Address]AccountOverride
		want     string
	}{
		"both kinds of storage":        {map[common.Address]AccountOverride{at: {State: slots(1), StateDiff: slots(1)}}, "has both 'state' and 'stateDiff'"},
		"not precompiled":              {map[common.Address]AccountOverride{at: {MovePrecompileTo: &identity}}, "is not a precompile"},
		"moved to a changed one":       {map[common.Address]AccountOverride{identity: {MovePrecompileTo: &at}, at: {}}, "is already overridden"},
		"moved to a later address":     {map[common.Address]AccountOverride{identity: {MovePrecompileTo: &common.Address{19: 9}}, {19: 9}: {}}, "is already overridden"},
		"neither precompiled nor free": {map[common.Address]AccountOverride{at: {MovePrecompileTo: &identity}, identity: {}}, "is not a precompile"},
	} {
		t.Run(name, func(t *testing.T) {
			msg := &core.Message{From: addr(1), To: &at, GasLimit: 100_000}
			_, err := CallWith(t.Context(), view, config, header(), noHashes, msg, Overrides{Accounts: c.accounts}, nil)
			require.ErrorIs(t, err, ErrOverride)
			require.ErrorContains(t, err, c.want)
			_, _, err = EstimateWith(t.Context(), view, config, header(), noHashes, msg, 0, Overrides{Accounts: c.accounts})
			require.ErrorIs(t, err, ErrOverride)
		})
	}
}
