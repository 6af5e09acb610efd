package rpcapi

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/node"
)

// ethChain implements the eth methods that read blocks.
type ethChain struct{ *api }

// ChainId implements eth_chainId.
func (a *ethChain) ChainId() *hexutil.Big { return (*hexutil.Big)(a.node.ChainConfig().ChainID) }

// BlockNumber implements eth_blockNumber. It returns the number of the latest block:
// the highest block that the best JAM chain has accumulated together with all blocks
// before it.
func (a *ethChain) BlockNumber() hexutil.Uint64 {
	return hexutil.Uint64(a.node.Resolve(rpc.LatestBlockNumber).NumberU64())
}

// Syncing implements eth_syncing. It always returns false, because the node makes the
// rollup's blocks itself and is therefore never behind.
func (a *ethChain) Syncing() bool { return false }

// Accounts implements eth_accounts. It returns an empty list, because the node holds no keys.
func (a *ethChain) Accounts() []common.Address { return []common.Address{} }

// GetHeaderByNumber implements eth_getHeaderByNumber. It returns null for a block that does not
// exist and, as geth does, for the tag pending.
func (a *ethChain) GetHeaderByNumber(_ context.Context, number rpc.BlockNumber) (_ object, err error) {
	defer ledger.Recover(&err)
	if number == rpc.PendingBlockNumber {
		return nil, nil
	}
	b := a.node.Resolve(number)
	if b == nil {
		return nil, nil
	}
	return a.header(b)
}

// GetHeaderByHash implements eth_getHeaderByHash. It returns null for a block
// that does not exist.
func (a *ethChain) GetHeaderByHash(_ context.Context, hash common.Hash) (_ object, err error) {
	defer ledger.Recover(&err)
	b := a.node.BlockByHash(hash)
	if b == nil {
		return nil, nil
	}
	return a.header(b)
}

// GetBlockByNumber implements eth_getBlockByNumber. It returns null for a block
// that does not exist.
func (a *ethChain) GetBlockByNumber(_ context.Context, number rpc.BlockNumber, full bool) (_ object, err error) {
	defer ledger.Recover(&err)
	b, err := whole(a.node.Resolve(number))
	if b == nil {
		return nil, err
	}
	return a.block(b, full)
}

// GetBlockByHash implements eth_getBlockByHash. It returns null for a block
// that does not exist.
func (a *ethChain) GetBlockByHash(_ context.Context, hash common.Hash, full bool) (_ object, err error) {
	defer ledger.Recover(&err)
	b, err := whole(a.node.BlockByHash(hash))
	if b == nil {
		return nil, err
	}
	return a.block(b, full)
}

// GetBlockTransactionCountByNumber implements
// eth_getBlockTransactionCountByNumber. It returns null for a block that does
// not exist.
func (a *ethChain) GetBlockTransactionCountByNumber(_ context.Context, number rpc.BlockNumber) (_ *hexutil.Uint, err error) {
	defer ledger.Recover(&err)
	return transactionCount(a.node.Resolve(number))
}

// GetBlockTransactionCountByHash implements eth_getBlockTransactionCountByHash.
// It returns null for a block that does not exist.
func (a *ethChain) GetBlockTransactionCountByHash(_ context.Context, hash common.Hash) (_ *hexutil.Uint, err error) {
	defer ledger.Recover(&err)
	return transactionCount(a.node.BlockByHash(hash))
}

func transactionCount(b *node.Block) (*hexutil.Uint, error) {
	b, err := whole(b)
	if b == nil {
		return nil, err
	}
	n := hexutil.Uint(len(b.Transactions()))
	return &n, nil
}

// GetBlockReceipts implements eth_getBlockReceipts. It returns null for a block
// that does not exist.
func (a *ethChain) GetBlockReceipts(ctx context.Context, at rpc.BlockNumberOrHash) (_ []object, err error) {
	defer ledger.Recover(&err)
	if err := a.limits.call(ctx, "eth_getBlockReceipts", 0); err != nil {
		return nil, err
	}
	b, err := a.resolve(at)
	if err != nil {
		return nil, nil
	}
	if b, err = whole(b); err != nil {
		return nil, err
	}
	receipts := make([]object, len(b.Receipts))
	for i := range receipts {
		if receipts[i], err = a.receipt(b, i); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}

// GetUncleCountByBlockNumber implements eth_getUncleCountByBlockNumber. It
// returns 0, because blocks have no uncles, and null for a block that does not
// exist.
func (a *ethChain) GetUncleCountByBlockNumber(_ context.Context, number rpc.BlockNumber) (_ *hexutil.Uint, err error) {
	defer ledger.Recover(&err)
	return noUncles(a.node.Resolve(number)), nil
}

// GetUncleCountByBlockHash implements eth_getUncleCountByBlockHash. It returns
// 0, because blocks have no uncles, and null for a block that does not exist.
func (a *ethChain) GetUncleCountByBlockHash(_ context.Context, hash common.Hash) (_ *hexutil.Uint, err error) {
	defer ledger.Recover(&err)
	return noUncles(a.node.BlockByHash(hash)), nil
}

func noUncles(b *node.Block) *hexutil.Uint {
	if b == nil {
		return nil
	}
	return new(hexutil.Uint)
}

// GetUncleByBlockNumberAndIndex implements eth_getUncleByBlockNumberAndIndex.
// It returns null, because blocks have no uncles.
func (a *ethChain) GetUncleByBlockNumberAndIndex(rpc.BlockNumber, hexutil.Uint) object { return nil }

// GetUncleByBlockHashAndIndex implements eth_getUncleByBlockHashAndIndex. It
// returns null, because blocks have no uncles.
func (a *ethChain) GetUncleByBlockHashAndIndex(common.Hash, hexutil.Uint) object { return nil }
