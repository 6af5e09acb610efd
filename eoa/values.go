// go test ./internal/tidy -update writes this file from package eoa/internal/account.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// Batch is the outcome of one or several decisions: everything that changes in the store. A
// store writes all of it or nothing.
//
//	type Batch struct {
//		// Head is the new head of the account. Its Version is the one that the decision was made
//		// on: the store refuses the batch if it has another version by now, and otherwise stores
//		// Version+1.
//		Head Head
//		// Records replace the stored records with the same ids. A store may rely on three rules:
//		// the key and the priority of a record never change; a record that is Broadcast, Mined or
//		// Confirmed was Prepared in an earlier batch; and SentAt of a new attempt is zero.
//		Records []Record
//		// Events are appended to the outbox. The store numbers them.
//		Events []Event
//		// Done are the Seqs of the orders that were carried out.
//		Done []uint64
//		// Drop are records whose history is deleted, because [Retention] does not keep it. The
//		// store keeps their keys, ids, states and digests. Get and Submit then return a record
//		// with only these, and List and ByHash no longer find it.
//		Drop []Record
//		// Add are new requests of the executor itself. They are accepted as by Submit, except
//		// that a request whose key exists is skipped.
//		Add []Request
//	}
type Batch = account.Batch

const (
	// MaxBlobs is the maximum number of blobs in a request: the limit of one
	// transaction on Ethereum (EIP-7594).
	MaxBlobs = account.MaxBlobs
	// BlobSize is the size of a blob in bytes. A blob is 4096 big-endian
	// numbers of 32 bytes, each below the order of the scalar field of
	// BLS12-381.
	BlobSize = account.BlobSize
)

// Reason is why a node did not take a transaction. [Classify] finds it in the node's message.
//
//	// String returns the name in lower case.
//	func (r Reason) String() string
//
//	// Result returns the outcome of a send that a node answered with this reason.
//	// ReasonNonceTooLow is Unknown, because this very transaction may have used the nonce.
//	func (r Reason) Result() SendResult
type Reason = account.Reason

const (
	// ReasonNone means that the node gave no message, or one that is not known.
	ReasonNone = account.ReasonNone
	// ReasonKnown means that the node already has this transaction.
	ReasonKnown = account.ReasonKnown
	// ReasonNonceTooLow means that a transaction with this nonce has been mined, possibly
	// this very one.
	ReasonNonceTooLow = account.ReasonNonceTooLow
	// ReasonNonceGap means that the node lacks the transaction with the nonce before, and
	// keeps none behind a missing one.
	ReasonNonceGap = account.ReasonNonceGap
	// ReasonReplacement means that the node has another transaction with this nonce, and this
	// one does not pay enough more to replace it.
	ReasonReplacement = account.ReasonReplacement
	// ReasonUnderpriced means that the price is below the least that the node accepts now.
	ReasonUnderpriced = account.ReasonUnderpriced
	// ReasonFunds means that the account's balance does not cover the transaction now.
	ReasonFunds = account.ReasonFunds
	// ReasonFull means that the node has no room for the transaction now.
	ReasonFull = account.ReasonFull
	// ReasonInvalid means that no node will ever take this transaction.
	ReasonInvalid = account.ReasonInvalid
	// ReasonBusy means that the node asked us to wait before the next call.
	ReasonBusy = account.ReasonBusy
	// ReasonGasLimit means that the gas limit is higher than that of a block, or than a
	// transaction on this chain may have (EIP-7825). A lower one may be accepted.
	ReasonGasLimit = account.ReasonGasLimit
	// ReasonFeeCap means that the gas limit times the price is above the most that this node
	// relays (geth's --rpc.txfeecap). Another node may take the transaction, or this one at a
	// lower price.
	ReasonFeeCap = account.ReasonFeeCap
)

// Classify returns the reason that a node's answer to eth_sendRawTransaction gives, from the
// message of its JSON-RPC error. Do not use it for other errors: the text of an HTTP or
// connection error does not show whether the node has the transaction.
//
// A message is recognized if it begins with one of the known texts of nodes, in whole words.
// A gateway may put words and a colon before it. If the text means that the node has the
// transaction, the message must also end there or go on with a punctuation mark. If a message
// is not recognized or has two meanings, Classify returns ReasonNone, whose result is
// Unknown.
func Classify(text string) Reason { return account.Classify(text) }

// EventKind is the kind of an event. Its String and its JSON are the name in lower case, for
// example "mined".
//
//	// String returns the name in lower case.
//	func (k EventKind) String() string
type EventKind = account.EventKind

