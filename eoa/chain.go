package eoa

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Known is the knowledge of an executor about its account. A [Chain] of several
// nodes gets it with [KnownOf], and tells by it which of them are right.
type Known struct {
	// Started means that the executor has seen a look before. If it is
	// false, Next is unknown.
	Started bool
	// Floor is the account's transaction count at a finalized block: a node with
	// fewer transactions is behind or on another chain.
	Floor uint64
	// Next is the next nonce that the executor will assign. A node has more
	// transactions only if another program sent them.
	Next uint64
	// Exclusive means that no other program sends any; see [Config.Exclusive].
	Exclusive bool
}

type knownKey struct{}

// KnownOf returns the knowledge of the executor that calls [Chain] with ctx. It
// is in the context, so that it also reaches a chain inside a wrapper.
func KnownOf(ctx context.Context) (k Known, ok bool) {
	k, ok = ctx.Value(knownKey{}).(Known)
	return k, ok
}

// Chain is the node that an executor uses. Its methods are called concurrently,
// and every one may fail. If Send fails, it is unknown whether the node has the
// bytes. An error of the other methods wraps [*BusyError] if the node asked us
// to wait. Package eoa/ethchain implements Chain for JSON-RPC.
type Chain interface {
	// Look returns the account's counts and balance, the heads, and prices.
	Look(ctx context.Context, a common.Address) (Look, error)
	// Ask returns receipts and block hashes.
	Ask(ctx context.Context, q Questions) (Answers, error)
	// Estimate returns the gas limit that each request needs, in the same order.
	Estimate(ctx context.Context, from common.Address, requests []*Request) []Estimated
	// Send gives signed transactions to the node, in order, and returns one
	// result for each.
	Send(ctx context.Context, raws [][]byte) []Sent
}

// Signer signs transactions. Sign is called concurrently; see Config.Parallel.
// The executor checks that the result is the requested transaction, signed by
// the account.
type Signer interface {
	// Sign returns tx signed with the key of a.
	Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error)
}

// BlobChain is a Chain that can return the price of blobs. On other chains
// requests of kind Blob wait.
type BlobChain interface {
	Chain
	// LookBlobs is Look, and also sets Look.BlobFee. If the chain has no blobs,
	// BlobFee stays 0.
	LookBlobs(ctx context.Context, a common.Address) (Look, error)
}
