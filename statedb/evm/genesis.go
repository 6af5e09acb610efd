package evm

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/statedb"
)

// Genesis stages the accounts of a genesis block in a view. The sum of all balances
// must fit into 128 bits. Otherwise a user could collect more than one account can
// hold, and the block in which that happens could not be finished. Errors wrap
// those of package statedb. After an error, the caller must drop or reset the view,
// because some accounts may be staged.
func Genesis(view *statedb.View, alloc types.GenesisAlloc) error {
	supply := new(big.Int)
	for addr, account := range alloc {
		if err := genesisAccount(view, addr, &account); err != nil {
			return fmt.Errorf("evm: genesis account %s: %w", addr, err)
		}
		if account.Balance != nil {
			supply.Add(supply, account.Balance)
		}
	}
	if supply.BitLen() > 128 {
		return fmt.Errorf("%w: sum of genesis balances is %v wei, want less than 2^128", statedb.ErrBalanceRange, supply)
	}
	return nil
}

func genesisAccount(view *statedb.View, addr common.Address, account *types.Account) error {
	balance := account.Balance
	if balance == nil {
		balance = new(big.Int)
	}
	amount, overflow := uint256.FromBig(balance)
	if overflow || balance.Sign() < 0 {
		return fmt.Errorf("%w: %v wei", statedb.ErrBalanceRange, balance)
	}
	codeHash := types.EmptyCodeHash
	if len(account.Code) > 0 {
		var err error
		if codeHash, err = view.SetCode(addr, account.Code); err != nil {
			return err
		}
	}
	for slot, value := range account.Storage {
		view.SetStorage(addr, slot, value)
	}
	return view.SetAccount(addr, statedb.Account{Nonce: account.Nonce, Balance: amount, CodeHash: codeHash, CodeSize: len(account.Code)})
}
