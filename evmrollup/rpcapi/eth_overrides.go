package rpcapi

import (
	"errors"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq/statedb/evm"
)

// stateOverride maps accounts to the values that a call sees instead of the real ones.
// The types in this file have the same names as in geth, because decoding errors
// contain the names.
type stateOverride map[common.Address]accountOverride

// accountOverride contains the overrides of one account. A field that is nil
// changes nothing.
type accountOverride struct {
	Nonce   *hexutil.Uint64 `json:"nonce"`   // of the account
	Code    *hexutil.Bytes  `json:"code"`    // of the account
	Balance *hexutil.Big    `json:"balance"` // in wei
	// State replaces the whole storage of the account.
	State map[common.Hash]common.Hash `json:"state"`
	// StateDiff replaces single slots of the storage.
	StateDiff map[common.Hash]common.Hash `json:"stateDiff"`
	// MovePrecompileTo is the address to which the precompiled contract of this account is
	// moved.
	MovePrecompileTo *common.Address `json:"movePrecompileToAddress"`
}

// changes converts the overrides to the type of package evm.
func (o *stateOverride) changes() map[common.Address]evm.AccountOverride {
	if o == nil {
		return nil
	}
	all := make(map[common.Address]evm.AccountOverride)
	for addr, account := range *o {
		c := evm.AccountOverride{
			Nonce: (*uint64)(account.Nonce), State: account.State, StateDiff: account.StateDiff, MovePrecompileTo: account.MovePrecompileTo,
		}
		if account.Code != nil {
			c.Code = append([]byte{}, *account.Code...)
		}
		if account.Balance != nil {
			c.Balance = amount(account.Balance)
		}
		all[addr] = c
	}
	return all
}

// blockOverrides contains the block fields that a call sees instead of the real ones. A
// nil field overrides nothing.
type blockOverrides struct {
	Number        *hexutil.Big       `json:"number"`        // of the block
	Difficulty    *hexutil.Big       `json:"difficulty"`    // ignored: the chain has none
	Time          *hexutil.Uint64    `json:"time"`          // in Unix seconds
	GasLimit      *hexutil.Uint64    `json:"gasLimit"`      // of the block
	FeeRecipient  *common.Address    `json:"feeRecipient"`  // of the block
	PrevRandao    *common.Hash       `json:"prevRandao"`    // of the block
	BaseFeePerGas *hexutil.Big       `json:"baseFeePerGas"` // in wei
	BlobBaseFee   *hexutil.Big       `json:"blobBaseFee"`   // in wei
	BeaconRoot    *common.Hash       `json:"beaconRoot"`    // in eth_simulateV1 only
	Withdrawals   *types.Withdrawals `json:"withdrawals"`   // in eth_simulateV1 only
}

// changes converts the overrides to the type of package evm.
func (o *blockOverrides) changes() (evm.BlockOverride, error) {
	switch {
	case o == nil:
		return evm.BlockOverride{}, nil
	case o.BeaconRoot != nil:
		return evm.BlockOverride{}, errors.New(`block override "beaconRoot" is not supported for this RPC method`)
	case o.Withdrawals != nil:
		return evm.BlockOverride{}, errors.New(`block override "withdrawals" is not supported for this RPC method`)
	}
	return evm.BlockOverride{
		Number: (*big.Int)(o.Number), BaseFee: (*big.Int)(o.BaseFeePerGas), BlobBaseFee: (*big.Int)(o.BlobBaseFee),
		Time: (*uint64)(o.Time), GasLimit: (*uint64)(o.GasLimit), Coinbase: o.FeeRecipient, Random: o.PrevRandao,
	}, nil
}

// withoutOverride removes the prefix of package evm from an override error, as in geth.
func withoutOverride(err error) error {
	if !errors.Is(err, evm.ErrOverride) {
		return err
	}
	return errors.New(strings.TrimPrefix(err.Error(), evm.ErrOverride.Error()+": "))
}
