package eoa

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Chain is an executor's connection to a node. Package eoa/ethchain implements it
// for JSON-RPC. Its methods are called concurrently and may fail. An error wraps
// [*BusyError] if the node asked the caller to wait before the next call.
type Chain interface {
	// Look returns the state of the account and of its chain: transaction counts, balance,
	// newest and finalized block, and prices.
	Look(ctx context.Context, a common.Address) (Look, error)
	// Ask answers questions about transactions and blocks: receipts, block hashes,
	// and the transactions that used given nonces.
	Ask(ctx context.Context, q Questions) (Answers, error)
	// Estimate returns the gas that each request needs, in the same order.
	Estimate(ctx context.Context, from common.Address, requests []*Request) []Estimated
	// Send gives signed transactions to the node, in this order, and returns one
	// result for each. The result must be Unknown if it is not certain whether the
	// node has the transaction.
	Send(ctx context.Context, raws [][]byte) []Sent
}

// Signer signs the transactions of accounts. Sign is called concurrently; see
// Config.Parallel. A Signer need not be trusted to sign the right transaction,
// because the executor checks that the result is the requested transaction, signed
// by the account.
type Signer interface {
	// Sign returns tx with a signature of the account a.
	Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error)
}
