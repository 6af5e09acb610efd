package txpool

import (
	"math/big"
	"reflect"

	"github.com/ethereum/go-ethereum/core/types"
)

// innerField is the field of a transaction with its payload.
//
// go-ethereum's accessors copy a transaction's amounts. These are six
// allocations per Add, most of its cost, so the pool reads the fields in place.
// This depends on the name of an unexported field of go-ethereum. If the field
// does not exist, the accessors are used.
var innerField, hasInner = reflect.TypeFor[types.Transaction]().FieldByName("inner")

// amounts returns a transaction's fee cap, tip and value in wei, which the
// caller must not change. For a transaction with a single price, fee cap and
// tip are that price.
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

// chainOf returns the chain id of a transaction, which the caller must not
// change.
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

// payload returns the payload of a transaction, or nil if it has another type.
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
