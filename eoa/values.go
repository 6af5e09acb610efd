package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// Account identifies a sender on a chain. At most one worker at a time acts for
// it.
type Account = account.Account

// Kind is the transaction type that a request is sent as.
type Kind = account.Kind

const (
	// DynamicFee is an EIP-1559 transaction, the default.
	DynamicFee = account.DynamicFee
	// Legacy is a transaction with one price, replay-protected by EIP-155.
	Legacy = account.Legacy
	// AccessList is an EIP-2930 transaction, with one price.
	AccessList = account.AccessList
	// SetCode is an EIP-7702 transaction.
	SetCode = account.SetCode
	// Blob is an EIP-4844 transaction. A signed attempt has only the hashes of its
	// blobs. The blobs are stored once, with the request, and are attached each time
	// the bytes are sent. A replacement must at least double all three prices. The
	// blobs of a finished record are dropped; submitting its key again still finds
	// the same request. At most MaxPendingBlobs blobs wait for a nonce; Submit
	// returns ErrTooManyBlobs beyond that.
	//
	// Nodes keep blob transactions in a separate pool. It takes at most 16 of an
	// account, none ahead of a missing nonce, and no account that has transactions
	// in the other pool. Therefore:
	//
	//   - Only a blob transaction ever fills a nonce that a blob transaction had.
	//     The noop has one blob of zeros, and Client.Replace keeps the kind.
	//   - A blob request waits until no other transaction is in flight, and the
	//     reverse. The requests behind it wait as well, so use a separate account
	//     for blobs.
	//   - If a reorg takes back both kinds, they are sent one kind after the other.
	//
	// From the Osaka fork on, networks expect cell proofs instead of one proof per
	// blob: see Config.CellProofs. The transaction hash does not depend on it.
	Blob = account.Blob
)

// Request is a transaction to be sent. A request is idempotent by its key: the
// same key with the same payload is the same request, and with another payload
// it is an error.
type Request = account.Request

// Rank is the position of a pending request: the lowest rank goes first.
type Rank = account.Rank

// RankOf returns the rank of a request with the given record id.
func RankOf(r *Request, id uint64) Rank { return account.RankOf(r, id) }

// State is the state of a request.
type State = account.State

const (
	// Pending means that the store has accepted the request and it has no nonce
	// yet.
	Pending = account.Pending
	// Prepared means that a transaction is signed and stored, and not known to
	// be on any node.
	Prepared = account.Prepared
	// Broadcast means that a node has accepted a transaction of the request.
	Broadcast = account.Broadcast
	// Mined means that a transaction is in a block that a reorg may still
	// remove.
	Mined = account.Mined
	// Confirmed means that the block is as deep as Config.Confirmations
	// requires.
	Confirmed = account.Confirmed
	// Final means that the transaction succeeded in a finalized block. It is a
	// terminal state.
	Final = account.Final
	// Failed means that the request was given up before it had a nonce, that
	// its transaction reverted in a finalized block, or that nodes refused it
	// for good and a noop was finalized with its nonce. It is a terminal state.
	Failed = account.Failed
	// Superseded means that another transaction provably took the nonce, or
	// that a forced reset gave the request up. It is a terminal state.
	Superseded = account.Superseded
	// Cancelled means that the request was withdrawn: before it had a nonce, by
	// a noop that was finalized with its nonce, or because its nonce was used
	// without a transaction. It is a terminal state.
	Cancelled = account.Cancelled
)

// SendResult is the outcome of giving signed bytes to a node.
type SendResult = account.SendResult

const (
	// Unknown means a time-out, a connection or server error, or an
	// unrecognized message. The node may have the bytes. It is the zero value,
	// so that an unclassified outcome is unknown.
	Unknown = account.Unknown
	// Accepted means that the node has the transaction, from this send or an
	// earlier one.
	Accepted = account.Accepted
	// Rejected means that the node definitely does not have the transaction.
	Rejected = account.Rejected
)

// Attempt is one signed transaction of a request. A record keeps every attempt
// that a node may have, because any of them may be mined.
type Attempt = account.Attempt

// Record is a request with its history.
type Record = account.Record

// EventKind is the kind of an event.
type EventKind = account.EventKind

