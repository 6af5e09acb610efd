// go test ./internal/tidy -update writes this file from eoa/internal/account/state.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// State is the state of a request.
//
//	// String returns the name in lower case.
//	func (s State) String() string
//
//	// Terminal reports whether s never changes again.
//	func (s State) Terminal() bool
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
//
//	// String returns the name in lower case.
//	func (r SendResult) String() string
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