const (
	// EventSubmitted means that a node has a transaction of the request for the first time:
	// it accepted the transaction, or a block has it. A request has at most one such event
	// for each nonce, before its EventMined. EventBumped may come earlier, if the answers to
	// the first sends were lost.
	EventSubmitted = account.EventSubmitted
	// EventBumped means that the request was signed again with its nonce, at a higher price
	// or with another payload.
	EventBumped = account.EventBumped
	// EventCapped means that the request needs a higher price than its limits allow. It waits
	// until the price falls, or until the user replaces it.
	EventCapped = account.EventCapped
	// EventMined means that a block has a transaction of the request.
	EventMined = account.EventMined
	// EventConfirmed means that the block is as deep as Config.Confirmations
	// requires.
	EventConfirmed = account.EventConfirmed
	// EventFinal means that the block is finalized and the transaction
	// succeeded.
	EventFinal = account.EventFinal
	// EventReorged means that the chain no longer has the block. The same transaction is sent
	// again.
	EventReorged = account.EventReorged
	// EventFailed means that the request is now Failed.
	EventFailed = account.EventFailed
	// EventCancelled means that the request is now Cancelled.
	EventCancelled = account.EventCancelled
	// EventSuperseded means that the request is now Superseded.
	EventSuperseded = account.EventSuperseded
	// EventNoop means that a transaction which does nothing was signed for a nonce that no
	// known transaction has, so that those behind it can be mined.
	EventNoop = account.EventNoop
	// EventReset means that the next nonce was set as [Client.ResetNonce] ordered.
	EventReset = account.EventReset
	// EventRequeued means that the nonce of the request was used without a transaction
	// (EIP-7702, or a contract that the account's code created). The request gets another
	// nonce, and EventSubmitted comes once more.
	EventRequeued = account.EventRequeued
	// EventStopped means that the account is stopped until an operator calls [Client.Resume].
	// Reason is the evidence.
	EventStopped = account.EventStopped
	// EventResumed means that an operator has let the account go on.
	EventResumed = account.EventResumed
	// EventReverted means that the transaction in the block failed: it paid for its gas and
	// had no other effect. It comes directly after EventMined. When the block is final,
	// EventFailed follows.
	EventReverted = account.EventReverted
)

// Event is a notice for the host that a request or its account has changed. It is stored in
// the same write as the change itself, so that no event is lost. Events are delivered in
// order for one account, and at least once: after a crash, one may come again.
//
//	type Event struct {
//		// Account is the account of the event. Stores leave it zero, and [Deliver] sets it.
//		Account Account `json:"account,omitzero"`
//		// Seq is the number of the event among those of its account, without gaps. Account and
//		// Seq identify an event that is delivered twice.
//		Seq uint64 `json:"seq"`
//		// Kind is the kind of the change.
//		Kind EventKind `json:"kind"`
//		// At is when the executor decided on the change, by its clock.
//		At time.Time `json:"at"`
//		// ID is the id of the record; 0 for events about the account itself (EventReset,
//		// EventStopped, EventResumed).
//		ID uint64 `json:"id,omitempty"`
//		// Key is the key of the request; empty for events about the account itself.
//		Key string `json:"key,omitempty"`
//		// Nonce is the nonce of the request at that moment. For events about the account itself
//		// it is the next nonce.
//		Nonce uint64 `json:"nonce"`
//		// Tx is the hash of the transaction in the block, or of the newest attempt while no block
//		// has any.
//		Tx common.Hash `json:"tx,omitzero"`
//		// Height is the height of that block; 0 if there is none.
//		Height uint64 `json:"height,omitempty"`
//		// Success means that a block has the transaction and that it did not revert.
//		Success bool `json:"success"`
//		// Reason is the Reason of the record at that moment.
//		Reason string `json:"reason,omitempty"`
//	}
type Event = account.Event

var (
	// ErrInvalidRequest is returned for a request that could never be executed.
	ErrInvalidRequest = account.ErrInvalidRequest
	// ErrMalformed is returned if stored bytes are not a record that an executor can have
	// written.
	ErrMalformed = account.ErrMalformed
	// ErrNotExecuted means that a request has ended without a transaction: it failed before,
	// or it was cancelled or superseded. [Record.Err] wraps it.
	ErrNotExecuted = account.ErrNotExecuted
	// ErrReverted means that a request was executed and failed. [Record.Err] wraps it if a
	// block has the transaction, and [Chain.Estimate] if the node tried the call.
	ErrReverted = account.ErrReverted
	// ErrInvalidConfig is wrapped by all errors about a configuration.
	ErrInvalidConfig = account.ErrInvalidConfig
	// ErrOtherChain is the cause of a stop: the node keeps reporting fewer transactions of
	// the account than a finalized block had, so it must be on another chain.
	ErrOtherChain = account.ErrOtherChain
	// ErrStopped is returned by [Executor.Step] while the account is stopped: nothing is
	// signed or sent until an operator calls [Client.Resume]. The error also wraps the cause,
	// ErrStoreRolledBack or ErrOtherChain.
	ErrStopped = account.ErrStopped
	// ErrStoreRolledBack is the cause of a stop: the store has lost writes, for example
	// because a replica was promoted that did not have them. Transactions of the lost writes
	// may be on the chain, so that going on could execute requests twice. It is found in two
	// ways: the store lacks commits that this process has seen, or an exclusive account has a
	// transaction that the store does not know.
	ErrStoreRolledBack = account.ErrStoreRolledBack
)

