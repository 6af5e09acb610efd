package rpcapi

import (
	"context"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/examples/refnode/node"
)

// Chain answers what concerns blocks.
type Chain struct{ *api }

// ChainId is eth_chainId.
func (a *Chain) ChainId() *hexutil.Big { return (*hexutil.Big)(a.node.ChainConfig().ChainID) }

// BlockNumber is eth_blockNumber: the number of the latest block, the highest without a gap below it that is accumulated
// on the best JAM chain.
func (a *Chain) BlockNumber() hexutil.Uint64 {
	return hexutil.Uint64(a.node.Resolve(rpc.LatestBlockNumber).NumberU64())
}

// Syncing is eth_syncing: the node makes the blocks itself, so it is never behind.
func (a *Chain) Syncing() bool { return false }

// Accounts is eth_accounts: the node signs for nobody.
func (a *Chain) Accounts() []common.Address { return []common.Address{} }

// GetBlockByNumber is eth_getBlockByNumber; null for a block that does not exist.
func (a *Chain) GetBlockByNumber(_ context.Context, number rpc.BlockNumber, full bool) (object, error) {
	b := a.node.Resolve(number)
	if b == nil {
		return nil, nil
	}
	return a.block(b, full)
}

// GetBlockByHash is eth_getBlockByHash; null for a block that does not exist.
func (a *Chain) GetBlockByHash(_ context.Context, hash common.Hash, full bool) (object, error) {
	b := a.node.BlockByHash(hash)
	if b == nil {
		return nil, nil
	}
	return a.block(b, full)
}

// GetBlockTransactionCountByNumber is eth_getBlockTransactionCountByNumber; null for a block that does not exist.
func (a *Chain) GetBlockTransactionCountByNumber(_ context.Context, number rpc.BlockNumber) *hexutil.Uint {
	b := a.node.Resolve(number)
	if b == nil {
		return nil
	}
	n := hexutil.Uint(len(b.Transactions()))
	return &n
}

// GetBlockTransactionCountByHash is eth_getBlockTransactionCountByHash; null for a block that does not exist.
func (a *Chain) GetBlockTransactionCountByHash(_ context.Context, hash common.Hash) *hexutil.Uint {
	b := a.node.BlockByHash(hash)
	if b == nil {
		return nil
	}
	n := hexutil.Uint(len(b.Transactions()))
	return &n
}

// GetBlockReceipts is eth_getBlockReceipts; null for a block that does not exist.
func (a *Chain) GetBlockReceipts(ctx context.Context, at rpc.BlockNumberOrHash) ([]object, error) {
	if err := a.limits.call(ctx, "eth_getBlockReceipts", 0); err != nil {
		return nil, err
	}
	b, err := a.resolve(at)
	if err != nil {
		return nil, nil
	}
	receipts := make([]object, len(b.Receipts))
	for i := range receipts {
		if receipts[i], err = a.receipt(b, i); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}

// GetUncleCountByBlockNumber is eth_getUncleCountByBlockNumber: no block has uncles; null for one that does not exist.
func (a *Chain) GetUncleCountByBlockNumber(_ context.Context, number rpc.BlockNumber) *hexutil.Uint {
	return none(a.node.Resolve(number))
}

// GetUncleCountByBlockHash is eth_getUncleCountByBlockHash: no block has uncles; null for one that does not exist.
func (a *Chain) GetUncleCountByBlockHash(_ context.Context, hash common.Hash) *hexutil.Uint {
	return none(a.node.BlockByHash(hash))
}

func none(b *node.Block) *hexutil.Uint {
	if b == nil {
		return nil
	}
	return new(hexutil.Uint)
}

// GetUncleByBlockNumberAndIndex is eth_getUncleByBlockNumberAndIndex: null, no block has uncles.
func (a *Chain) GetUncleByBlockNumberAndIndex(rpc.BlockNumber, hexutil.Uint) object { return nil }

// GetUncleByBlockHashAndIndex is eth_getUncleByBlockHashAndIndex: null, no block has uncles.
func (a *Chain) GetUncleByBlockHashAndIndex(common.Hash, hexutil.Uint) object { return nil }

// Net answers the net namespace.
type Net struct{ *api }

// Version is net_version: the chain id in decimal.
func (a *Net) Version() string { return a.node.ChainConfig().ChainID.String() }

// Listening is net_listening.
func (*Net) Listening() bool { return true }

// PeerCount is net_peerCount: the node has no peers.
func (*Net) PeerCount() hexutil.Uint { return 0 }

// Web3 answers the web3 namespace.
type Web3 struct{}

// ClientVersion is web3_clientVersion.
func (*Web3) ClientVersion() string { return Version }

// Sha3 is web3_sha3: the Keccak-256 hash.
func (*Web3) Sha3(data hexutil.Bytes) hexutil.Bytes { return crypto.Keccak256(data) }

// quoteNonce is a nonce as txpool_content writes it: decimal.
func quoteNonce(nonce uint64) string { return strconv.FormatUint(nonce, 10) }
