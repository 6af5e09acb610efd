// go test ./internal/tidy -update writes this file from package eoa/internal/account.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// Batch contains the changes that one or several decisions make to an account, for
// the store to write. A store writes either the whole batch or nothing of it.
//
//	type Batch struct {
//		// Head is the new head of the account. Head.Version is still the version on
//		// which the decision was based. If the store has another version by now, it
//		// refuses the batch; otherwise it stores the head with Version+1.
//		Head Head
//		// Records replace the stored records that have the same ids. A store may rely
//		// on these rules:
//		//
//		//   - The key and the priority of a record never change.
//		//   - A record that is Broadcast, Mined or Confirmed was Prepared in an earlier
//		//     batch.
//		//   - SentAt of a new attempt is zero.
//		Records []Record
//		// Events are appended to the outbox, from which they are delivered. The store
//		// gives them their sequence numbers.
//		Events []Event
//		// Done contains the sequence numbers (Order.Seq) of the orders that were
//		// carried out.
//		Done []uint64
//		// Drop contains the records whose history the store deletes, because
//		// [Retention] no longer keeps it. Of each record, the store keeps only the key,
//		// id, state and digest. Get and Submit then return a record with only these
//		// fields, and List and ByHash no longer find the record.
//		Drop []Record
//		// Add contains new requests that the executor makes itself. The store accepts
//		// them in the same way as Submit does, except that it skips a request whose key
//		// exists.
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

// Reason is why a node did not accept a transaction. [Classify] derives it from the
// node's message.
//
//	// String returns the reason in the usual words of nodes, for example "nonce too
//	// low".
//	func (r Reason) String() string
//
//	// Result returns the outcome of a send that a node answered with this reason. For
//	// ReasonNonceTooLow that is Unknown, because the very transaction that was sent may
//	// have used the nonce.
//	func (r Reason) Result() SendResult
type Reason = account.Reason

const (
	// ReasonNone means that the node gave no message, or a message that is not
	// recognized.
	ReasonNone = account.ReasonNone
	// ReasonKnown means that the node already has this transaction.
	ReasonKnown = account.ReasonKnown
	// ReasonNonceTooLow means that a transaction with this nonce has been mined. It
	// may be the very transaction that was sent.
	ReasonNonceTooLow = account.ReasonNonceTooLow
	// ReasonNonceGap means that the node lacks the transaction with the preceding
	// nonce, and keeps no transactions behind a missing one.
	ReasonNonceGap = account.ReasonNonceGap
	// ReasonReplacement means that the node has another transaction with this
	// nonce, and that the new one does not pay enough more to replace it.
	ReasonReplacement = account.ReasonReplacement
	// ReasonUnderpriced means that the price is below the minimum that the node
	// accepts now.
	ReasonUnderpriced = account.ReasonUnderpriced
	// ReasonFunds means that the account's balance does not cover the transaction now.
	ReasonFunds = account.ReasonFunds
	// ReasonFull means that the node has no room for the transaction now.
	ReasonFull = account.ReasonFull
	// ReasonInvalid means that no node will ever accept this transaction.
	ReasonInvalid = account.ReasonInvalid
	// ReasonBusy means that the node asked the caller to wait before the next call.
	ReasonBusy = account.ReasonBusy
	// ReasonGasLimit means that the transaction's gas limit is above that of a
	// block, or above the limit per transaction (EIP-7825). The node may accept
	// the transaction with a lower gas limit.
	ReasonGasLimit = account.ReasonGasLimit
	// ReasonFeeCap means that gas limit times price exceeds the most that this node
	// relays (geth's --rpc.txfeecap). Another node may accept the transaction, or
	// the same node may accept it at a lower price.
	ReasonFeeCap = account.ReasonFeeCap
)

// Classify derives the reason from a node's answer to eth_sendRawTransaction: the
// message of its JSON-RPC error. Do not use it for other errors, because the text
// of an HTTP or connection error does not show whether the node has the
// transaction.
//
// Classify recognizes a message that begins, in whole words, with one of the known
// texts of nodes. A gateway may put its own words and a colon in front. After a
// text for ReasonKnown, the message must end or go on with a punctuation mark.
// Classify returns ReasonNone, whose result is Unknown, if it does not recognize
// the message or if the message has two meanings.
func Classify(text string) Reason { return account.Classify(text) }

// EventKind is the kind of an event. Its String and its JSON form are the name in
// lower case, for example "mined".
//
//	// String returns the kind in lower case, for example "mined".
//	func (k EventKind) String() string
type EventKind = account.EventKind

