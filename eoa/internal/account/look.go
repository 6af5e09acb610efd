package account

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// Look is a report by one node about an account and its chain at one moment. It
// includes prices, because prices and balance together decide which requests can be
// sent.
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
	// Preconfirmed is Latest plus the number of transactions that are promised to
	// be in the next block. It equals Latest on chains without such promises.
	Preconfirmed uint64
	// Pending is Latest plus the number of transactions in the node's pool that
	// follow without a gap. The first nonce of a new account is taken from Pending.
	// For an exclusive account, Pending also reveals transactions that the store
	// has lost.
	Pending uint64
	// Delegated means that the account has code (EIP-7702). Nodes then keep only
	// one of its transactions at a time, so the executor has only one in flight.
	Delegated bool
	// Balance is the balance of the account, in wei; nil means unknown.
	Balance *uint256.Int
	// BaseFee is the base fee of the next block, in wei per gas.
	BaseFee uint256.Int
	// Tip is a usual priority fee, in wei per gas.
	Tip uint256.Int
	// BlobFee is the price of blob gas, in wei; 0 means unknown. While it is
	// unknown, requests of kind Blob wait.
	BlobFee uint256.Int
}

// Questions are sent to one node after a Look. They ask which transactions are in
// blocks, and whether blocks seen earlier are still part of the chain.
type Questions struct {
	// Txs are the transactions whose receipts are wanted.
	Txs []common.Hash
	// Heights are the heights whose block hashes are wanted.
	Heights []uint64
	// Account is the account whose Nonces are asked about.
	Account common.Address
	// Nonces are nonces that the account has used although none of the known
	// transactions with these nonces is in a block. The node is asked which
	// transactions used them.
	Nonces []UsedNonce
}

// UsedNonce is a nonce that was used in a finalized block, but by none of the
// transactions that the executor knows. The executor asks which transaction used
// it.
type UsedNonce struct {
	// Nonce is the used nonce.
	Nonce uint64
	// After and UpTo limit the blocks to search. Both are heights of finalized
	// blocks: the nonce was not used yet at After, and was used at UpTo. After is
	// 0 if no block before the use is known.
	After, UpTo uint64
}

// Answers has one node's answers to [Questions]. A question that the node did not
// answer, or answered with an error, has no entry in any of the maps.
type Answers struct {
	// Number is the height of the node's newest block when it answered. The
	// executor measures the depth of blocks from it.
	Number uint64
	// Receipts has the receipt of each requested transaction that is in a block.
	Receipts map[common.Hash]Receipt
	// Missing has the requested transactions that are in no block, according to the
	// node.
	Missing map[common.Hash]bool
	// Blocks has the block hash at each requested height that the chain has
	// reached.
	Blocks map[uint64]common.Hash
	// Users has the transaction that used each requested nonce. The zero hash means
	// that no transaction used the nonce, but an authorization of the account
	// (EIP-7702) or a contract that its code created (EIP-161).
	Users map[uint64]common.Hash
}

// Receipt has those fields of a transaction receipt that the executor needs.
type Receipt struct {
	// Number is the height of the transaction's block.
	Number uint64
	// Block is the hash of the transaction's block.
	Block common.Hash
	// Success means that the transaction did not revert.
	Success bool
	// GasUsed is the gas that the transaction used.
	GasUsed uint64
	// GasPrice is the price per gas that the transaction paid, in wei; nil means
	// unknown.
	GasPrice *uint256.Int
	// Contract is the address of the contract that the transaction created; nil if
	// it created none.
	Contract *common.Address
	// Logs are the logs that the transaction emitted.
	Logs []Log
}

// Log is an entry that a contract emitted while a transaction was executed.
type Log struct {
	// Address is the contract's address.
	Address common.Address `json:"address"`
	// Topics are the indexed words, at most four.
	Topics []common.Hash `json:"topics"`
	// Data is the part of the entry that is not indexed.
	Data []byte `json:"data"`
}

// Sent is a node's answer to one transaction.
type Sent struct {
	// Result tells whether the node has the transaction. For a refused
	// transaction, [Reason.Result] derives it from Reason.
	Result SendResult
	// Reason is why the node did not accept the transaction, as [Classify] returns
	// it.
	Reason Reason
	// RetryAfter is how long the node asked the caller to wait before the next
	// call; 0 if it did not ask. More than a minute counts as one minute.
	RetryAfter time.Duration
	// Text is the node's message, which is stored in the record.
	Text string
}

// Estimated is a node's estimate of the gas of one request.
type Estimated struct {
	// Gas is the gas limit that the request needs.
	Gas uint64
	// Err is why there is no estimate. If Err wraps ErrReverted, the node has tried
	// the request and it failed, so the request fails without a transaction. After
	// any other error, the executor asks for the estimate again.
	Err error
}

// asSeenByNode returns look as if the node that gave the answers had reported it.
func (a *Answers) asSeenByNode(look *Look) Look {
	at := *look
	// A node that is behind may be on a fork that the chain has left, so depth and
	// finality are measured from its own newest block.
	if a.Number < look.Number {
		behind := look.Number - a.Number
		at.Number, at.Finalized = a.Number, look.Finalized-min(look.Finalized, behind)
	}
	return at
}
