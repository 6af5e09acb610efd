// go test ./internal/tidy -update writes this file from eoa/internal/account/event.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// EventKind is the kind of an event.
//
//	// String returns the name in lower case.
//	func (k EventKind) String() string
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
//
//	type Event struct {
//		// Account is the event's account. Stores leave it zero; [Deliver] fills it
//		// in.
//		Account Account `json:"account,omitzero"`
//		// Seq is the event's number, assigned by the store, consecutive per
//		// account. Account and Seq identify an event.
//		Seq uint64 `json:"seq"`
//		// Kind is the kind of the event.
//		Kind EventKind `json:"kind"`
//		// At is when it was decided.
//		At time.Time `json:"at"`
//		// ID is the record's id; 0 for events about the account (EventReset,
//		// EventStopped, EventResumed).
//		ID uint64 `json:"id,omitempty"`
//		// Key is the record's key; empty for events about the account.
//		Key string `json:"key,omitempty"`
//		// Nonce is the record's nonce at that moment; for events about the account,
//		// the next nonce.
//		Nonce uint64 `json:"nonce"`
//		// Tx is the mined transaction, or the newest attempt if none is mined.
//		Tx common.Hash `json:"tx,omitzero"`
//		// Height is the height of the block that the record is in; 0 if it is in
//		// none.
//		Height uint64 `json:"height,omitempty"`
//		// Success means that the transaction is in a block and did not revert.
//		Success bool `json:"success"`
//		// Reason is the record's reason at that moment.
//		Reason string `json:"reason,omitempty"`
//	}
type Event = account.Event
