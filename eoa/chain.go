package eoa

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// Look is one node's view of an account and of its chain at one moment.
type Look struct {
	// Number is the height of the latest block.
	Number uint64
	// GasLimit is the gas limit of the latest block; 0 means unknown.
	GasLimit uint64
	// Finalized is the height of the newest block that no reorg can take back.
	Finalized uint64
	// Latest is the account's transaction count at the latest block.
	Latest uint64
	// Final is the account's transaction count at the finalized block.
	Final uint64
	// Preconfirmed is Latest plus the transactions that are promised to be in
	// the next block. On chains without such promises it equals Latest.
	Preconfirmed uint64
	// Pending is Latest plus the transactions in the node's pool that follow
	// without a gap. It is used for the account's first nonce and, if the
	// account is exclusive, to notice transactions that the store lost.
	Pending uint64
	// Delegated means that the account has code at the latest block (EIP-7702).
	// Nodes then take one of its transactions at a time.
	Delegated bool
	// Balance is the account's balance at the latest block, in wei; nil means
	// unknown.
	Balance *uint256.Int
	// BaseFee is the base fee of the next block, in wei per gas.
	BaseFee uint256.Int
	// Tip is the usual priority fee, in wei per gas.
	Tip uint256.Int
	// BlobFee is the price of blob gas, in wei; 0 means unknown. See
	// [BlobChain].
	BlobFee uint256.Int
	// Doubt says in what several nodes contradict each other about the account;
	// nil if they do not, or if there is only one. The look is that of the best
	// of them.
	Doubt error
}

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

// Questions is a set of queries to one node.
type Questions struct {
	// Txs are the transactions whose receipts are needed.
	Txs []common.Hash
	// Heights are the heights whose block hashes are needed.
	Heights []uint64
	// Account is the account whose Nonces are looked up.
	Account common.Address
	// Nonces are used nonces of which it must be known whether a transaction
	// has them.
	Nonces []UsedNonce
}

// UsedNonce is a nonce that an account has used on the finalized chain.
type UsedNonce struct {
	// Nonce is the nonce.
	Nonce uint64
	// After is a finalized height at which the nonce was not used; 0 means that
	// none is known. UpTo is a finalized height at which it was used.
	After, UpTo uint64
}

// Answers are one node's answers to [Questions]. A query that the node did not
// answer, or answered with an error, appears in none of the maps.
type Answers struct {
	// Number is the height of the answering node's latest block when it was
	// asked.
	Number uint64
	// Receipts are the receipts of the transactions that are in a block.
	Receipts map[common.Hash]Receipt
	// Missing are the transactions that the node reports to be in no block.
	Missing map[common.Hash]bool
	// Blocks are the block hashes at the requested heights, without the heights
	// above the latest block.
	Blocks map[uint64]common.Hash
	// Users are the account's transactions with the requested nonces. The zero
	// hash means that no transaction has the nonce, because an authorization of
	// the account (EIP-7702) or a contract creation by its code (EIP-161) used
	// it.
	Users map[uint64]common.Hash
}

// Receipt holds the fields of a transaction receipt that an executor needs.
type Receipt struct {
	// Number is the height of the transaction's block.
	Number uint64
	// Block is the hash of the transaction's block.
	Block common.Hash
	// Success reports that the transaction did not revert.
	Success bool
	// GasUsed is the gas that the transaction used.
	GasUsed uint64
	// GasPrice is the price per gas that it paid, in wei; nil means unknown.
	GasPrice *uint256.Int
	// Contract is the contract that it created; nil if it created none.
	Contract *common.Address
	// Logs are the logs that it emitted.
	Logs []Log
}

// Log is an entry that a contract wrote while a transaction was executed.
type Log struct {
	// Address is the contract's address.
	Address common.Address `json:"address"`
	// Topics are the indexed words, at most four.
	Topics []common.Hash `json:"topics"`
	// Data is the rest of the entry.
	Data []byte `json:"data"`
}

// Sent is the result of sending one transaction.
type Sent struct {
	// Result is the outcome; see [Classify].
	Result SendResult
	// Reason is why the node did not take the transaction.
	Reason Reason
	// RetryAfter is how long the node asked us to wait. 0 means it did not ask.
	// Values above one minute are treated as one minute.
	RetryAfter time.Duration
	// Text is the node's error message.
	Text string
}

// Estimated is the result of estimating the gas of one request.
type Estimated struct {
	// Gas is the gas limit that the request needs.
	Gas uint64
	// Err is why it is unknown. It wraps ErrReverted only if the node executed
	// the call and it failed.
	Err error
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