const (
	// EventSubmitted means that a node has the transaction for the first time,
	// as far as the executor knows: a node accepted a send, or a block has it.
	// A request has at most one such event per nonce, before its EventMined. If the
	// answers to the first sends were lost, EventBumped may come earlier.
	EventSubmitted = account.EventSubmitted
	// EventBumped means that a replacement was signed.
	EventBumped = account.EventBumped
	// EventCapped means that a replacement is due and its price would exceed a
	// limit.
	EventCapped = account.EventCapped
	// EventMined means that a transaction of the request is in a block.
	EventMined = account.EventMined
	// EventConfirmed means that the block is as deep as Config.Confirmations
	// requires.
	EventConfirmed = account.EventConfirmed
	// EventFinal means that the block is finalized and the transaction
	// succeeded.
	EventFinal = account.EventFinal
	// EventReorged means that the block is no longer part of the chain.
	EventReorged = account.EventReorged
	// EventFailed means that the request is now Failed.
	EventFailed = account.EventFailed
	// EventCancelled means that the request is now Cancelled.
	EventCancelled = account.EventCancelled
	// EventSuperseded means that the request is now Superseded.
	EventSuperseded = account.EventSuperseded
	// EventNoop means that a noop fills a nonce.
	EventNoop = account.EventNoop
	// EventReset means that a user set the next nonce.
	EventReset = account.EventReset
	// EventRequeued means that the request's nonce was used without a
	// transaction, and that the request will get another one. EventSubmitted
	// follows once more.
	EventRequeued = account.EventRequeued
	// EventStopped means that the account is stopped until an operator calls
	// [Client.Resume].
	EventStopped = account.EventStopped
	// EventResumed means that an operator let the account go on.
	EventResumed = account.EventResumed
	// EventReverted means that the transaction in the block failed, so that it had
	// no effect but to pay for its gas. It follows EventMined at once. If the
	// block becomes final, EventFailed follows.
	EventReverted = account.EventReverted
)

// Event is an entry of an account's outbox. Events are delivered at least once,
// and in order for one account.
type Event = account.Event

// ErrFeeCap is returned if a replacement would exceed a price limit.
var ErrFeeCap = account.ErrFeeCap

// Fees are the prices of a transaction, in wei per gas and per blob gas.
type Fees = account.Fees

// ErrInvalidPolicy is wrapped by every error of [FeePolicy.Validate].
var ErrInvalidPolicy = account.ErrInvalidPolicy

// FeePolicy decides when a transaction that is not mined is replaced at a
// higher price, and at which. Start with [DefaultFeePolicy].
type FeePolicy = account.FeePolicy

// DefaultFeePolicy returns a policy that bumps after five minutes, by 20
// percent, without a limit.
func DefaultFeePolicy() FeePolicy { return account.DefaultFeePolicy() }

// Retention limits the history of an account in its store. The executor applies
// it when the account has no work left, and every ten minutes while it has.
//
// Of a dropped request, the store keeps the key, the id, the state and a digest
// of the payload: submitting it again still finds the same request and executes
// nothing, and [Client.Get] returns a record without the rest. Its hashes and
// its place in [Client.List] are gone.
type Retention = account.Retention

// DefaultRetention returns the defaults.
func DefaultRetention() Retention { return account.DefaultRetention() }