// Fees are the prices that a transaction offers, in wei per gas and per blob gas.
//
//	type Fees struct {
//		// Cap is the highest price per gas that may be paid, tip included.
//		Cap uint256.Int `json:"cap"`
//		// Tip is the part of the price that goes to the block's author. It is at
//		// most Cap.
//		Tip uint256.Int `json:"tip"`
//		// Blob is the highest price of blob gas (EIP-4844); 0 means no blobs.
//		Blob uint256.Int `json:"blob,omitzero"`
//	}
type Fees = account.Fees

// Reset is a change of the next nonce that a user has ordered with [Client.ResetNonce].
//
//	type Reset struct {
//		// At is when the reset was carried out.
//		At time.Time `json:"at"`
//		// From is the next nonce before the reset.
//		From uint64
//		// To is the next nonce after the reset.
//		To uint64
//		// Forced means that requests in flight were given up.
//		Forced bool `json:"forced,omitempty"`
//	}
type Reset = account.Reset

// Look is the state of an account and of its chain at one moment, as one node sees it. Prices
// come with it, because they decide together with the balance which requests can be sent.
//
//	type Look struct {
//		// Number is the height of the newest block.
//		Number uint64
//		// GasLimit is the gas limit of the newest block; 0 means unknown.
//		GasLimit uint64
//		// Finalized is the height of the newest block that no reorg can remove.
//		Finalized uint64
//		// Latest is the number of transactions of the account up to the newest block.
//		Latest uint64
//		// Final is the number of transactions of the account up to the finalized block.
//		Final uint64
//		// Preconfirmed is Latest plus the transactions that are promised to be in the next block.
//		// On chains without such promises it equals Latest.
//		Preconfirmed uint64
//		// Pending is Latest plus the transactions in the node's pool that follow without a gap.
//		// The first nonce of a new account begins there. If the account is exclusive, it also
//		// shows transactions that the store has lost.
//		Pending uint64
//		// Delegated means that the account has code (EIP-7702). Nodes then keep only one of its
//		// transactions at a time, so that only one is in flight.
//		Delegated bool
//		// Balance is the balance of the account, in wei; nil means unknown.
//		Balance *uint256.Int
//		// BaseFee is the base fee of the next block, in wei per gas.
//		BaseFee uint256.Int
//		// Tip is a usual priority fee, in wei per gas.
//		Tip uint256.Int
//		// BlobFee is the price of blob gas, in wei; 0 means unknown, so that requests of kind
//		// Blob wait.
//		BlobFee uint256.Int
//	}
type Look = account.Look

// Questions are asked of one node after a Look: which transactions are in blocks, and whether
// blocks that were seen before are still part of the chain.
//
//	type Questions struct {
//		// Txs are the transactions whose receipts are wanted.
//		Txs []common.Hash
//		// Heights are the heights at which the hashes of the blocks are wanted.
//		Heights []uint64
//		// Account is the account whose Nonces are asked about.
//		Account common.Address
//		// Nonces are nonces that the account has used, although none of the known transactions
//		// with them is in a block. The transactions that used them are wanted.
//		Nonces []UsedNonce
//	}
type Questions = account.Questions

// UsedNonce is a nonce that something has used in a finalized block. The executor asks which
// transaction it was.
//
//	type UsedNonce struct {
//		// Nonce is the nonce.
//		Nonce uint64
//		// After is the height of a finalized block at which the nonce was not used yet; 0 means
//		// that none is known. UpTo is that of one at which it was used.
//		After, UpTo uint64
//	}
type UsedNonce = account.UsedNonce

// Answers are the answers of one node to [Questions]. If the node did not answer a question,
// or answered it with an error, it is in none of the maps.
//
//	type Answers struct {
//		// Number is the height of the node's newest block when it answered. The executor measures
//		// with it how deep blocks are.
//		Number uint64
//		// Receipts are the receipts of those transactions that are in a block.
//		Receipts map[common.Hash]Receipt
//		// Missing are those transactions that the node says are in no block.
//		Missing map[common.Hash]bool
//		// Blocks are the hashes of the blocks at the requested heights, as far as the chain is
//		// that high.
//		Blocks map[uint64]common.Hash
//		// Users are the transactions that used the requested nonces. The zero hash means that no
//		// transaction did: an authorization of the account (EIP-7702), or a contract that its
//		// code created (EIP-161), has used the nonce.
//		Users map[uint64]common.Hash
//	}
type Answers = account.Answers

// Receipt has the fields of a transaction receipt that an executor needs.
//
//	type Receipt struct {
//		// Number is the height of the transaction's block.
//		Number uint64
//		// Block is the hash of the transaction's block.
//		Block common.Hash
//		// Success means that the transaction did not revert.
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

// Sent is the result of giving one transaction to a node.
//
//	type Sent struct {
//		// Result is the outcome: whether the node has the transaction. [Classify] finds it from
//		// the message of the node.
//		Result SendResult
//		// Reason is why the node did not take the transaction, as [Classify] returns it.
//		Reason Reason
//		// RetryAfter is how long the node asked us to wait before the next call. 0 means that it
//		// did not ask. More than a minute counts as a minute.
//		RetryAfter time.Duration
//		// Text is the message of the node. It is stored in the record.
//		Text string
//	}
type Sent = account.Sent