const (
	// EventSubmitted means that a node has a transaction of the request for the
	// first time, because it accepted the transaction or a block contains it. There
	// is at most one EventSubmitted for each nonce of a request, and it comes
	// before EventMined. EventBumped may come even earlier, if the answers to the
	// first sends were lost.
	EventSubmitted = account.EventSubmitted
	// EventBumped means that the request was signed again with the same nonce, at a
	// higher price or with another payload.
	EventBumped = account.EventBumped
	// EventCapped means that the request needs a higher price than its limits allow. It waits
	// until the price falls, or until the user replaces it.
	EventCapped = account.EventCapped
	// EventMined means that a block contains a transaction of the request.
	EventMined = account.EventMined
	// EventConfirmed means that the block with the request's transaction is as
	// deep in the chain as Config.Confirmations requires.
	EventConfirmed = account.EventConfirmed
	// EventFinal means that the block with the request's transaction is finalized,
	// and that the transaction succeeded.
	EventFinal = account.EventFinal
	// EventReorged means that a reorg has removed the block with the request's
	// transaction. The same transaction is sent again.
	EventReorged = account.EventReorged
	// EventFailed means that the request is now Failed.
	EventFailed = account.EventFailed
	// EventCancelled means that the request is now Cancelled.
	EventCancelled = account.EventCancelled
	// EventSuperseded means that the request is now Superseded.
	EventSuperseded = account.EventSuperseded
	// EventNoop means that a no-op transaction was signed to fill a gap: a nonce that
	// no known transaction has. Without it, the transactions behind the gap could not
	// be mined.
	EventNoop = account.EventNoop
	// EventReset means that the next nonce was set as [Client.ResetNonce] ordered.
	EventReset = account.EventReset
	// EventRequeued means that the nonce of the request was used without a
	// transaction, by an authorization (EIP-7702) or by a contract that the
	// account's code created. The request gets another nonce, and EventSubmitted
	// comes once more.
	EventRequeued = account.EventRequeued
	// EventStopped means that the account is stopped until an operator calls
	// [Client.Resume]. Event.Reason contains the evidence.
	EventStopped = account.EventStopped
	// EventResumed means that an operator has resumed the stopped account.
	EventResumed = account.EventResumed
	// EventReverted means that the request's transaction is in a block but failed:
	// it paid for its gas and had no other effect. This event comes directly after
	// EventMined. EventFailed follows when the block is final.
	EventReverted = account.EventReverted
)

// Event tells the host that a request or its account has changed. The store writes
// it together with the change, so that no event is lost. The events of one account
// are delivered in order and at least once: after a crash, an event may be
// delivered again.
//
//	type Event struct {
//		// Account is the account that the event belongs to. Stores leave it zero, and
//		// [Deliver] sets it.
//		Account Account `json:"account,omitzero"`
//		// Seq numbers the events of one account without gaps. A receiver can detect
//		// repeated deliveries by Account and Seq.
//		Seq uint64 `json:"seq"`
//		// Kind is the kind of the change.
//		Kind EventKind `json:"kind"`
//		// At is the time of the decision, by the executor's clock.
//		At time.Time `json:"at"`
//		// ID is the id of the record; 0 for events about the account itself (EventReset,
//		// EventStopped, EventResumed).
//		ID uint64 `json:"id,omitempty"`
//		// Key is the key of the request; empty for events about the account itself.
//		Key string `json:"key,omitempty"`
//		// Nonce is the nonce of the request at that moment. For events about the account itself
//		// it is the next nonce.
//		Nonce uint64 `json:"nonce"`
//		// Tx is the hash of the request's transaction in the block. If no block
//		// contains one, it is the hash of the newest transaction signed for the
//		// request.
//		Tx common.Hash `json:"tx,omitzero"`
//		// Height is the height of the block with the transaction; 0 if there is none.
//		Height uint64 `json:"height,omitempty"`
//		// Success means that a block contains the transaction and that it did not
//		// revert.
//		Success bool `json:"success"`
//		// Reason is the value of Record.Reason at that moment.
//		Reason string `json:"reason,omitempty"`
//	}
type Event = account.Event

