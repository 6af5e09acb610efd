package rpcapi

import (
	"context"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/node"
)

// Chain implements the eth methods that read blocks.
type Chain struct{ *api }

// ChainId implements eth_chainId.
func (a *Chain) ChainId() *hexutil.Big { return (*hexutil.Big)(a.node.ChainConfig().ChainID) }

// BlockNumber implements eth_blockNumber. It returns the number of the latest
// block: the highest block that, like all its predecessors, is accumulated on
// the best JAM chain.
func (a *Chain) BlockNumber() hexutil.Uint64 {
	return hexutil.Uint64(a.node.Resolve(rpc.LatestBlockNumber).NumberU64())
}

// Syncing implements eth_syncing. It returns false: the node creates the blocks
// itself and is never behind.
func (a *Chain) Syncing() bool { return false }

// Accounts implements eth_accounts. It returns an empty list: the node holds no
// keys.
func (a *Chain) Accounts() []common.Address { return []common.Address{} }

// GetHeaderByNumber implements eth_getHeaderByNumber. It returns null for a
// block that does not exist, and for the tag pending, as geth does.
func (a *Chain) GetHeaderByNumber(_ context.Context, number rpc.BlockNumber) (_ object, err error) {
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
func (a *Chain) GetHeaderByHash(_ context.Context, hash common.Hash) (_ object, err error) {
	defer ledger.Recover(&err)
	b := a.node.BlockByHash(hash)
	if b == nil {
		return nil, nil
	}
	return a.header(b)
}

// GetBlockByNumber implements eth_getBlockByNumber. It returns null for a block
// that does not exist.
func (a *Chain) GetBlockByNumber(_ context.Context, number rpc.BlockNumber, full bool) (_ object, err error) {
	defer ledger.Recover(&err)
	b, err := whole(a.node.Resolve(number))
	if b == nil {
		return nil, err
	}
	return a.block(b, full)
}

// GetBlockByHash implements eth_getBlockByHash. It returns null for a block
// that does not exist.
func (a *Chain) GetBlockByHash(_ context.Context, hash common.Hash, full bool) (_ object, err error) {
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
func (a *Chain) GetBlockTransactionCountByNumber(_ context.Context, number rpc.BlockNumber) (_ *hexutil.Uint, err error) {
	defer ledger.Recover(&err)
	return transactionCount(a.node.Resolve(number))
}

// GetBlockTransactionCountByHash implements eth_getBlockTransactionCountByHash.
// It returns null for a block that does not exist.
func (a *Chain) GetBlockTransactionCountByHash(_ context.Context, hash common.Hash) (_ *hexutil.Uint, err error) {
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
func (a *Chain) GetBlockReceipts(ctx context.Context, at rpc.BlockNumberOrHash) (_ []object, err error) {
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
func (a *Chain) GetUncleCountByBlockNumber(_ context.Context, number rpc.BlockNumber) (_ *hexutil.Uint, err error) {
	defer ledger.Recover(&err)
	return noUncles(a.node.Resolve(number)), nil
}

// GetUncleCountByBlockHash implements eth_getUncleCountByBlockHash. It returns
// 0, because blocks have no uncles, and null for a block that does not exist.
func (a *Chain) GetUncleCountByBlockHash(_ context.Context, hash common.Hash) (_ *hexutil.Uint, err error) {
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
func (a *Chain) GetUncleByBlockNumberAndIndex(rpc.BlockNumber, hexutil.Uint) object { return nil }

// GetUncleByBlockHashAndIndex implements eth_getUncleByBlockHashAndIndex. It
// returns null, because blocks have no uncles.
func (a *Chain) GetUncleByBlockHashAndIndex(common.Hash, hexutil.Uint) object { return nil }

// Net implements the net namespace.
type Net struct{ *api }

// Version implements net_version. It returns the chain id in decimal.
func (a *Net) Version() string { return a.node.ChainConfig().ChainID.String() }

// Listening implements net_listening. It always returns true.
func (*Net) Listening() bool { return true }

// PeerCount implements net_peerCount. It returns 0: the node has no peers.
func (*Net) PeerCount() hexutil.Uint { return 0 }

// Web3 implements the web3 namespace.
type Web3 struct{ *api }

// ClientVersion implements web3_clientVersion. It returns [Config].Client, with "anvil/" before
// it in developer mode.
func (w *Web3) ClientVersion() string {
	if w.cfg.Dev {
		return devClient + w.cfg.Client
	}
	return w.cfg.Client
}

// Sha3 implements web3_sha3. It returns the Keccak-256 hash of data.
func (*Web3) Sha3(data hexutil.Bytes) hexutil.Bytes { return crypto.Keccak256(data) }

// quoteNonce returns a nonce in decimal, as txpool_content writes it.
func quoteNonce(nonce uint64) string { return strconv.FormatUint(nonce, 10) }