// Estimated is the result of estimating the gas of one request.
//
//	type Estimated struct {
//		// Gas is the gas limit that the request needs.
//		Gas uint64
//		// Err is why there is no estimate. If it wraps ErrReverted, the node has executed the
//		// request and it failed; the request then fails without a transaction. After any other
//		// error it is tried again.
//		Err error
//	}
type Estimated = account.Estimated

// Order is a change that a user has ordered, for example a cancellation. It is stored until
// the worker of the account carries it out, so that any process may give it.
//
//	type Order struct {
//		// Seq is the number of the order among those of its account. The store sets it.
//		Seq uint64 `json:"seq"`
//		// Kind is the kind of the change.
//		Kind OrderKind `json:"kind"`
//		// Key is the key of the request that is cancelled or replaced.
//		Key string `json:"key,omitempty"`
//		// Payload is the new payload of a request that is replaced. Its Key is ignored.
//		Payload *Request `json:"payload,omitempty"`
//		// Force lets a reset give up the requests in flight.
//		Force bool `json:"force,omitempty"`
//	}
type Order = account.Order

// FeePolicy decides when a transaction that is in no block is signed again at a higher price
// (a bump), and at which price. DefaultConfig has the defaults.
//
//	type FeePolicy struct {
//		// StallTimeout is how long the account may make no progress before prices are raised;
//		// positive. If none of its transactions was mined for this time, the first one in flight
//		// is bumped, and of those behind it the ones that pay too little for today's prices. The
//		// wait doubles with each bump of a transaction, up to 64 times StallTimeout. The default
//		// is 5 minutes.
//		StallTimeout time.Duration
//		// BumpPercent is by how many percent a bump raises the price at least; 10 to 1000. A blob
//		// transaction raises it by 100 at least, because nodes demand that. If the raised price
//		// would exceed a limit, the limit is offered, unless it is less than 10 % more, which
//		// go-ethereum's pool refuses. The default is 20.
//		BumpPercent uint64
//		// MaxFee is the highest price per gas that is offered for any request, in wei; nil means
//		// no limit. If Request.MaxFee is lower, it counts for that request.
//		MaxFee *uint256.Int
//		// MaxBlobFee is the highest price per blob gas that is offered for any request, in wei;
//		// nil means no limit. If Request.MaxBlobFee is lower, it counts for that request.
//		MaxBlobFee *uint256.Int
//	}
//
//	// Validate returns an error that lists each field out of range, with its value
//	// and the allowed range. The error wraps ErrInvalidConfig.
//	func (p *FeePolicy) Validate() error
type FeePolicy = account.FeePolicy

// Retention limits how much of an account's history its store keeps. The executor deletes the
// rest when the account has no work left, and every ten minutes while it has.
//
// When the record of a request is deleted, the store still keeps its key, id, state and a
// digest of its payload. If the request is submitted again, it is therefore found and not
// executed a second time. [Client.Get] returns a record with these fields only. [Client.List]
// and [Client.ByHash] no longer find it.
//
//	type Retention struct {
//		// Age is how long the record of a request is kept after the request has ended; at least
//		// 0. 0 means without a limit. The default is 7 days.
//		Age time.Duration
//		// Count is how many of the newest requests have records; at least 0. Older requests that
//		// have ended lose theirs even before Age. 0 means without a limit. The default is
//		// 100,000.
//		Count int
//		// EventAge is how long an event is kept that was not acknowledged; at least 0. 0 means
//		// without a limit. The default is 30 days.
//		EventAge time.Duration
//	}
//
//	// Validate returns an error that lists each field out of range. The error wraps
//	// ErrInvalidConfig.
//	func (r *Retention) Validate() error
type Retention = account.Retention

const (
	// ProblemStopped means that the account is stopped, and nothing is sent until an operator
	// calls [Client.Resume]. Err wraps ErrStopped and the cause.
	ProblemStopped = account.ProblemStopped
	// ProblemFunds means that the balance does not cover the next transaction. Need and Have
	// are set.
	ProblemFunds = account.ProblemFunds
	// ProblemRequest means that a request waits because of its terms: its price limit is
	// below the base fee, the price of its blobs is unknown, or its gas could not be
	// estimated. Err has its key and the reason. Other requests go on.
	ProblemRequest = account.ProblemRequest
	// ProblemGap means that no known transaction has the nonce in Nonce, so that no
	// transaction behind it can be mined. The executor fills it with a transaction that does
	// nothing as soon as it can.
	ProblemGap = account.ProblemGap
	// ProblemStalled means that some transactions are in flight and none was mined for
	// FeePolicy.StallTimeout. Nonce is the lowest nonce in flight. The executor raises the
	// price, unless a limit is reached.
	ProblemStalled = account.ProblemStalled
	// ProblemChain means that the chain cannot be read, or that the node is behind or
	// contradicts earlier answers. Err has the reason. No new request is sent meanwhile.
	ProblemChain = account.ProblemChain
	// ProblemSigner means that the last signature failed. Err is the error.
	ProblemSigner = account.ProblemSigner
	// ProblemStore means that the store failed. Err is its error. If Account is zero, the
	// fleet could not find out which accounts have work.
	ProblemStore = account.ProblemStore
	// ProblemLease means that another worker has the account. That is usual if several
	// processes share a store. Err wraps ErrHeld.
	ProblemLease = account.ProblemLease
	// ProblemOpener means that the [Opener] of the fleet returned an error, or has not
	// returned for Config.Timeout. Err has the reason.
	ProblemOpener = account.ProblemOpener
)