var (
	// ErrInvalidRequest is returned for a request that could never be executed.
	ErrInvalidRequest = account.ErrInvalidRequest
	// ErrMalformed is returned if stored bytes are damaged, so that no executor
	// can have written them as a record.
	ErrMalformed = account.ErrMalformed
	// ErrNotExecuted means that a request has ended without being executed: it
	// failed before it was sent, or it was cancelled or superseded. [Record.Err]
	// wraps it.
	ErrNotExecuted = account.ErrNotExecuted
	// ErrNotReplaced means that [Client.Replace] came too late: the chain has executed
	// the earlier payload of the request. [Record.Err] wraps it.
	ErrNotReplaced = account.ErrNotReplaced
	// ErrReverted means that a request was executed and failed. [Record.Err] wraps
	// it if a block contains the failed transaction, and [Chain.Estimate] wraps it
	// if the node tried the call.
	ErrReverted = account.ErrReverted
	// ErrInvalidConfig is wrapped by all errors about a configuration.
	ErrInvalidConfig = account.ErrInvalidConfig
	// ErrOtherChain stops an account whose node seems to be on another chain. For a
	// long time the node has reported fewer transactions of the account than a
	// finalized block had before.
	ErrOtherChain = account.ErrOtherChain
	// ErrStopped is returned by [Executor.Step] while the account is stopped: nothing is
	// signed or sent until an operator calls [Client.Resume]. The error also wraps the cause,
	// ErrStoreRolledBack or ErrOtherChain.
	ErrStopped = account.ErrStopped
	// ErrStoreRolledBack is the cause of a stop: the store has lost writes, for
	// example because a replica was promoted that did not have them. Transactions
	// of the lost writes may be on the chain, so going on could execute requests
	// twice. There are two signs of it:
	//
	//   - The store lacks commits that this process has seen.
	//   - An exclusive account has a transaction that the store does not know.
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

// Reset records a change of the next nonce that a user has ordered with
// [Client.ResetNonce].
//
//	type Reset struct {
//		// At is when the reset was carried out.
//		At time.Time `json:"at"`
//		// From is the next nonce before the reset.
//		From uint64
//		// To is the next nonce after the reset.
//		To uint64
//		// Forced means that the reset gave up the requests in flight.
//		Forced bool `json:"forced,omitempty"`
//	}
type Reset = account.Reset

// Look is a report by one node about an account and its chain at one moment. It
// includes prices, because prices and balance together decide which requests can be
// sent.
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
//		// Preconfirmed is Latest plus the number of transactions that are promised to
//		// be in the next block. It equals Latest on chains without such promises.
//		Preconfirmed uint64
//		// Pending is Latest plus the number of transactions in the node's pool that
//		// follow without a gap. The first nonce of a new account is taken from Pending.
//		// For an exclusive account, Pending also reveals transactions that the store
//		// has lost.
//		Pending uint64
//		// Delegated means that the account has code (EIP-7702). Nodes then keep only
//		// one of its transactions at a time, so the executor has only one in flight.
//		Delegated bool
//		// Balance is the balance of the account, in wei; nil means unknown.
//		Balance *uint256.Int
//		// BaseFee is the base fee of the next block, in wei per gas.
//		BaseFee uint256.Int
//		// Tip is a usual priority fee, in wei per gas.
//		Tip uint256.Int
//		// BlobFee is the price of blob gas, in wei; 0 means unknown. While it is
//		// unknown, requests of kind Blob wait.
//		BlobFee uint256.Int
//	}
type Look = account.Look

// Questions are sent to one node after a Look. They ask which transactions are in
// blocks, and whether blocks seen earlier are still part of the chain.
//
//	type Questions struct {
//		// Txs are the transactions whose receipts are wanted.
//		Txs []common.Hash
//		// Heights are the heights whose block hashes are wanted.
//		Heights []uint64
//		// Account is the account whose Nonces are asked about.
//		Account common.Address
//		// Nonces are nonces that the account has used although none of the known
//		// transactions with these nonces is in a block. The node is asked which
//		// transactions used them.
//		Nonces []UsedNonce
//	}
type Questions = account.Questions

// UsedNonce is a nonce that was used in a finalized block, but by none of the
// transactions that the executor knows. The executor asks which transaction used
// it.
//
//	type UsedNonce struct {
//		// Nonce is the used nonce.
//		Nonce uint64
//		// After and UpTo limit the blocks to search. Both are heights of finalized
//		// blocks: the nonce was not used yet at After, and was used at UpTo. After is
//		// 0 if no block before the use is known.
//		After, UpTo uint64
//	}
type UsedNonce = account.UsedNonce

// Answers has one node's answers to [Questions]. A question that the node did not
// answer, or answered with an error, has no entry in any of the maps.
//
//	type Answers struct {
//		// Number is the height of the node's newest block when it answered. The
//		// executor measures the depth of blocks from it.
//		Number uint64
//		// Receipts has the receipt of each requested transaction that is in a block.
//		Receipts map[common.Hash]Receipt
//		// Missing has the requested transactions that are in no block, according to the
//		// node.
//		Missing map[common.Hash]bool
//		// Blocks has the block hash at each requested height that the chain has
//		// reached.
//		Blocks map[uint64]common.Hash
//		// Users has the transaction that used each requested nonce. The zero hash means
//		// that no transaction used the nonce, but an authorization of the account
//		// (EIP-7702) or a contract that its code created (EIP-161).
//		Users map[uint64]common.Hash
//	}
type Answers = account.Answers

// Receipt has those fields of a transaction receipt that the executor needs.
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
//		// GasPrice is the price per gas that the transaction paid, in wei; nil means
//		// unknown.
//		GasPrice *uint256.Int
//		// Contract is the address of the contract that the transaction created; nil if
//		// it created none.
//		Contract *common.Address
//		// Logs are the logs that the transaction emitted.
//		Logs []Log
//	}
type Receipt = account.Receipt

// Log is an entry that a contract emitted while a transaction was executed.
//
//	type Log struct {
//		// Address is the contract's address.
//		Address common.Address `json:"address"`
//		// Topics are the indexed words, at most four.
//		Topics []common.Hash `json:"topics"`
//		// Data is the part of the entry that is not indexed.
//		Data []byte `json:"data"`
//	}
type Log = account.Log

// Sent is a node's answer to one transaction.
//
//	type Sent struct {
//		// Result tells whether the node has the transaction. For a refused
//		// transaction, [Reason.Result] derives it from Reason.
//		Result SendResult
//		// Reason is why the node did not accept the transaction, as [Classify] returns
//		// it.
//		Reason Reason
//		// RetryAfter is how long the node asked the caller to wait before the next
//		// call; 0 if it did not ask. More than a minute counts as one minute.
//		RetryAfter time.Duration
//		// Text is the node's message, which is stored in the record.
//		Text string
//	}
type Sent = account.Sent

// Estimated is a node's estimate of the gas of one request.
//
//	type Estimated struct {
//		// Gas is the gas limit that the request needs.
//		Gas uint64
//		// Err is why there is no estimate. If Err wraps ErrReverted, the node has tried
//		// the request and it failed, so the request fails without a transaction. After
//		// any other error, the executor asks for the estimate again.
//		Err error
//	}
type Estimated = account.Estimated

// Order is a change that a user has ordered, for example a cancellation. Any
// process may give an order, because the store keeps it until the worker of the
// account carries it out.
//
//	type Order struct {
//		// Seq numbers the orders of one account. The store sets it.
//		Seq uint64 `json:"seq"`
//		// Kind is the kind of the change.
//		Kind OrderKind `json:"kind"`
//		// Key is the key of the request to cancel or replace.
//		Key string `json:"key,omitempty"`
//		// Payload is the new payload for OrderReplace. Its Key is ignored.
//		Payload *Request `json:"payload,omitempty"`
//		// Force lets OrderReset give up the requests in flight.
//		Force bool `json:"force,omitempty"`
//	}
type Order = account.Order

// FeePolicy decides when a transaction that is not mined is signed again at a
// higher price (a bump), and at which price. DefaultConfig returns the defaults.
//
//	type FeePolicy struct {
//		// StallTimeout is how long an account waits until one of its transactions in
//		// flight is mined, before prices are raised; positive. After that time, the
//		// first transaction in flight is bumped, and so are the transactions behind it
//		// that pay too little for today's prices. The wait doubles with each bump of a
//		// transaction, up to 64 times StallTimeout. The default is 5 minutes.
//		StallTimeout time.Duration
//		// BumpPercent is the least by which a bump raises the price, in percent; 10 to
//		// 1000. For a blob transaction it is at least 100, because nodes demand that.
//		// If the raised price would exceed a limit, the limit is offered instead. A
//		// limit that is less than 10 % above the earlier price (100 % with blobs)
//		// prevents the bump, because nodes would refuse it. The default is 20.
//		BumpPercent uint64
//		// MaxFee is the highest price per gas that may be offered for any request, in
//		// wei; nil means no limit. A lower Request.MaxFee takes precedence for its
//		// request.
//		MaxFee *uint256.Int
//		// MaxBlobFee is the highest price per blob gas that may be offered for any
//		// request, in wei; nil means no limit. A lower Request.MaxBlobFee takes
//		// precedence for its request.
//		MaxBlobFee *uint256.Int
//	}
//
//	// Validate returns an error that lists each field out of range, with its value
//	// and the allowed range. The error wraps ErrInvalidConfig.
//	func (p *FeePolicy) Validate() error
type FeePolicy = account.FeePolicy

// Retention limits how much of an account's history its store keeps. The executor
// deletes older history when the account has no work left, and every ten minutes
// while it has work.
//
// When the store deletes the record of a request, it still keeps the key, id, state
// and a digest of the payload. If the request is submitted again, the store
// therefore finds it and does not execute it a second time. [Client.Get] returns a
// record with only these fields, and [Client.List] and [Client.ByHash] no longer
// find it.
//
//	type Retention struct {
//		// Age is how long a record is kept after its request has ended; at least 0. 0
//		// means forever. The default is 7 days.
//		Age time.Duration
//		// Count is how many of an account's newest requests keep their records; at
//		// least 0. Older requests that have ended lose their records even before Age. 0
//		// means no limit. The default is 100,000.
//		Count int
//		// EventAge is how long the store keeps an event that has not been acknowledged;
//		// at least 0. 0 means forever. The default is 30 days.
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
	// ProblemRequest means that a request waits, while other requests go on. Err
	// has the request's key and one of these reasons:
	//
	//   - One of its price limits is below the base fee or the price of blobs.
	//   - The price of blobs is unknown.
	//   - Its gas could not be estimated.
	//
	// Other requests wait too if they come behind 16,384 waiting requests, or
	// behind MaxInboxBytes of waiting requests.
	ProblemRequest = account.ProblemRequest
	// ProblemGap means that no known transaction has the nonce in Problem.Nonce, so
	// that no transaction behind that nonce can be mined. The executor fills the
	// gap with a no-op transaction as soon as it can.
	ProblemGap = account.ProblemGap
	// ProblemStalled means that transactions are in flight and none was mined for
	// FeePolicy.StallTimeout. Problem.Nonce is the lowest nonce in flight. The
	// executor raises the price, unless a limit is reached.
	ProblemStalled = account.ProblemStalled
	// ProblemChain means that the chain cannot be read, or that the node is behind
	// or contradicts its earlier answers. Err has the reason. No new request is
	// sent until this passes.
	ProblemChain = account.ProblemChain
	// ProblemSigner means that the signer failed at the last signature. Err is its
	// error.
	ProblemSigner = account.ProblemSigner
	// ProblemStore means that the store failed. Err is its error. If Account is zero, the
	// fleet could not find out which accounts have work.
	ProblemStore = account.ProblemStore
	// ProblemLease means that another worker holds the account's lease. That is
	// usual if several processes share a store. Err wraps ErrHeld.
	ProblemLease = account.ProblemLease
	// ProblemOpener means that the fleet's [Opener] returned an error, or did not
	// return within Config.Timeout. Err has the reason.
	ProblemOpener = account.ProblemOpener
)

