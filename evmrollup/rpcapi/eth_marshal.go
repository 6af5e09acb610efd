package rpcapi

import (
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq/evmrollup/node"
)

// object is a JSON object in an answer. It has the fields that go-ethereum gives to a
// block, transaction or receipt, and further ones of this node.
type object map[string]any

// encode returns the JSON object for v in go-ethereum's encoding.
func encode(v json.Marshaler) (object, error) {
	raw, err := v.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("rpcapi: encode %T: %w", v, err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("rpcapi: encode %T: %w", v, err)
	}
	o := make(object, len(fields)+8)
	for name, value := range fields {
		// geth omits fields that a transaction type or a fork does not have.
		if string(value) != "null" {
			o[name] = value
		}
	}
	return o, nil
}

// setProgress adds the fields that show how far a block has come on JAM.
func (o object) setProgress(p node.Progress) {
	o["queueStatus"] = p.Status
	o["workPackageHash"], o["jamHeaderHash"], o["jamSlot"] = nil, nil, nil
	if !p.Package.IsZero() {
		o["workPackageHash"] = p.Package
	}
	if !p.At.IsZero() {
		o["jamHeaderHash"] = p.At.Hash
		o["jamSlot"] = hexutil.Uint64(p.At.Slot)
	}
}

// header returns the JSON of a block's header.
func (a *api) header(b *node.Block) (object, error) {
	o, err := encode(b.Header())
	if err != nil {
		return nil, err
	}
	o.setProgress(a.node.Progress(b.NumberU64()))
	return o, nil
}

// block returns the JSON of a block, with whole transactions or only their hashes.
func (a *api) block(b *node.Block, full bool) (object, error) {
	o, err := blockObject(b.Block)
	if err != nil {
		return nil, err
	}
	o.setProgress(a.node.Progress(b.NumberU64()))
	txs := make([]any, len(b.Transactions()))
	for i, tx := range b.Transactions() {
		if !full {
			txs[i] = tx.Hash()
			continue
		}
		if txs[i], err = a.minedTransaction(b, i); err != nil {
			return nil, err
		}
	}
	o["transactions"] = txs
	return o, nil
}

// blockObject returns the JSON of a block without its transactions.
func blockObject(b *types.Block) (object, error) {
	o, err := encode(b.Header())
	if err != nil {
		return nil, err
	}
	o["size"] = hexutil.Uint64(b.Size())
	o["uncles"] = []common.Hash{}
	o["withdrawals"] = append([]*types.Withdrawal{}, b.Withdrawals()...)
	return o, nil
}

// minedTransaction returns the JSON of a transaction in a block.
func (a *api) minedTransaction(b *node.Block, index int) (object, error) {
	from, err := a.sender(b.Transactions()[index])
	if err != nil {
		return nil, err
	}
	o, err := placedTransaction(b, index, from)
	if err != nil {
		return nil, err
	}
	o.setProgress(a.node.Progress(b.NumberU64()))
	return o, nil
}

// placedTransaction returns the JSON of a transaction together with its position in
// a block.
func placedTransaction(b *node.Block, index int, from common.Address) (object, error) {
	tx := b.Transactions()[index]
	o, err := transactionObject(tx, from)
	if err != nil {
		return nil, err
	}
	o["blockHash"] = b.Hash()
	o["blockNumber"] = (*hexutil.Big)(b.Number())
	o["blockTimestamp"] = hexutil.Uint64(b.Time())
	o["transactionIndex"] = hexutil.Uint64(index)
	if tx.Type() != types.LegacyTxType && tx.Type() != types.AccessListTxType {
		// Wallets expect gasPrice to be the price that was paid.
		o["gasPrice"] = (*hexutil.Big)(b.Receipts[index].EffectiveGasPrice)
	}
	return o, nil
}

// pooledTransaction returns the JSON of a transaction that is not mined yet.
func (a *api) pooledTransaction(tx *types.Transaction, p node.Progress) (object, error) {
	from, err := a.sender(tx)
	if err != nil {
		return nil, err
	}
	o, err := transactionObject(tx, from)
	if err != nil {
		return nil, err
	}
	o["blockHash"], o["blockNumber"], o["blockTimestamp"], o["transactionIndex"] = nil, nil, nil, nil
	if tx.Type() != types.LegacyTxType && tx.Type() != types.AccessListTxType {
		o["gasPrice"] = (*hexutil.Big)(tx.GasFeeCap())
	}
	o.setProgress(p)
	return o, nil
}

// transactionObject returns the fields that mined and pooled transactions have
// in common.
func transactionObject(tx *types.Transaction, from common.Address) (object, error) {
	o, err := encode(tx)
	if err != nil {
		return nil, err
	}
	o["from"], o["to"] = from, tx.To()
	return o, nil
}

// sender returns the sender of a transaction.
func (a *api) sender(tx *types.Transaction) (common.Address, error) {
	from, err := types.Sender(a.signer, tx)
	if err != nil {
		return from, fmt.Errorf("rpcapi: sender of %s: %w", tx.Hash(), err)
	}
	return from, nil
}

// receipt returns the JSON of a transaction's receipt.
func (a *api) receipt(b *node.Block, index int) (object, error) {
	r := b.Receipts[index]
	o, err := encode(r)
	if err != nil {
		return nil, err
	}
	tx := b.Transactions()[index]
	from, err := a.sender(tx)
	if err != nil {
		return nil, err
	}
	o["from"], o["to"], o["type"] = from, tx.To(), hexutil.Uint(tx.Type())
	delete(o, "root")
	if r.ContractAddress == (common.Address{}) {
		o["contractAddress"] = nil
	}
	if r.Logs == nil {
		o["logs"] = []*types.Log{}
	}
	o.setProgress(a.node.Progress(b.NumberU64()))
	return o, nil
}
