package eoa

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// Look is what a node says of an account and of its chain at one moment.
type Look struct {
	// Number is the latest block's, Finalized that of the newest block which no reorg can take back.
	Number, Finalized uint64
	// Latest is how many transactions of the account the latest block's chain includes, Final how many the finalized block's.
	Latest, Final uint64
	// Preconfirmed counts those too that are promised to be in the next block. It equals Latest where a chain has no such promise.
	Preconfirmed uint64
	// Pending counts those too that wait in the node's pool without a gap. It is used once, where an account begins.
	Pending uint64
	// Balance is the account's at the latest block, in wei; nil means not known.
	Balance *uint256.Int
	// BaseFee is the next block's, Tip what is usually paid on top, in wei per gas.
	BaseFee, Tip uint256.Int
	// BlobFee is the price of blob gas, in wei; 0 means not known. See [BlobChain].
	BlobFee uint256.Int
}

// Questions are put to a node together.
type Questions struct {
	// Txs are asked for receipts, Heights for the hash of the chain's block.
	Txs     []common.Hash
	Heights []uint64
}

// Answers are a node's. What the node did not answer, or answered with an error, is in none of the maps.
type Answers struct {
	// Number is the answering node's latest block when it was asked.
	Number uint64
	// Receipts are of transactions in blocks; Missing are those of which the node says that they are in no block.
	Receipts map[common.Hash]Receipt
	Missing  map[common.Hash]bool
	// Blocks are the hashes of the chain's blocks at the heights asked for; a height above the latest block is not in it.
	Blocks map[uint64]common.Hash
}

// Receipt is what an executor needs of one.
type Receipt struct {
	// Number and Block name the block, Success is whether the transaction did not revert.
	Number  uint64
	Block   common.Hash
	Success bool
	GasUsed uint64
}

// Sent is what one send came to.
type Sent struct {
	// Result and Reason are a verdict of [Classify]. RetryAfter is how long the node asks to wait, 0 for not; a minute at most is.
	Result     SendResult
	Reason     Reason
	RetryAfter time.Duration
	// Text is what the node said.
	Text string
}

// Chain is what an executor asks of a node. Every method may fail, and a failure of Send says nothing about where the bytes are. An error of the others
// wraps a BusyError where the node asks to be left alone.
// Package eoa/ethchain has one for JSON-RPC.
type Chain interface {
	// Look returns the account's counts and balance, the heads, and prices.
	Look(ctx context.Context, a common.Address) (Look, error)
	// Ask returns what the node knows of transactions and blocks.
	Ask(ctx context.Context, q Questions) (Answers, error)
	// Estimate returns the gas that a request takes. The error wraps ErrReverted only where the node ran it and it failed.
	Estimate(ctx context.Context, from common.Address, r *Request) (uint64, error)
	// Send gives signed transactions to the node, in order, and returns as many results.
	Send(ctx context.Context, raws [][]byte) []Sent
}

// Signer signs for accounts. Its result is checked against what was asked.
type Signer interface {
	// Sign returns the transaction signed by the account's key.
	Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error)
}

// Clock gives the time, so that tests can.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
}