// ProblemKind is the kind of a problem. Its values never change, so that alerts and
// metrics can use them as names.
type ProblemKind = account.ProblemKind

// Problem is a reason why an account makes no progress, or less progress than it
// could. Operators get problems from [Fleet.Health] and [Report]. Many problems
// pass without help, so an alert should depend on how long ago Since is.
//
//	type Problem struct {
//		// Account is the account; zero for a problem of a whole fleet.
//		Account Account
//		// Kind is the kind of the problem.
//		Kind ProblemKind
//		// Since is when this process first met the problem. The problem was still there
//		// at the end of every step since then.
//		Since time.Time
//		// Err is the error; nil for ProblemFunds, ProblemGap and ProblemStalled.
//		Err error
//		// Nonce is the missing nonce of ProblemGap, or the lowest nonce in flight of
//		// ProblemStalled.
//		Nonce uint64
//		// Need and Have are set for ProblemFunds, in wei. Have is the account's
//		// balance. Need is the balance that would cover all transactions in flight and
//		// the first request that could not be paid for. If the gas of that request is
//		// not estimated yet, Need counts the 21,000 gas of a transfer. Further waiting
//		// requests are not counted.
//		Need, Have uint256.Int
//	}
//
//	// String describes the problem for an operator.
//	func (p Problem) String() string
type Problem = account.Problem

