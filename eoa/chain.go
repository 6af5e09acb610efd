package eoa

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Chain is an executor's connection to a node. Package eoa/ethchain implements it for
// JSON-RPC. Methods are called concurrently, and may fail. If the node asked us to wait, the
// error wraps [*BusyError].
type Chain interface {
	// Look returns the state of the account and of its chain: transaction counts, balance,
	// newest and finalized block, and prices.
	Look(ctx context.Context, a common.Address) (Look, error)
	// Ask returns receipts, hashes of blocks, and the transactions that used nonces.
	Ask(ctx context.Context, q Questions) (Answers, error)
	// Estimate returns the gas that each request needs, in the same order.
	Estimate(ctx context.Context, from common.Address, requests []*Request) []Estimated
	// Send gives signed transactions to the node, in this order, and returns one result for
	// each. If it is not certain whether the node has a transaction, the result must be
	// Unknown.
	Send(ctx context.Context, raws [][]byte) []Sent
}

// Signer signs the transactions of accounts. Sign is called concurrently; see
// Config.Parallel. A Signer need not be trusted with the content: the executor checks that
// the result is the requested transaction, signed by the account.
type Signer interface {
	// Sign returns tx with a signature of the account a.
	Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error)
}
