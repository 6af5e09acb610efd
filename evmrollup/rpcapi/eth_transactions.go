package rpcapi

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/txpool"
)

// ethTransactions implements the eth methods that send and read transactions.
type ethTransactions struct{ *api }

// SendRawTransaction implements eth_sendRawTransaction. raw is the binary
// encoding of a signed transaction of type 0, 1, 2 or 4.
func (a *ethTransactions) SendRawTransaction(ctx context.Context, raw hexutil.Bytes) (_ common.Hash, err error) {
	defer ledger.Recover(&err)
	if err := a.limits.call(ctx, sendMethod, len(raw)); err != nil {
		return common.Hash{}, err
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		a.limits.strike(ctx, txpool.ErrMalformed)
		return common.Hash{}, err
	}
	switch err := a.send(ctx, tx); {
	case errors.Is(err, builder.ErrBusy):
		return common.Hash{}, codedError{err, CodeLimited}
	case err != nil:
		a.limits.strike(ctx, err)
		return common.Hash{}, err
	}
	a.awaitMined(ctx, tx.Hash())
	return tx.Hash(), nil
}

// SendRawTransactionSync implements eth_sendRawTransactionSync (EIP-7966). It sends a
// transaction and waits for its receipt. If the receipt does not arrive in time, the
// error has the code [CodeTimeout].
//
// timeout is the maximum wait in milliseconds, as a JSON number or, as in drafts of the
// EIP, as a hex string. The maximum is half of [Config].RequestTime; this is also the
// default, and the meaning of 0.
func (a *ethTransactions) SendRawTransactionSync(ctx context.Context, raw hexutil.Bytes, timeout *milliseconds) (_ object, err error) {
	defer ledger.Recover(&err)
	cursor, limit := a.node.HeadCursor(), a.cfg.RequestTime/2
	if timeout != nil && *timeout > 0 && uint64(*timeout) < uint64(limit.Milliseconds()) {
		limit = time.Duration(*timeout) * time.Millisecond
	}
	hash, err := a.SendRawTransaction(ctx, raw)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		receipt, err := a.GetTransactionReceipt(ctx, hash)
		if err != nil || receipt != nil {
			return receipt, err
		}
		_, next, more, err := a.node.HeadChanges(cursor)
		if err != nil {
			next = a.node.HeadCursor()
		}
		cursor = next
		select {
		case <-more:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
			return nil, timeoutError{hash}
		}
	}
}

// milliseconds is a JSON number, or a string with a hex number.
type milliseconds uint64

// UnmarshalJSON implements json.Unmarshaler.
func (m *milliseconds) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, (*math.HexOrDecimal64)(m))
	}
	return json.Unmarshal(raw, (*uint64)(m))
}

// GetTransactionByHash implements eth_getTransactionByHash. It returns null for an
// unknown transaction. A transaction counts as mined when its block is latest. Until
// then it is pending, and the field queueStatus shows its progress.
func (a *ethTransactions) GetTransactionByHash(ctx context.Context, hash common.Hash) (_ object, err error) {
	defer ledger.Recover(&err)
	if b, index, ok := a.node.Transaction(hash); ok {
		if a.mined(b.NumberU64()) {
			return a.minedTransaction(b, index)
		}
		return a.pooledTransaction(b.Transactions()[index], a.node.Progress(b.NumberU64()))
	}
	if answer, asked, err := askLeader[object](ctx, a.api, "eth_getTransactionByHash", hash); asked {
		return answer, err
	}
	if tx, ok := a.node.Pooled(hash); ok {
		return a.pooledTransaction(tx, a.node.PooledProgress())
	}
	return nil, nil
}

// GetTransactionReceipt implements eth_getTransactionReceipt. It returns null
// until the transaction's block is latest.
func (a *ethTransactions) GetTransactionReceipt(_ context.Context, hash common.Hash) (_ object, err error) {
	defer ledger.Recover(&err)
	b, index, ok := a.node.Transaction(hash)
	if !ok || !a.mined(b.NumberU64()) {
		return nil, nil
	}
	return a.receipt(b, index)
}

// mined reports whether a block is latest or older than the latest block.
func (a *api) mined(number uint64) bool {
	return number <= a.node.Resolve(rpc.LatestBlockNumber).NumberU64()
}

// GetTransactionByBlockNumberAndIndex implements
// eth_getTransactionByBlockNumberAndIndex. It returns null if there is no such
// block or transaction.
func (a *ethTransactions) GetTransactionByBlockNumberAndIndex(_ context.Context, number rpc.BlockNumber, index hexutil.Uint) (_ object, err error) {
	defer ledger.Recover(&err)
	b, err := whole(a.node.Resolve(number))
	if b == nil || uint64(index) >= uint64(len(b.Transactions())) {
		return nil, err
	}
	return a.minedTransaction(b, int(index))
}

// GetTransactionByBlockHashAndIndex implements
// eth_getTransactionByBlockHashAndIndex. It returns null if there is no such
// block or transaction.
func (a *ethTransactions) GetTransactionByBlockHashAndIndex(_ context.Context, hash common.Hash, index hexutil.Uint) (_ object, err error) {
	defer ledger.Recover(&err)
	b, err := whole(a.node.BlockByHash(hash))
	if b == nil || uint64(index) >= uint64(len(b.Transactions())) {
		return nil, err
	}
	return a.minedTransaction(b, int(index))
}

// GetRawTransactionByHash implements eth_getRawTransactionByHash. It returns the binary
// encoding of a transaction, or null if the transaction is unknown.
func (a *ethTransactions) GetRawTransactionByHash(ctx context.Context, hash common.Hash) (_ hexutil.Bytes, err error) {
	defer ledger.Recover(&err)
	if b, index, ok := a.node.Transaction(hash); ok {
		return b.Transactions()[index].MarshalBinary()
	}
	if answer, asked, err := askLeader[hexutil.Bytes](ctx, a.api, "eth_getRawTransactionByHash", hash); asked {
		return answer, err
	}
	tx, pooled := a.node.Pooled(hash)
	if !pooled {
		return nil, nil
	}
	return tx.MarshalBinary()
}

// GetRawTransactionByBlockNumberAndIndex implements
// eth_getRawTransactionByBlockNumberAndIndex. It returns the binary encoding of a
// transaction, or no bytes if the block or the transaction does not exist.
func (a *ethTransactions) GetRawTransactionByBlockNumberAndIndex(_ context.Context, number rpc.BlockNumber, index hexutil.Uint) (_ hexutil.Bytes, err error) {
	defer ledger.Recover(&err)
	return rawTransaction(a.node.Resolve(number), index)
}

// GetRawTransactionByBlockHashAndIndex implements
// eth_getRawTransactionByBlockHashAndIndex. It returns the binary encoding of a
// transaction, or no bytes if the block or the transaction does not exist.
func (a *ethTransactions) GetRawTransactionByBlockHashAndIndex(_ context.Context, hash common.Hash, index hexutil.Uint) (_ hexutil.Bytes, err error) {
	defer ledger.Recover(&err)
	return rawTransaction(a.node.BlockByHash(hash), index)
}

func rawTransaction(b *node.Block, index hexutil.Uint) (hexutil.Bytes, error) {
	b, err := whole(b)
	if b == nil || uint64(index) >= uint64(len(b.Transactions())) {
		return nil, err
	}
	return b.Transactions()[index].MarshalBinary()
}

// PendingTransactions implements eth_pendingTransactions, which lists the
// transactions of the node's own accounts in the pool. It returns an empty list,
// because the node has no keys.
func (a *ethTransactions) PendingTransactions() []object { return []object{} }
