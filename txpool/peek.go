package txpool

import (
	"math/big"
	"reflect"

	"github.com/ethereum/go-ethereum/core/types"
)

// go-ethereum's accessors copy a transaction's amounts: six allocations for each Add, which are most of what a hot one would cost. So they
// are read where they are. That is the one thing here that depends on how another package names a field that it does not export: if it is not
// found, the accessors do.

// innerField is where a transaction has its payload.
var innerField, hasInner = reflect.TypeFor[types.Transaction]().FieldByName("inner")

// amounts returns a transaction's fee cap, tip and value in wei, which must not be changed. Those with one price have it twice.
func amounts(tx *types.Transaction) (feeCap, tip, value *big.Int) {
	switch tx.Type() {
	case types.DynamicFeeTxType:
		if t := payload[types.DynamicFeeTx](tx); t != nil {
			return t.GasFeeCap, t.GasTipCap, t.Value
		}
	case types.LegacyTxType:
		if t := payload[types.LegacyTx](tx); t != nil {
			return t.GasPrice, t.GasPrice, t.Value
		}
	case types.AccessListTxType:
		if t := payload[types.AccessListTx](tx); t != nil {
			return t.GasPrice, t.GasPrice, t.Value
		}
	}
	return tx.GasFeeCap(), tx.GasTipCap(), tx.Value()
}

// chainOf returns the id of the chain that a transaction is signed for, which must not be changed.
func chainOf(tx *types.Transaction) *big.Int {
	switch tx.Type() {
	case types.DynamicFeeTxType:
		if t := payload[types.DynamicFeeTx](tx); t != nil && t.ChainID != nil {
			return t.ChainID
		}
	case types.AccessListTxType:
		if t := payload[types.AccessListTx](tx); t != nil && t.ChainID != nil {
			return t.ChainID
		}
	}
	return tx.ChainId()
}

// payload returns what is inside a transaction, or nil if that is something else.
func payload[T any](tx *types.Transaction) *T {
	if !hasInner || innerField.Type.Kind() != reflect.Interface {
		return nil
	}
	v := reflect.ValueOf(tx).Elem().Field(innerField.Index[0]).Elem()
	if v.Kind() != reflect.Pointer || v.Type().Elem() != reflect.TypeFor[T]() {
		return nil
	}
	return (*T)(v.UnsafePointer())
}