// ProblemKind is the kind of a problem. The values never change, so that alerts and
// metrics can name them.
type ProblemKind = account.ProblemKind

// Problem is a reason for which an account makes no progress, or less than it could.
// [Fleet.Health] and [Report] have them for operators. Many pass without help, so an alert
// should depend on how long ago Since is.
//
//	type Problem struct {
//		// Account is the account; zero for a problem of a whole fleet.
//		Account Account
//		// Kind is the kind of the problem.
//		Kind ProblemKind
//		// Since is when this process first met the problem. The problem was there at the end of
//		// every step since then.
//		Since time.Time
//		// Err is the error; nil for ProblemFunds, ProblemGap and ProblemStalled.
//		Err error
//		// Nonce is the missing nonce of ProblemGap, or the lowest nonce in flight of
//		// ProblemStalled.
//		Nonce uint64
//		// Need and Have belong to ProblemFunds, in wei. Have is the balance. Need is the balance
//		// that covers all transactions in flight and the first request that could not be paid. If
//		// the gas of that request is not estimated yet, Need counts the 21,000 of a transfer.
//		// Other requests that wait may need more.
//		Need, Have uint256.Int
//	}
//
//	// String describes the problem for an operator.
//	func (p Problem) String() string
type Problem = account.Problem

// Attempt is one signed transaction of a request. A record keeps every attempt that a node
// may still have, because any of them may be mined.
//
//	type Attempt struct {
//		// Hash is the transaction hash.
//		Hash common.Hash `json:"hash"`
//		// Raw is the signed transaction as nodes take it, without blobs.
//		Raw []byte `json:"raw"`
//		// Blobs are the blobs of this attempt; nil means the blobs of the request. They differ if
//		// the request was replaced after the attempt was signed.
//		Blobs [][]byte `json:"blobs,omitempty"`
//		// Proofs are the commitments to the blobs, followed by their proofs, of 48 bytes each.
//		// They are deleted when the attempt cannot be sent any more.
//		Proofs []byte `json:"proofs,omitempty"`
//		// Nonce is the nonce of the transaction. It is the nonce of the record, unless Void is
//		// set.
//		Nonce uint64 `json:"nonce"`
//		// Void means that this transaction can never be mined, because a finalized block has used
//		// its nonce without a transaction. The request then gets another nonce.
//		Void bool `json:"void,omitempty"`
//		// Gas is the gas limit.
//		Gas uint64 `json:"gas"`
//		// Fees are the prices that the transaction offers.
//		Fees Fees `json:"fees"`
//		// Cost is the most that the transaction can cost, in wei: gas and blob gas at the offered
//		// prices, and the value.
//		Cost uint256.Int `json:"cost"`
//		// Noop means that the transaction does nothing. It was signed to withdraw the request: if
//		// this attempt is mined, the request is cancelled.
//		Noop bool `json:"noop,omitempty"`
//		// SentAt is when a node first accepted or rejected the transaction; zero if no node has,
//		// or none since the last reorg.
//		SentAt time.Time `json:"sentAt,omitzero"`
//		// Result is the last answer of a node that was certain; Unknown if there was none.
//		Result SendResult `json:"result,omitempty"`
//		// Why is the message of the node with that answer.
//		Why string `json:"why,omitempty"`
//		// Refusals counts how often in a row nodes have rejected the transaction for the same
//		// reason, if that reason lies in the transaction itself, for example its price. It stops
//		// at 6.
//		Refusals int `json:"refusals,omitempty"`
//	}
type Attempt = account.Attempt

