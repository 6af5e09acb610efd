// go test ./internal/tidy -update writes this file from eoa/internal/account/look.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// Look is one node's view of an account and of its chain at one moment.
//
//	type Look struct {
//		// Number is the height of the latest block.
//		Number uint64
//		// GasLimit is the gas limit of the latest block; 0 means unknown.
//		GasLimit uint64
//		// Finalized is the height of the newest block that no reorg can take back.
//		Finalized uint64
//		// Latest is the account's transaction count at the latest block.
//		Latest uint64
//		// Final is the account's transaction count at the finalized block.
//		Final uint64
//		// Preconfirmed is Latest plus the transactions that are promised to be in
//		// the next block. On chains without such promises it equals Latest.
//		Preconfirmed uint64
//		// Pending is Latest plus the transactions in the node's pool that follow
//		// without a gap. It is used for the account's first nonce and, if the
//		// account is exclusive, to notice transactions that the store lost.
//		Pending uint64
//		// Delegated means that the account has code at the latest block (EIP-7702).
//		// Nodes then take one of its transactions at a time.
//		Delegated bool
//		// Balance is the account's balance at the latest block, in wei; nil means
//		// unknown.
//		Balance *uint256.Int
//		// BaseFee is the base fee of the next block, in wei per gas.
//		BaseFee uint256.Int
//		// Tip is the usual priority fee, in wei per gas.
//		Tip uint256.Int
//		// BlobFee is the price of blob gas, in wei; 0 means unknown. See
//		// [BlobChain].
//		BlobFee uint256.Int
//		// Doubt says in what several nodes contradict each other about the account;
//		// nil if they do not, or if there is only one. The look is that of the best
//		// of them.
//		Doubt error
//	}
type Look = account.Look

// Questions is a set of queries to one node.
//
//	type Questions struct {
//		// Txs are the transactions whose receipts are needed.
//		Txs []common.Hash
//		// Heights are the heights whose block hashes are needed.
//		Heights []uint64
//		// Account is the account whose Nonces are looked up.
//		Account common.Address
//		// Nonces are used nonces of which it must be known whether a transaction
//		// has them.
//		Nonces []UsedNonce
//	}
type Questions = account.Questions

// UsedNonce is a nonce that an account has used on the finalized chain.
//
//	type UsedNonce struct {
//		// Nonce is the nonce.
//		Nonce uint64
//		// After is a finalized height at which the nonce was not used; 0 means that
//		// none is known. UpTo is a finalized height at which it was used.
//		After, UpTo uint64
//	}
type UsedNonce = account.UsedNonce

// Answers are one node's answers to [Questions]. A query that the node did not
// answer, or answered with an error, appears in none of the maps.
//
//	type Answers struct {
//		// Number is the height of the answering node's latest block when it was
//		// asked.
//		Number uint64
//		// Receipts are the receipts of the transactions that are in a block.
//		Receipts map[common.Hash]Receipt
//		// Missing are the transactions that the node reports to be in no block.
//		Missing map[common.Hash]bool
//		// Blocks are the block hashes at the requested heights, without the heights
//		// above the latest block.
//		Blocks map[uint64]common.Hash
//		// Users are the account's transactions with the requested nonces. The zero
//		// hash means that no transaction has the nonce, because an authorization of
//		// the account (EIP-7702) or a contract creation by its code (EIP-161) used
//		// it.
//		Users map[uint64]common.Hash
//	}
type Answers = account.Answers

// Receipt holds the fields of a transaction receipt that an executor needs.
//
//	type Receipt struct {
//		// Number is the height of the transaction's block.
//		Number uint64
//		// Block is the hash of the transaction's block.
//		Block common.Hash
//		// Success reports that the transaction did not revert.
//		Success bool
//		// GasUsed is the gas that the transaction used.
//		GasUsed uint64
//		// GasPrice is the price per gas that it paid, in wei; nil means unknown.
//		GasPrice *uint256.Int
//		// Contract is the contract that it created; nil if it created none.
//		Contract *common.Address
//		// Logs are the logs that it emitted.
//		Logs []Log
//	}
type Receipt = account.Receipt

// Log is an entry that a contract wrote while a transaction was executed.
//
//	type Log struct {
//		// Address is the contract's address.
//		Address common.Address `json:"address"`
//		// Topics are the indexed words, at most four.
//		Topics []common.Hash `json:"topics"`
//		// Data is the rest of the entry.
//		Data []byte `json:"data"`
//	}
type Log = account.Log

// Sent is the result of sending one transaction.
//
//	type Sent struct {
//		// Result is the outcome; see [Classify].
//		Result SendResult
//		// Reason is why the node did not take the transaction.
//		Reason Reason
//		// RetryAfter is how long the node asked us to wait. 0 means it did not ask.
//		// Values above one minute are treated as one minute.
//		RetryAfter time.Duration
//		// Text is the node's error message.
//		Text string
//	}
type Sent = account.Sent

// Estimated is the result of estimating the gas of one request.
//
//	type Estimated struct {
//		// Gas is the gas limit that the request needs.
//		Gas uint64
//		// Err is why it is unknown. It wraps ErrReverted only if the node executed
//		// the call and it failed.
//		Err error
//	}
type Estimated = account.Estimated
