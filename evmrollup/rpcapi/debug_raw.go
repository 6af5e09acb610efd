package rpcapi

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/node"
)

// GetRawHeader implements debug_getRawHeader. It returns the RLP encoding of a block's header, or
// no bytes for a number that no block has yet.
func (d *debugMethods) GetRawHeader(ctx context.Context, at rpc.BlockNumberOrHash) (_ hexutil.Bytes, err error) {
	defer ledger.Recover(&err)
	b, err := d.rawBlock(ctx, "header", at)
	if b == nil {
		return nil, err
	}
	return rlp.EncodeToBytes(b.Header())
}

// GetRawBlock implements debug_getRawBlock. It returns the RLP encoding of a block, or no bytes for
// a number that no block has yet.
func (d *debugMethods) GetRawBlock(ctx context.Context, at rpc.BlockNumberOrHash) (_ hexutil.Bytes, err error) {
	defer ledger.Recover(&err)
	b, err := d.rawBlock(ctx, "block", at)
	if err == nil {
		b, err = whole(b)
	}
	if b == nil {
		return nil, err
	}
	return rlp.EncodeToBytes(b.Block)
}

// GetRawReceipts implements debug_getRawReceipts. It returns the binary encodings of a block's
// receipts (EIP-2718). For a number that no block has yet it returns null, and for an unknown hash
// an empty list, as geth does.
func (d *debugMethods) GetRawReceipts(ctx context.Context, at rpc.BlockNumberOrHash) (_ []hexutil.Bytes, err error) {
	defer ledger.Recover(&err)
	b, err := d.rawBlock(ctx, "", at)
	if err == nil {
		b, err = whole(b)
	}
	if b == nil {
		if _, byHash := at.Hash(); byHash && err == nil {
			return []hexutil.Bytes{}, nil
		}
		return nil, err
	}
	receipts := make([]hexutil.Bytes, len(b.Receipts))
	for i, r := range b.Receipts {
		if receipts[i], err = r.MarshalBinary(); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}

// GetRawTransaction implements debug_getRawTransaction, which is
// eth_getRawTransactionByHash under another name.
func (d *debugMethods) GetRawTransaction(ctx context.Context, hash common.Hash) (_ hexutil.Bytes, err error) {
	defer ledger.Recover(&err)
	return (&ethTransactions{d.api}).GetRawTransactionByHash(ctx, hash)
}

// rawBlock returns the block that a debug method asks for, or nil if there is none. For an unknown
// hash it returns an error that contains the word what, unless what is empty.
func (d *debugMethods) rawBlock(ctx context.Context, what string, at rpc.BlockNumberOrHash) (*node.Block, error) {
	if err := d.limits.call(ctx, "debug", 0); err != nil {
		return nil, err
	}
	if hash, ok := at.Hash(); ok {
		b := d.node.BlockByHash(hash)
		if b == nil && what != "" {
			return nil, fmt.Errorf("%s #%d not found", what, hash)
		}
		return b, nil
	}
	if number, ok := at.Number(); ok {
		return d.node.Resolve(number), nil
	}
	return nil, invalidParams("invalid arguments; neither block nor hash specified")
}