// Record is a request with everything that has happened to it.
//
//	type Record struct {
//		Request
//		// ID is the number of the record, from 1, in the order in which the store accepted the
//		// account's requests.
//		ID uint64 `json:"id"`
//		// State is how far the request has come.
//		State State `json:"state"`
//		// QueuedAt is when the store accepted the request.
//		QueuedAt time.Time `json:"queuedAt"`
//		// EndedAt is when the request ended; zero before.
//		EndedAt time.Time `json:"endedAt,omitzero"`
//		// Nonce is the nonce of the request. It has a meaning only in the states after Pending.
//		Nonce uint64 `json:"nonce"`
//		// Attempts are the transactions that were signed for the request, oldest first. Of the
//		// void ones only the last eight are kept.
//		Attempts []Attempt `json:"attempts,omitempty"`
//		// Height is the height of the block that has one of the attempts; 0 while none has.
//		Height uint64 `json:"height,omitempty"`
//		// Block is the hash of that block.
//		Block common.Hash `json:"block,omitzero"`
//		// Tx is the hash of the attempt that is in that block.
//		Tx common.Hash `json:"tx,omitzero"`
//		// Success means that the transaction in the block did not revert.
//		Success bool `json:"success,omitempty"`
//		// GasUsed is the gas that it used.
//		GasUsed uint64 `json:"gasUsed,omitempty"`
//		// GasPrice is the price per gas that it paid, in wei; nil if the node did not tell it.
//		GasPrice *uint256.Int `json:"gasPrice,omitempty"`
//		// Contract is the contract that it created; nil if it created none.
//		Contract *common.Address `json:"contract,omitempty"`
//		// Logs are the logs that it emitted. Only the first 64 KiB are kept.
//		Logs []Log `json:"logs,omitempty"`
//		// Bumps is how often the request was signed again with its nonce, at a higher price or
//		// with another payload.
//		Bumps int `json:"bumps,omitempty"`
//		// BumpedAt is when that happened last.
//		BumpedAt time.Time `json:"bumpedAt,omitzero"`
//		// Capped means that the request needs a higher price than its limits allow, so that it
//		// waits.
//		Capped bool `json:"capped,omitempty"`
//		// Cancelling means that the next attempt is a transaction that does nothing, which
//		// withdraws the request.
//		Cancelling bool `json:"cancelling,omitempty"`
//		// Urgent means that the next attempt is signed at once and not only when the account has
//		// stalled: the user has changed the request, or nodes refused the last attempt.
//		Urgent bool `json:"urgent,omitempty"`
//		// GoneAt is when the nonce was first found to be used in a finalized block although none
//		// of the attempts was in a block; 0 means never. It is the height of the newest block at
//		// that moment. A later finalized block must show the same before the request is given up.
//		GoneAt uint64 `json:"goneAt,omitempty"`
//		// Unused is the height of a finalized block at which the nonce was not used yet; 0 means
//		// unknown. With Used it limits the blocks that are searched for the transaction that used
//		// the nonce.
//		Unused uint64 `json:"unused,omitempty"`
//		// Used is the height of a finalized block at which the nonce was used; 0 if GoneAt is 0.
//		Used uint64 `json:"used,omitempty"`
//		// NotBefore is the time before which the request is not signed, because it could not be
//		// estimated, paid for or signed, or because nodes refused it; zero means at once.
//		NotBefore time.Time `json:"notBefore,omitzero"`
//		// Reason says in words why the request failed or waits.
//		Reason string `json:"reason,omitempty"`
//	}
//
//	// Err returns nil if the request was executed or may still be. Otherwise the error wraps:
//	//
//	//   - ErrReverted if its transaction is in a block and failed there
//	//   - ErrNotExecuted if it failed without a transaction, or was cancelled or superseded
//	func (r *Record) Err() error
//
//	// Newest returns the last attempt, or nil.
//	func (r *Record) Newest() *Attempt
//
//	// Open reports whether the request has a nonce and may still change: from Prepared until it
//	// is final, failed, superseded or cancelled.
//	func (r *Record) Open() bool
type Record = account.Record

// Account names the sender of transactions: an address on a chain. Any number of programs may
// submit requests for an account, but at most one worker at a time signs and sends for it.
//
//	type Account struct {
//		// ChainID is the id of the chain (EIP-155).
//		ChainID uint64 `json:"chainId"`
//		// Address is the account's address.
//		Address common.Address `json:"address"`
//	}
//
//	// String returns the chain id and the address, separated by a colon.
//	func (a Account) String() string
type Account = account.Account

// Kind is the type of transaction that a request is sent as. Most requests leave it at
// DynamicFee.
//
//	// String returns the name, for example "dynamicFee".
//	func (k Kind) String() string
type Kind = account.Kind

const (
	// DynamicFee is an EIP-1559 transaction, with a limit for the whole price and a tip. It
	// is the default.
	DynamicFee = account.DynamicFee
	// Legacy is a transaction of the oldest type, with one price, and protected against
	// replay on other chains by EIP-155. Some chains take no other type.
	Legacy = account.Legacy
	// AccessList is an EIP-2930 transaction, with one price and a list of the storage that it
	// uses.
	AccessList = account.AccessList
	// SetCode is an EIP-7702 transaction. Its authorizations let accounts run the code of a
	// contract.
	SetCode = account.SetCode
	// Blob is an EIP-4844 transaction, which carries blobs. The program must import package
	// eoa/blobs. The blobs are stored once, with the request, and are attached each time that
	// the signed transaction is sent, because a signature covers only their hashes. When the
	// request has ended, its blobs are deleted. A replacement must at least double all three
	// prices.
	//
	// Nodes keep blob transactions in a separate pool. That pool takes at most 16
	// transactions of an account, none behind a missing nonce, and none while the account has
	// transactions in the other pool. Therefore:
	//
	//   - A nonce that a blob transaction had is filled only by another blob transaction. If
	//     a request is cancelled, that is a transaction with one blob of zeros.
	//     [Client.Replace] cannot turn a blob request into another kind.
	//   - A blob request waits until no other kind of transaction is in flight, and the
	//     reverse. The requests behind it wait as well, so use a separate account for blobs.
	//   - If a reorg takes back both kinds, they are sent one kind after the other.
	//
	// From the Osaka fork on, networks expect cell proofs instead of one proof per blob; see
	// Config.CellProofs. The transaction hash does not depend on the proofs.
	Blob = account.Blob
)

