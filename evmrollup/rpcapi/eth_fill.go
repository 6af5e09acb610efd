package rpcapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
)

// filledTransaction is the answer of eth_fillTransaction: an unsigned transaction and
// its binary encoding.
type filledTransaction struct {
	Raw hexutil.Bytes      `json:"raw"` // binary encoding
	Tx  *types.Transaction `json:"tx"`  // the same in JSON
}

// FillTransaction implements eth_fillTransaction. It returns a transaction that a
// wallet can sign. If the arguments lack the nonce, the gas or the prices, it adds the
// values that a wallet would choose now.
func (a *ethCalls) FillTransaction(ctx context.Context, args callArgs) (_ *filledTransaction, err error) {
	defer ledger.Recover(&err)
	if err := a.limits.call(ctx, "eth_fillTransaction", 0); err != nil {
		return nil, err
	}
	if args.BlobHashes != nil || args.Blobs != nil {
		return nil, errNoBlobs
	}
	if err := a.fees.fill(ctx, &args); err != nil {
		return nil, err
	}
	if args.Data != nil && args.Input != nil && !bytes.Equal(*args.Data, *args.Input) {
		return nil, errors.New(`both "data" and "input" are set and not equal. Please use "input" to pass transaction call data`)
	}
	if err := args.checkCreation(); err != nil {
		return nil, err
	}
	if args.Nonce == nil {
		nonce, err := a.node.NextNonce(args.from())
		if err != nil {
			return nil, err
		}
		args.Nonce = (*hexutil.Uint64)(&nonce)
	}
	if args.Gas == nil {
		message := args
		message.Nonce, message.ChainID, message.BlobFeeCap = nil, nil, nil
		gas, err := a.EstimateGas(ctx, message, nil, nil, nil)
		if err != nil {
			return nil, err
		}
		args.Gas = &gas
	}
	if err := args.checkChain(a.node.ChainConfig().ChainID); err != nil {
		return nil, err
	}
	tx := types.NewTx(args.transaction(a.node.ChainConfig().ChainID))
	raw, err := tx.MarshalBinary()
	return &filledTransaction{raw, tx}, err
}

// fill adds missing gas prices to the arguments.
func (f *ethFees) fill(ctx context.Context, args *callArgs) error {
	switch {
	case args.BlobFeeCap != nil && args.BlobFeeCap.ToInt().Sign() == 0:
		return errors.New("maxFeePerBlobGas, if specified, must be non-zero")
	case args.twoPrices():
		return errTwoPrices
	case args.GasPrice != nil && args.AuthorizationList != nil:
		return errors.New("both gasPrice and authorizationList specified")
	case args.GasPrice != nil && args.GasPrice.ToInt().Sign() == 0:
		return errors.New("gasPrice must be non-zero after london fork")
	case args.GasPrice != nil:
		return nil
	case args.MaxFeePerGas != nil && args.MaxPriorityFeePerGas != nil && args.MaxFeePerGas.ToInt().Sign() == 0:
		return errors.New("maxFeePerGas must be non-zero")
	}
	if args.MaxPriorityFeePerGas == nil {
		tip, err := f.MaxPriorityFeePerGas(ctx)
		if err != nil {
			return err
		}
		args.MaxPriorityFeePerGas = tip
	}
	tip := args.MaxPriorityFeePerGas.ToInt()
	if args.MaxFeePerGas == nil {
		// This fee cap is high enough even if the base fee doubles.
		most := new(big.Int).Lsh(f.node.Resolve(rpc.PendingBlockNumber).BaseFee(), 1)
		args.MaxFeePerGas = (*hexutil.Big)(most.Add(most, tip))
	}
	if args.MaxFeePerGas.ToInt().Cmp(tip) < 0 {
		return fmt.Errorf("maxFeePerGas (%v) < maxPriorityFeePerGas (%v)", args.MaxFeePerGas, args.MaxPriorityFeePerGas)
	}
	return nil
}

// checkCreation returns an error if the arguments describe an invalid contract
// creation.
func (c *callArgs) checkCreation() error {
	switch {
	case c.To != nil:
		return nil
	case len(c.data()) == 0:
		return errors.New("contract creation without any data provided")
	case c.AuthorizationList != nil:
		return errors.New(`authorizationList provided for contract creation, but "to" field is missing`)
	}
	return nil
}

// transaction makes a transaction from arguments that have a nonce and gas.
func (c *callArgs) transaction(chainID *big.Int) types.TxData {
	nonce, gas, data, value := uint64(*c.Nonce), uint64(*c.Gas), c.data(), amount(c.Value)
	list := types.AccessList{}
	if c.AccessList != nil {
		list = *c.AccessList
	}
	// The fields that are present decide the type. A missing price is 0.
	switch {
	case c.GasPrice != nil && c.AccessList == nil:
		return &types.LegacyTx{Nonce: nonce, GasPrice: c.GasPrice.ToInt(), Gas: gas, To: c.To, Value: value.ToBig(), Data: data}
	case c.GasPrice != nil:
		return &types.AccessListTx{
			ChainID: chainID, Nonce: nonce, GasPrice: c.GasPrice.ToInt(), Gas: gas, To: c.To, Value: value.ToBig(), Data: data, AccessList: list,
		}
	case c.AuthorizationList != nil:
		return &types.SetCodeTx{
			ChainID: uint256.MustFromBig(chainID), Nonce: nonce, GasTipCap: amount(c.MaxPriorityFeePerGas), GasFeeCap: amount(c.MaxFeePerGas),
			Gas: gas, To: *c.To, Value: value, Data: data, AccessList: list, AuthList: c.AuthorizationList,
		}
	}
	return &types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, GasTipCap: amount(c.MaxPriorityFeePerGas).ToBig(), GasFeeCap: amount(c.MaxFeePerGas).ToBig(),
		Gas: gas, To: c.To, Value: value.ToBig(), Data: data, AccessList: list,
	}
}

// from returns the sender, which is the zero address by default.
func (c *callArgs) from() (from common.Address) {
	if c.From != nil {
		from = *c.From
	}
	return from
}