// Attempt is one signed transaction of a request. A record keeps all attempts that
// a node may still have, because any of them may be mined.
//
//	type Attempt struct {
//		// Hash is the transaction hash.
//		Hash common.Hash `json:"hash"`
//		// Raw is the signed transaction in the encoding that nodes accept, without
//		// blobs.
//		Raw []byte `json:"raw"`
//		// Blobs are the blobs of this attempt; nil means the blobs of the request. The
//		// two differ if the request was replaced after the attempt was signed.
//		Blobs [][]byte `json:"blobs,omitempty"`
//		// Proofs contains the commitments to the blobs, followed by their proofs, of 48
//		// bytes each. They are deleted when the attempt cannot be sent any more.
//		Proofs []byte `json:"proofs,omitempty"`
//		// Nonce is the nonce of the transaction. It equals the nonce of the record
//		// unless Void is set.
//		Nonce uint64 `json:"nonce"`
//		// Void means that this transaction can never be mined, because a finalized block has used
//		// its nonce without a transaction. The request then gets another nonce.
//		Void bool `json:"void,omitempty"`
//		// Gas is the gas limit.
//		Gas uint64 `json:"gas"`
//		// Fees are the prices that the transaction offers.
//		Fees Fees `json:"fees"`
//		// Cost is the most that the transaction can cost, in wei: its value plus its
//		// gas and blob gas at the offered prices.
//		Cost uint256.Int `json:"cost"`
//		// Noop means that the transaction does nothing except use the nonce. It was
//		// signed to withdraw the request: if this attempt is mined, the request is
//		// cancelled.
//		Noop bool `json:"noop,omitempty"`
//		// SentAt is when a node first accepted or rejected the transaction; zero if no
//		// node has. A reorg that removes the transaction's block sets it back to zero.
//		SentAt time.Time `json:"sentAt,omitzero"`
//		// Result is the last certain answer of a node; Unknown if there was none.
//		Result SendResult `json:"result,omitempty"`
//		// Why is the node's message that came with Result.
//		Why string `json:"why,omitempty"`
//		// Refusals counts how often in a row nodes have rejected the transaction for
//		// the same reason, if the reason lies in the transaction itself, for example
//		// its price. The count stops at 6.
//		Refusals int `json:"refusals,omitempty"`
//	}
type Attempt = account.Attempt