// Request describes a transaction that shall be executed once. Its key makes it safe to
// submit it again: an equal request with the same key is the same request, also after a
// restart. A different request with the same key is refused with ErrKeyReused.
//
//	type Request struct {
//		// Key identifies the request among those of its account. The caller chooses it, for
//		// example from an order number: 1 to 256 bytes of UTF-8 that do not begin with "eoa/".
//		Key string `json:"key"`
//		// Kind is the transaction type. The default is DynamicFee.
//		Kind Kind `json:"kind,omitempty"`
//		// To is the recipient; nil creates a contract. Data is then the code that returns the
//		// contract's code.
//		To *common.Address `json:"to,omitempty"`
//		// Value is the amount, in wei; nil means 0.
//		Value *uint256.Int `json:"value,omitempty"`
//		// Data is the input of the call, at most 128 KiB.
//		Data []byte `json:"data,omitempty"`
//		// AccessList is the access list (EIP-2930). Kind Legacy must have none.
//		AccessList types.AccessList `json:"accessList,omitempty"`
//		// Authorizations are the authorizations of a SetCode transaction, at least
//		// one. Other kinds must have none.
//		Authorizations []types.SetCodeAuthorization `json:"authorizations,omitempty"`
//		// Blobs are the blobs of a Blob transaction: 1 to MaxBlobs, of BlobSize bytes each. Other
//		// kinds must have none. When the request has ended, its record has none any more.
//		Blobs [][]byte `json:"blobs,omitempty"`
//		// Gas is the gas limit; 0 means that the node estimates it. Values from 1 to 20,999 are
//		// invalid, because every transaction needs 21,000.
//		Gas uint64 `json:"gas,omitempty"`
//		// MaxFee is the highest price per gas that this request may ever offer, in wei; nil means
//		// no limit. While the base fee is above it, the request waits.
//		MaxFee *uint256.Int `json:"maxFee,omitempty"`
//		// MaxBlobFee is the highest price per blob gas that this request may ever offer, in wei;
//		// nil means no limit. Only requests of kind Blob may have it.
//		MaxBlobFee *uint256.Int `json:"maxBlobFee,omitempty"`
//		// Priority decides which requests get nonces first: those with a higher priority.
//		// Requests of equal priority get them in the order in which the store accepted them. The
//		// default is 0.
//		Priority int32 `json:"priority,omitempty"`
//		// Group names a sequence of requests that depend on each other; empty means none. They
//		// get their nonces in the order of acceptance, so give them one priority. If the gas of
//		// one must be estimated, it waits until all those before it are mined, because their
//		// effects may change the estimate.
//		Group string `json:"group,omitempty"`
//		// Deadline is the time after which a request that has no nonce yet fails; zero means
//		// never. A request with a nonce goes on. The year must be from 0 to 9999, in UTC.
//		Deadline time.Time `json:"deadline,omitzero"`
//		// Metadata is for the caller: it is stored with the request and returned in the record.
//		Metadata []byte `json:"metadata,omitempty"`
//		// Noop makes the request a transfer of 0 wei from the account to itself. To, Value and
//		// Data are ignored then.
//		Noop bool `json:"noop,omitempty"`
//	}
//
//	// BlobHashes returns the versioned hashes of the request's blobs, in order; nil if it has
//	// none. Packages that implement [Chain] need them for estimates. The error wraps
//	// ErrInvalidRequest if the blobs are invalid.
//	func (r *Request) BlobHashes() ([]common.Hash, error)
//
//	// Validate returns an error that wraps ErrInvalidRequest if the request could never be
//	// executed, for example because its blobs are malformed. Submit calls it.
//	func (r *Request) Validate() error
//
//	// Digest returns a hash of the key and the payload. A store compares it to tell a request
//	// that is submitted again from another request with the same key.
//	func (r *Request) Digest() [sha256.Size]byte
type Request = account.Request

