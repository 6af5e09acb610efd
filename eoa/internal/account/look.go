package account

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// Look is the state of an account and of its chain at one moment, as one node sees it. Prices
// come with it, because they decide together with the balance which requests can be sent.
type Look struct {
	// Number is the height of the newest block.
	Number uint64
	// GasLimit is the gas limit of the newest block; 0 means unknown.
	GasLimit uint64
	// Finalized is the height of the newest block that no reorg can remove.
	Finalized uint64
	// Latest is the number of transactions of the account up to the newest block.
	Latest uint64
	// Final is the number of transactions of the account up to the finalized block.
	Final uint64
	// Preconfirmed is Latest plus the transactions that are promised to be in the next block.
	// On chains without such promises it equals Latest.
	Preconfirmed uint64
	// Pending is Latest plus the transactions in the node's pool that follow without a gap.
	// The first nonce of a new account begins there. If the account is exclusive, it also
	// shows transactions that the store has lost.
	Pending uint64
	// Delegated means that the account has code (EIP-7702). Nodes then keep only one of its
	// transactions at a time, so that only one is in flight.
	Delegated bool
	// Balance is the balance of the account, in wei; nil means unknown.
	Balance *uint256.Int
	// BaseFee is the base fee of the next block, in wei per gas.
	BaseFee uint256.Int
	// Tip is a usual priority fee, in wei per gas.
	Tip uint256.Int
	// BlobFee is the price of blob gas, in wei; 0 means unknown, so that requests of kind
	// Blob wait.
	BlobFee uint256.Int
}

// Questions are asked of one node after a Look: which transactions are in blocks, and whether
// blocks that were seen before are still part of the chain.
type Questions struct {
	// Txs are the transactions whose receipts are wanted.
	Txs []common.Hash
	// Heights are the heights at which the hashes of the blocks are wanted.
	Heights []uint64
	// Account is the account whose Nonces are asked about.
	Account common.Address
	// Nonces are nonces that the account has used, although none of the known transactions
	// with them is in a block. The transactions that used them are wanted.
	Nonces []UsedNonce
}

// UsedNonce is a nonce that something has used in a finalized block. The executor asks which
// transaction it was.
type UsedNonce struct {
	// Nonce is the nonce.
	Nonce uint64
	// After is the height of a finalized block at which the nonce was not used yet; 0 means
	// that none is known. UpTo is that of one at which it was used.
	After, UpTo uint64
}

// Answers are the answers of one node to [Questions]. If the node did not answer a question,
// or answered it with an error, it is in none of the maps.
type Answers struct {
	// Number is the height of the node's newest block when it answered. The executor measures
	// with it how deep blocks are.
	Number uint64
	// Receipts are the receipts of those transactions that are in a block.
	Receipts map[common.Hash]Receipt
	// Missing are those transactions that the node says are in no block.
	Missing map[common.Hash]bool
	// Blocks are the hashes of the blocks at the requested heights, as far as the chain is
	// that high.
	Blocks map[uint64]common.Hash
	// Users are the transactions that used the requested nonces. The zero hash means that no
	// transaction did: an authorization of the account (EIP-7702), or a contract that its
	// code created (EIP-161), has used the nonce.
	Users map[uint64]common.Hash
}

// Receipt has the fields of a transaction receipt that an executor needs.
type Receipt struct {
	// Number is the height of the transaction's block.
	Number uint64
	// Block is the hash of the transaction's block.
	Block common.Hash
	// Success means that the transaction did not revert.
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

// Sent is the result of giving one transaction to a node.
type Sent struct {
	// Result is the outcome: whether the node has the transaction. [Classify] finds it from
	// the message of the node.
	Result SendResult
	// Reason is why the node did not take the transaction, as [Classify] returns it.
	Reason Reason
	// RetryAfter is how long the node asked us to wait before the next call. 0 means that it
	// did not ask. More than a minute counts as a minute.
	RetryAfter time.Duration
	// Text is the message of the node. It is stored in the record.
	Text string
}

// Estimated is the result of estimating the gas of one request.
type Estimated struct {
	// Gas is the gas limit that the request needs.
	Gas uint64
	// Err is why there is no estimate. If it wraps ErrReverted, the node has executed the
	// request and it failed; the request then fails without a transaction. After any other
	// error it is tried again.
	Err error
}

// asSeenByNode returns the look from the view of the node that gave the answers. If that node
// is behind, it may be on a fork that the chain has left, so that depth and finality are
// measured from its own newest block.
func (a *Answers) asSeenByNode(look *Look) Look {
	at := *look
	if a.Number < look.Number {
		behind := look.Number - a.Number
		at.Number, at.Finalized = a.Number, look.Finalized-min(look.Finalized, behind)
	}
	return at
}