// Record is a request together with everything that has happened to it.
//
//	type Record struct {
//		Request
//		// ID numbers the records of an account from 1, in the order in which the store
//		// accepted the requests.
//		ID uint64 `json:"id"`
//		// State is how far the request has come.
//		State State `json:"state"`
//		// QueuedAt is when the store accepted the request.
//		QueuedAt time.Time `json:"queuedAt"`
//		// EndedAt is when the request ended; zero until then.
//		EndedAt time.Time `json:"endedAt,omitzero"`
//		// Nonce is the nonce of the request. It has no meaning in state Pending.
//		Nonce uint64 `json:"nonce"`
//		// Attempts are the transactions that were signed for the request, oldest first.
//		// Only the last eight void ones are kept.
//		Attempts []Attempt `json:"attempts,omitempty"`
//		// Height is the height of the block that contains one of the attempts; 0 if
//		// there is none.
//		Height uint64 `json:"height,omitempty"`
//		// Block is the hash of the block at Height.
//		Block common.Hash `json:"block,omitzero"`
//		// Tx is the hash of the attempt that is in that block.
//		Tx common.Hash `json:"tx,omitzero"`
//		// Success means that the transaction in the block did not revert.
//		Success bool `json:"success,omitempty"`
//		// GasUsed is the gas that the transaction in the block used.
//		GasUsed uint64 `json:"gasUsed,omitempty"`
//		// GasPrice is the price per gas that the transaction paid, in wei; nil if the
//		// node did not report it.
//		GasPrice *uint256.Int `json:"gasPrice,omitempty"`
//		// Contract is the contract that the transaction created; nil if it created
//		// none.
//		Contract *common.Address `json:"contract,omitempty"`
//		// Logs are the logs that the transaction emitted. Only the first 64 KiB of them
//		// are kept.
//		Logs []Log `json:"logs,omitempty"`
//		// Bumps is how often the request was signed again with the same nonce, at a
//		// higher price or with another payload.
//		Bumps int `json:"bumps,omitempty"`
//		// BumpedAt is the time of the last bump.
//		BumpedAt time.Time `json:"bumpedAt,omitzero"`
//		// Capped means that the request waits because it needs a higher price than its
//		// limits allow.
//		Capped bool `json:"capped,omitempty"`
//		// Cancelling means that the request is being withdrawn: its next attempt is a
//		// no-op transaction with the same nonce.
//		Cancelling bool `json:"cancelling,omitempty"`
//		// Urgent means that the next attempt is signed at once instead of waiting until
//		// the account has stalled, because the user has changed the request or nodes
//		// refused the last attempt.
//		Urgent bool `json:"urgent,omitempty"`
//		// GoneAt is the chain's height at the first sign that something else has used
//		// the nonce; 0 means that there was no sign. The sign is a finalized block that
//		// shows the nonce as used, although no block contains any of the attempts. The
//		// request is given up only when a later finalized block shows the same.
//		GoneAt uint64 `json:"goneAt,omitempty"`
//		// Unused is the height of a finalized block at which the nonce was not used
//		// yet; 0 means unknown. Used and Unused limit the range of blocks in which the
//		// transaction that used the nonce is searched.
//		Unused uint64 `json:"unused,omitempty"`
//		// Used is the height of the finalized block that first showed the nonce as used, although
//		// none of the attempts was in a block. It is 0 if there was no such sign (GoneAt is 0).
//		Used uint64 `json:"used,omitempty"`
//		// NotBefore is the time until which the request waits, because its gas could
//		// not be estimated, its cost was not covered, or it could not be signed; zero
//		// means at once.
//		NotBefore time.Time `json:"notBefore,omitzero"`
//		// Reason tells users why the request failed or why it waits.
//		Reason string `json:"reason,omitempty"`
//	}
//
//	// Err returns nil if the request was executed or may still be executed. Otherwise
//	// the error wraps:
//	//
//	//   - ErrReverted if its transaction is in a block and failed there
//	//   - ErrNotExecuted if it failed without a transaction, was cancelled or superseded,
//	//     or if a block contains the no-op that withdraws it
//	//   - ErrNotReplaced if a block contains the transaction that was signed before the
//	//     last Client.Replace
//	//
//	// Until the block is final, a reorg can change the error.
//	func (r *Record) Err() error
//
//	// Newest returns the last attempt, or nil.
//	func (r *Record) Newest() *Attempt
//
//	// Open reports whether the request has a nonce and may still change: from Prepared
//	// until it is Final, Failed, Superseded or Cancelled.
//	func (r *Record) Open() bool
type Record = account.Record

// Account identifies the sender of transactions: an address on a chain. Any number
// of programs may submit requests for an account, but only one worker at a time
// signs and sends for it.
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

// Kind is the transaction type in which a request is sent. Most requests use the
// default, DynamicFee.
//
//	// String returns the kind's name, for example "dynamicFee".
//	func (k Kind) String() string
type Kind = account.Kind

const (
	// DynamicFee is an EIP-1559 transaction, with a limit for the whole price and a
	// tip. It is the default kind.
	DynamicFee = account.DynamicFee
	// Legacy is a transaction of the oldest type, with a single price and with the
	// replay protection of EIP-155. Some chains accept no other type.
	Legacy = account.Legacy
	// AccessList is an EIP-2930 transaction, with a single price and a list of the
	// storage that it uses.
	AccessList = account.AccessList
	// SetCode is an EIP-7702 transaction. Its authorizations let accounts run the
	// code of a contract.
	SetCode = account.SetCode
	// Blob is an EIP-4844 transaction, which carries blobs. The program must import
	// package eoa/blobs. The blobs are stored once, with the request, and are
	// attached whenever the signed transaction is sent, because a signature covers
	// only their hashes. They are deleted when the request has ended. A replacement
	// must at least double all three prices.
	//
	// Nodes keep blob transactions in a separate pool. That pool accepts at most 16
	// transactions of an account, none behind a missing nonce, and none while the
	// account has transactions in the other pool. Therefore:
	//
	//   - If a blob transaction had a nonce, only another blob transaction can fill
	//     that nonce. To cancel a request, the executor sends a transaction with
	//     one blob of zeros. [Client.Replace] cannot turn a blob request into
	//     another kind.
	//   - A blob request waits until no other kind of transaction is in flight, and
	//     vice versa. The requests behind it wait as well, so use a separate
	//     account for blobs.
	//   - If a reorg takes back both kinds, they are sent one kind after the other.
	//
	// From the Osaka fork on, networks expect cell proofs instead of one proof per
	// blob; see Config.CellProofs. The transaction hash does not depend on the
	// proofs.
	Blob = account.Blob
)