const (
	// ProblemStopped means that the account is stopped until an operator calls
	// [Client.Resume]. Err wraps ErrStopped and the cause.
	ProblemStopped = account.ProblemStopped
	// ProblemFunds means that the account cannot pay: Need and Have are set.
	ProblemFunds = account.ProblemFunds
	// ProblemRequest means that a request has no nonce because of its terms: its
	// price limit is below the base fee, the price of its blobs is unknown, or its
	// gas could not be estimated. Err has its key and the reason. Requests behind it
	// go on.
	ProblemRequest = account.ProblemRequest
	// ProblemGap means that no known transaction has Nonce, and that those above it
	// wait. The executor fills the gap with a noop as soon as it can.
	ProblemGap = account.ProblemGap
	// ProblemStalled means that no transaction of the account was mined for
	// FeePolicy.StallTimeout although some are in flight. Nonce is the lowest of
	// theirs. The executor raises the price, unless a limit is reached.
	ProblemStalled = account.ProblemStalled
	// ProblemChain means that the chain cannot be read, or that the node is behind
	// or contradicts what is known. Err is why. Nothing new is sent.
	ProblemChain = account.ProblemChain
	// ProblemEndpoints means that nodes of a joined chain contradict each other
	// about the account. Err names them and their answers. The executor goes on
	// with the one that agrees best with the account's transactions.
	ProblemEndpoints = account.ProblemEndpoints
	// ProblemSigner means that the last signature failed. Err is why.
	ProblemSigner = account.ProblemSigner
	// ProblemStore means that the store failed or refused a step. Err is its error. If
	// Account is zero, a fleet could not find out which accounts have work.
	ProblemStore = account.ProblemStore
	// ProblemLease means that another worker holds the account, as is usual if
	// several processes share a store. Err wraps ErrHeld.
	ProblemLease = account.ProblemLease
	// ProblemOpener means that the [Opener] of a fleet failed, or has not returned
	// for Config.Timeout. Err is its error.
	ProblemOpener = account.ProblemOpener
)

// ProblemKind is the kind of a problem. The values never change, so that alerts and
// metrics can name them.
type ProblemKind = account.ProblemKind

// Problem is a reason for which an account makes no progress, or less than it could.
// Many problems pass without help, so an alert should depend on the time since
// Since.
type Problem = account.Problem

// Cause is why an account is stopped.
type Cause = account.Cause

const (
	// CauseNone means that the account is not stopped.
	CauseNone = account.CauseNone
	// CauseRolledBack means that the store lost writes; see ErrStoreRolledBack.
	CauseRolledBack = account.CauseRolledBack
	// CauseOtherChain means that the node is on another chain; see
	// ErrOtherChain.
	CauseOtherChain = account.CauseOtherChain
)

// Stop is a halt of an account. It is stored, so that no worker goes on until
// an operator calls [Client.Resume].
type Stop = account.Stop

const (
	// MaxBlobs is the maximum number of blobs in a request: the limit of one
	// transaction on Ethereum (EIP-7594).
	MaxBlobs = account.MaxBlobs
	// BlobSize is the size of a blob in bytes. A blob is 4096 big-endian
	// numbers of 32 bytes, each below the order of the scalar field of
	// BLS12-381.
	BlobSize = account.BlobSize
	// MaxPendingBlobs is the maximum number of blobs of an account's requests
	// without a nonce. They take 32 MiB, which a worker may read at once.
	MaxPendingBlobs = account.MaxPendingBlobs
)

// Look is one node's view of an account and of its chain at one moment.
type Look = account.Look

// Questions is a set of queries to one node.
type Questions = account.Questions

// UsedNonce is a nonce that an account has used on the finalized chain.
type UsedNonce = account.UsedNonce

// Answers are one node's answers to [Questions]. A query that the node did not
// answer, or answered with an error, appears in none of the maps.
type Answers = account.Answers

// Receipt holds the fields of a transaction receipt that an executor needs.
type Receipt = account.Receipt

// Log is an entry that a contract wrote while a transaction was executed.
type Log = account.Log

// Sent is the result of sending one transaction.
type Sent = account.Sent

// Estimated is the result of estimating the gas of one request.
type Estimated = account.Estimated

// Reason is why a node did not take a transaction.
type Reason = account.Reason

