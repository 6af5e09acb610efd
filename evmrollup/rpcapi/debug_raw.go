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

// GetRawHeader implements debug_getRawHeader. It returns the RLP encoding of a
// block's header, or no bytes if no block has the number yet.
func (d *debugMethods) GetRawHeader(ctx context.Context, at rpc.BlockNumberOrHash) (_ hexutil.Bytes, err error) {
	defer ledger.Recover(&err)
	b, err := d.rawBlock(ctx, "header", at)
	if b == nil {
		return nil, err
	}
	return rlp.EncodeToBytes(b.Header())
}

// GetRawBlock implements debug_getRawBlock. It returns the RLP encoding of a block,
// or no bytes if no block has the number yet.
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

// GetRawReceipts implements debug_getRawReceipts. It returns the receipts of a
// block in their binary encoding (EIP-2718). As geth does, it returns null if no
// block has the number yet, and an empty list for an unknown hash.
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

// rawBlock returns the block that a debug method asks for, or nil.
func (d *debugMethods) rawBlock(ctx context.Context, what string, at rpc.BlockNumberOrHash) (*node.Block, error) {
	if err := d.limits.call(ctx, "debug", 0); err != nil {
		return nil, err
	}
	if hash, ok := at.Hash(); ok {
		b := d.node.BlockByHash(hash)
		// The argument what names the missing thing in the error text. If it is empty, an
		// unknown hash is not an error.
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