// Request describes a transaction that shall be executed once. The key makes it
// safe to submit the request again, even after a restart, because an equal request
// with the same key counts as the same request. A different request with the same
// key is refused with ErrKeyReused.
//
//	type Request struct {
//		// Key identifies the request within its account. The caller chooses it, for
//		// example from an order number: 1 to 256 bytes of UTF-8 that do not begin with
//		// "eoa/".
//		Key string `json:"key"`
//		// Kind is the transaction type. The default is DynamicFee.
//		Kind Kind `json:"kind,omitempty"`
//		// To is the recipient; nil creates a contract. In that case Data is the init
//		// code, which returns the contract's code.
//		To *common.Address `json:"to,omitempty"`
//		// Value is the amount to transfer, in wei; nil means 0.
//		Value *uint256.Int `json:"value,omitempty"`
//		// Data is the input of the call, at most 128 KiB.
//		Data []byte `json:"data,omitempty"`
//		// AccessList is the access list (EIP-2930). It must be empty for kind Legacy.
//		AccessList types.AccessList `json:"accessList,omitempty"`
//		// Authorizations are the authorizations of a SetCode transaction, at least one.
//		// Other kinds must have none.
//		Authorizations []types.SetCodeAuthorization `json:"authorizations,omitempty"`
//		// Blobs are the blobs of a Blob transaction: 1 to MaxBlobs, of BlobSize bytes
//		// each. Other kinds must have none. They are removed from the record when the
//		// request has ended.
//		Blobs [][]byte `json:"blobs,omitempty"`
//		// Gas is the gas limit; 0 means that the node estimates it. Values from 1 to 20,999 are
//		// invalid, because every transaction needs 21,000.
//		Gas uint64 `json:"gas,omitempty"`
//		// MaxFee is the highest price per gas that this request may ever offer, in wei;
//		// nil means no limit. The request waits while the base fee is above MaxFee.
//		MaxFee *uint256.Int `json:"maxFee,omitempty"`
//		// MaxBlobFee is the highest price per blob gas that this request may ever offer, in wei;
//		// nil means no limit. Only requests of kind Blob may have it.
//		MaxBlobFee *uint256.Int `json:"maxBlobFee,omitempty"`
//		// Priority decides which requests get nonces first: higher values before lower
//		// ones. Requests of equal priority get them in the order in which the store
//		// accepted the requests. The default is 0.
//		Priority int32 `json:"priority,omitempty"`
//		// Group names a sequence of requests that depend on each other; empty means
//		// none. The requests of a group get their nonces in the order of acceptance, so
//		// give all of them the same priority. A request whose gas must be estimated
//		// waits until all earlier members of its group are mined, because their effects
//		// may change the estimate.
//		Group string `json:"group,omitempty"`
//		// Deadline is the time after which a request without a nonce fails; zero means
//		// never. A request that already has a nonce goes on. The year must be from 0 to
//		// 9999, in UTC.
//		Deadline time.Time `json:"deadline,omitzero"`
//		// Metadata is free for the caller's use. It is stored with the request and
//		// returned in the record.
//		Metadata []byte `json:"metadata,omitempty"`
//		// Noop makes the request a transfer of 0 wei from the account to itself. To,
//		// Value and Data are then ignored.
//		Noop bool `json:"noop,omitempty"`
//	}
//
//	// BlobHashes returns the versioned hashes of the request's blobs in order, or nil
//	// if the request has no blobs. Implementations of [Chain] need the hashes to
//	// estimate gas. The error wraps ErrInvalidRequest if the blobs are invalid.
//	func (r *Request) BlobHashes() ([]common.Hash, error)
//
//	// Validate returns an error that wraps ErrInvalidRequest if the request could never
//	// be executed, for example because its blobs are malformed. Submit calls it for
//	// every request.
//	func (r *Request) Validate() error
//
//	// Digest returns a hash of the key and the payload. With it, a store distinguishes
//	// a request that is submitted again from a different request with the same key.
//	func (r *Request) Digest() [sha256.Size]byte
type Request = account.Request