// Rules are the settings on which the decisions about requests depend: limits, prices and
// waits. They are part of [Config]. A [View] gets them with each decision.
//
//	type Rules struct {
//		// Fees decides when a transaction that is not mined is replaced at a higher
//		// price.
//		Fees FeePolicy
//		// Confirmations is how deep in the chain a block must be for its requests to be
//		// Confirmed, where 1 is the newest block; 1 to 2^20. The default is 3.
//		Confirmations uint64
//		// MaxInFlight is the maximum number of requests in flight, that is, with a nonce and in
//		// no block; 1 to 2^20. It holds while a node is known to have all of them. The default is
//		// 100.
//		MaxInFlight int
//		// MaxUnsure is that maximum while any request in flight is not known to be on a node; 1
//		// to 2^20. If the node lacks one, it keeps only this many behind the gap: 64 in
//		// go-ethereum, which is the default. A value above MaxInFlight has no effect.
//		MaxUnsure int
//		// Batch is the maximum number of requests that are signed, stored and sent together; 1 to
//		// 1000. The default is 100.
//		Batch int
//		// Rebroadcast is how often a transaction that is in no block is sent again, because nodes
//		// forget; above 0, at most 24 hours. The default is 30 seconds.
//		Rebroadcast time.Duration
//		// Retry is the wait after a call to the chain, the signer or the store has failed; above
//		// 0, at most one minute. It doubles with each failure, up to one minute. If an estimate
//		// of gas takes longer than Retry, requests whose gas is given go first. The default is
//		// one second.
//		Retry time.Duration
//		// GasMargin is how much more gas a transaction gets than the node has estimated, in
//		// percent; 0 to 1000. The margin never lifts the gas above the limit of a block or of a
//		// transaction (EIP-7825). If a node refuses the gas nevertheless, the estimate is used
//		// without a margin. The default is 20.
//		GasMargin uint64
//		// Requeue submits a request again if a transaction of another program has used its nonce.
//		// The new request has the old key followed by "~" and the id of the record.
//		Requeue bool
//		// Retention limits the history of the account in the store.
//		Retention Retention
//		// Exclusive promises that no other program signs for the account, and that its code, if
//		// it has any, creates no contracts. A transaction of the account that the store does not
//		// know is then proof that the store has lost writes. The account stops with
//		// ErrStoreRolledBack, even if no process remembers the lost writes. This is also so if
//		// the store knows nothing of an account that has transactions. If they were sent before
//		// the account came to this store, call [Client.Resume].
//		//
//		// If Exclusive is false, the promise still counts in a store that may lose writes
//		// ([Loaded.MayLose]), such as Redis, unless Config.SharedKey is set. The default is
//		// false.
//		Exclusive bool
//	}
//
//	// Validate returns an error that lists each field out of range, with its value
//	// and the allowed range. The error wraps ErrInvalidConfig.
//	func (c *Rules) Validate() error
type Rules = account.Rules

// State is how far a request has come. Most requests go through the first six states in
// order; a reorg takes a request from Mined or Confirmed back to Broadcast.
//
//	// String returns the name in lower case.
//	func (s State) String() string
//
//	// Terminal reports whether a record in this state never changes again.
//	func (s State) Terminal() bool
type State = account.State

const (
	// Pending means that the request is in the store and has no nonce yet.
	Pending = account.Pending
	// Prepared means that the request has a nonce and its signed transaction is in the store.
	// It is not known yet whether any node has the transaction.
	Prepared = account.Prepared
	// Broadcast means that a node has accepted a transaction of the request.
	Broadcast = account.Broadcast
	// Mined means that a block has a transaction of the request. A reorg may still remove the
	// block.
	Mined = account.Mined
	// Confirmed means that the block is as deep in the chain as Config.Confirmations
	// requires.
	Confirmed = account.Confirmed
	// Final means that the block is finalized and the transaction succeeded in it. The record
	// never changes again.
	Final = account.Final
	// Failed means that the request was not executed, in one of three ways: it ended before
	// it had a nonce, for example at its deadline; its transaction reverted in a finalized
	// block; or nodes refused it for good, and a transaction that does nothing has used its
	// nonce. The record never changes again.
	Failed = account.Failed
	// Superseded means that something else has used the nonce: a finalized transaction of
	// another program, or, for a member of a group, no transaction at all. A request that a
	// forced reset gave up is superseded, too. The record never changes again.
	Superseded = account.Superseded
	// Cancelled means that the request was withdrawn: it had no nonce yet, or a transaction
	// that does nothing has used its nonce, or nothing can use the nonce any more. The record
	// never changes again.
	Cancelled = account.Cancelled
)

// SendResult is the outcome of giving a signed transaction to a node.
//
//	// String returns the name in lower case.
//	func (r SendResult) String() string
type SendResult = account.SendResult

const (
	// Unknown means that the node may or may not have the transaction: the call timed out,
	// the connection or the server failed, or the message is not a known one. It is the zero
	// value, so that a result which a Chain leaves out is Unknown.
	Unknown = account.Unknown
	// Accepted means that the node has the transaction, from this send or from an earlier
	// one.
	Accepted = account.Accepted
	// Rejected means that the node which answered does not have the transaction. Another node
	// behind the same gateway may have it.
	Rejected = account.Rejected
)

// Loaded is the state of an account in the store, as returned by [Store.Load].
//
//	type Loaded struct {
//		// Head is the account's head.
//		Head Head
//		// Open are the records for which [Record.Open] holds, by nonce.
//		Open []Record
//		// MayLose means that the store may lose writes that it has acknowledged, for example if
//		// it promotes a replica. The account is then treated as exclusive; see [Rules.Exclusive].
//		MayLose bool
//	}
type Loaded = account.Loaded