const (
	// ReasonNone means no error, or an unrecognized one.
	ReasonNone = account.ReasonNone
	// ReasonKnown means that the node already has the transaction.
	ReasonKnown = account.ReasonKnown
	// ReasonNonceTooLow means that the nonce is used, possibly by this very
	// transaction.
	ReasonNonceTooLow = account.ReasonNonceTooLow
	// ReasonNonceGap means that the node does not keep transactions ahead of a
	// missing nonce.
	ReasonNonceGap = account.ReasonNonceGap
	// ReasonReplacement means that the node has another transaction with this
	// nonce, and the price is too low to replace it.
	ReasonReplacement = account.ReasonReplacement
	// ReasonUnderpriced means that the price is below what the node accepts
	// now.
	ReasonUnderpriced = account.ReasonUnderpriced
	// ReasonFunds means that the account cannot pay for the transaction now.
	ReasonFunds = account.ReasonFunds
	// ReasonFull means that the node has no room now.
	ReasonFull = account.ReasonFull
	// ReasonInvalid means that no node will ever take the transaction.
	ReasonInvalid = account.ReasonInvalid
	// ReasonBusy means that the node asked us to wait.
	ReasonBusy = account.ReasonBusy
	// ReasonGasLimit means that the gas limit is above that of a block, or of a
	// transaction on this chain (EIP-7825). A lower one may be accepted.
	ReasonGasLimit = account.ReasonGasLimit
	// ReasonFeeCap means that the gas limit times the price is above the most
	// that this node relays (geth's --rpc.txfeecap). Another node may take it,
	// or this one at a lower price.
	ReasonFeeCap = account.ReasonFeeCap
)

// Classify returns the meaning of a JSON-RPC error message in reply to
// eth_sendRawTransaction. It must not be used for other errors: the text of an
// HTTP or connection error does not show whether the node has the transaction.
//
// A message is recognized if it begins with the text of a node, in whole words.
// Gateways may put words and a colon before it. A message that means that the
// node has the transaction must also end there, or go on with a punctuation
// mark. A text that is not recognized, or that has two meanings, gives
// ReasonNone, whose result is Unknown.
func Classify(text string) Reason { return account.Classify(text) }

// Head is the state of an account without its records.
type Head = account.Head

// Reset is a change of the next nonce that a user ordered.
type Reset = account.Reset

// Mark names the last commit to an account that the executors of one [Witness]
// made. A version is a count, so commits of other workers can replace lost ones.
// A mark cannot be replaced, because a witness never uses a number again.
type Mark = account.Mark

// OrderKind is the kind of change that a user orders.
type OrderKind = account.OrderKind

const (
	// OrderCancel withdraws a request. If its transaction may already be on a
	// node, a noop with the same nonce replaces it, and the one that is mined
	// decides.
	OrderCancel = account.OrderCancel
	// OrderReplace gives a request another payload with the same nonce. The
	// transaction that is mined decides.
	OrderReplace = account.OrderReplace
	// OrderReset sets the next nonce.
	OrderReset = account.OrderReset
	// OrderResume lets a stopped account go on.
	OrderResume = account.OrderResume
)

// Order is a user's order to an account. The account's worker carries it out.
type Order = account.Order

// Batch is one step of an account. A store writes all of it or nothing.
type Batch = account.Batch

// Loaded is the persisted state of an account, as returned by [Store.Load].
type Loaded = account.Loaded

var (
	// ErrInvalidRequest is returned for a request that can never be sent.
	ErrInvalidRequest = account.ErrInvalidRequest
	// ErrMalformed is returned for stored bytes that are not a valid record.
	ErrMalformed = account.ErrMalformed
	// ErrNotExecuted is wrapped by the error of [Record.Err] if no transaction of
	// the request will ever be executed.
	ErrNotExecuted = account.ErrNotExecuted
	// ErrReverted is wrapped by the error of [Chain.Estimate] if the node
	// executed the call and it failed, and by that of [Record.Err] if the
	// transaction is in a block and failed there.
	ErrReverted = account.ErrReverted
	// ErrInvalidConfig is wrapped by every error of [Config.Validate].
	ErrInvalidConfig = account.ErrInvalidConfig
	// ErrOtherChain is the cause of a stop if the node keeps reporting fewer
	// transactions of the account than a finalized block had.
	ErrOtherChain = account.ErrOtherChain
	// ErrStopped is returned by Step while the account is stopped. The error
	// also wraps the cause: ErrStoreRolledBack or ErrOtherChain. Nothing is
	// signed or sent until an operator calls [Client.Resume].
	ErrStopped = account.ErrStopped
	// ErrStoreRolledBack is the cause of a stop if the store lacks commits to
	// the account that this process has seen, or if the account is exclusive and
	// has a transaction that the store does not know. The transactions of the
	// lost writes may be on the chain, so that going on could execute requests
	// twice.
	ErrStoreRolledBack = account.ErrStoreRolledBack
)