// Rules are the settings for decisions about requests: limits, prices and waits.
// They are part of [Config], and each decision of a [View] receives them.
//
//	type Rules struct {
//		// Fees decides when a transaction that is not mined is replaced at a higher
//		// price.
//		Fees FeePolicy
//		// Confirmations is how deep in the chain a block must be before its requests
//		// are Confirmed. The newest block has depth 1. The range is 1 to 2^20, and the
//		// default is 3.
//		Confirmations uint64
//		// MaxInFlight is the maximum number of requests that have a nonce and are in no
//		// block; 1 to 2^20. It applies while a node is known to have all of these
//		// requests; otherwise MaxUnsure does. The default is 100.
//		MaxInFlight int
//		// MaxUnsure replaces MaxInFlight while it is uncertain whether a node has all
//		// requests in flight; 1 to 2^20. A node that lacks one of these requests keeps
//		// only a few transactions behind the gap: 64 in go-ethereum, which is the
//		// default. A value above MaxInFlight has no effect.
//		MaxUnsure int
//		// Batch is the maximum number of requests that are signed, stored and sent together; 1 to
//		// 1000. The default is 100.
//		Batch int
//		// Rebroadcast is the time after which a transaction that is in no block is sent again,
//		// because nodes forget transactions. It is above 0 and at most 24 hours. The default is 30
//		// seconds.
//		Rebroadcast time.Duration
//		// Retry is the wait after a failed call to the chain, the signer or the store;
//		// above 0, at most one minute. The wait doubles with each failure, up to one
//		// minute. If a gas estimate takes longer than Retry, requests whose gas is
//		// given go first. The default is one second.
//		Retry time.Duration
//		// GasMargin is how much gas a transaction gets in addition to the node's
//		// estimate, in percent; 0 to 1000. The margin never lifts the gas above the
//		// limit of a block or of a transaction (EIP-7825). If a node still refuses the
//		// gas limit, the estimate is used without a margin. The default is 20.
//		GasMargin uint64
//		// Requeue submits a request again if another program's transaction has used its
//		// nonce. The key of the new request is the old key, followed by "~" and the id
//		// of the old record.
//		Requeue bool
//		// Retention limits the history of the account in the store.
//		Retention Retention
//		// Exclusive promises that no other program signs for the account, and that the
//		// account's code, if it has any, creates no contracts. A transaction of the
//		// account that the store does not know then proves that the store has lost
//		// writes. The account stops with ErrStoreRolledBack, even if no process
//		// remembers the lost writes. The account also stops if it has transactions on
//		// the chain and the store knows nothing of the account. If these transactions
//		// were sent before the account was used with this store, call [Client.Resume].
//		//
//		// Even if Exclusive is false, the promise is assumed for a store that may lose
//		// writes ([Loaded.MayLose]), such as Redis, unless Config.SharedKey is set. The
//		// default is false.
//		Exclusive bool
//	}
//
//	// Validate returns an error that lists each field out of range, with its value
//	// and the allowed range. The error wraps ErrInvalidConfig.
//	func (c *Rules) Validate() error
type Rules = account.Rules

// State is how far a request has come. Most requests go through the first six
// states in order. A reorg moves a request from Mined or Confirmed back to
// Broadcast.
//
//	// String returns the state in lower case, for example "pending".
//	func (s State) String() string
//
//	// Terminal reports whether a record in this state never changes again.
//	func (s State) Terminal() bool
type State = account.State

const (
	// Pending means that the store has accepted the request and that it has no
	// nonce yet.
	Pending = account.Pending
	// Prepared means that the request has a nonce and its signed transaction is in the store.
	// It is not known yet whether any node has the transaction.
	Prepared = account.Prepared
	// Broadcast means that a node has accepted a transaction of the request.
	Broadcast = account.Broadcast
	// Mined means that a block contains a transaction of the request. A reorg may
	// still remove the block.
	Mined = account.Mined
	// Confirmed means that the block is as deep in the chain as Config.Confirmations
	// requires.
	Confirmed = account.Confirmed
	// Final means that the block is finalized and the transaction in it succeeded.
	// The record never changes again.
	Final = account.Final
	// Failed means that the request failed in one of these ways:
	//
	//   - It ended before it had a nonce, for example at its deadline.
	//   - Its transaction reverted in a finalized block.
	//   - Nodes refused it for good, and a no-op transaction has used its nonce.
	//
	// The record never changes again.
	Failed = account.Failed
	// Superseded means that something else has used the nonce: a finalized
	// transaction of another program or, for a member of a group, no transaction at
	// all. A request that a forced reset gave up is superseded as well. The record
	// never changes again.
	Superseded = account.Superseded
	// Cancelled means that the request was withdrawn: it had no nonce yet, a no-op
	// transaction has used its nonce, or nothing can use the nonce any more. The
	// record never changes again.
	Cancelled = account.Cancelled
)

// SendResult tells whether a node has the transaction that was sent to it.
//
//	// String returns the result in lower case, for example "accepted".
//	func (r SendResult) String() string
type SendResult = account.SendResult

const (
	// Unknown means that the node may or may not have the transaction: the call
	// timed out, the connection or the server failed, or the message is not
	// recognized. Unknown is the zero value, so that it also applies to a result
	// that a Chain leaves out.
	Unknown = account.Unknown
	// Accepted means that the node has the transaction, from this send or from an earlier
	// one.
	Accepted = account.Accepted
	// Rejected means that the node that answered does not have the transaction.
	// Another node behind the same gateway may have it.
	Rejected = account.Rejected
)

// Loaded is the stored state of an account, as [Store.Load] returns it.
//
//	type Loaded struct {
//		// Head is the account's head.
//		Head Head
//		// Open contains the records for which [Record.Open] returns true, ordered by
//		// nonce.
//		Open []Record
//		// MayLose means that the store may lose writes that it has acknowledged, for
//		// example by promoting a replica. The account is then treated as exclusive; see
//		// [Rules.Exclusive].
//		MayLose bool
//	}
type Loaded = account.Loaded
